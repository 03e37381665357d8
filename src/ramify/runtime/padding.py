"""Rows of whole blocks (blocks.py), whose size is needed where numba is not."""

from __future__ import annotations

import torch

BLOCK_BYTES = 256


def padded_size(size: int, dtype: torch.dtype) -> int:
    """The size of a row of whole blocks that has room for the given number of numbers."""
    block = BLOCK_BYTES // dtype.itemsize
    return -(-size // block) * block
