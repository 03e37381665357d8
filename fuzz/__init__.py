"""Tests of the readers with arbitrary bytes."""
