"""Text and trees: reading, cleaning, the vocabulary and the built-in corpus. Does not import torch."""
