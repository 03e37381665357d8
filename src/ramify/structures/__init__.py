"""Exact inference: distributions over the binary trees of a batch of sentences, from tensors to tensors."""
