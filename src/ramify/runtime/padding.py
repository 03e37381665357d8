"""Sizes of rows of whole blocks (register_blocks.py) or vectors (products.py); does not import numba."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK_BYTES = 256
NARROW_BYTES = 64
"""A quarter of a block, a line of the cache: for rows that are too small to be padded to whole blocks"""


def padded_size(size: int, dtype: torch.dtype, block_bytes: int = BLOCK_BYTES) -> int:
    """The size of a row of whole blocks that has room for the given number of numbers."""
    block = block_bytes // dtype.itemsize
    return -(-size // block) * block


def narrow_rows(matrix: Tensor) -> Tensor:
    """Contiguous matrices (..., rows, size) with rows of whole narrow blocks; a copy has zeros at the ends of rows."""
    *leading, size = matrix.shape
    room = padded_size(size, matrix.dtype, NARROW_BYTES)
    if room == size:
        return matrix.contiguous()
    padded = matrix.new_zeros(*leading, room)
    padded[..., :size] = matrix
    return padded
