"""Exact inference: distributions over the binary trees of a batch of sentences. Tensors in, tensors out."""
