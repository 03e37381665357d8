"""Corpora of any size: blocks of a file, parsed by workers on one machine or many."""
