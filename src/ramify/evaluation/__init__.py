"""Scores and baselines: spans in, numbers out. No torch here."""
