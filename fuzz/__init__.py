"""Readers against any bytes at all."""
