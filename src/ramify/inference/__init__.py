"""Exact inference for grammars given as tensors: tensors in, tensors out, nothing else of ours imported."""
