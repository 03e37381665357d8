"""Scores and baselines, computed from spans. Does not import torch."""
