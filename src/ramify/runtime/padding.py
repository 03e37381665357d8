"""Rows of whole blocks (blocks.py), whose size is needed where numba is not."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK_BYTES = 256
NARROW_BYTES = 64
"""A quarter of a block, for what is too small to be worth whole ones"""


def padded_size(size: int, dtype: torch.dtype, block_bytes: int = BLOCK_BYTES) -> int:
    """The size of a row of whole blocks that has room for the given number of numbers."""
    block = block_bytes // dtype.itemsize
    return -(-size // block) * block


def narrow_rows(matrix: Tensor) -> Tensor:
    """A contiguous matrix with rows of whole narrow blocks: itself, or a copy with zeros at the end of each row."""
    rows, size = matrix.shape
    room = padded_size(size, matrix.dtype, NARROW_BYTES)
    if room == size:
        return matrix.contiguous()
    padded = matrix.new_zeros(rows, room)
    padded[:, :size] = matrix
    return padded
