"""Activations to choose from, named apart from torch, so that the settings can list them without it."""

ACTIVATIONS = {"relu": "ReLU", "tanh": "Tanh", "sigmoid": "Sigmoid", "gelu": "GELU"}
"""By our names those of `torch.nn`"""
