"""What grammars let choose by name, apart from torch, so that the settings can list it without."""

ACTIVATIONS = {"relu": "ReLU", "tanh": "Tanh", "sigmoid": "Sigmoid", "gelu": "GELU"}
"""By our names those of `torch.nn`"""
INITIALISATIONS = ("own", "xavier-normal", "xavier-uniform")
"""Of all matrices; `own` is that of the family"""
