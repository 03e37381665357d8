"""Rows of whole blocks (blocks.py) or vectors (matrix_tiles.py), whose size is needed where numba is not."""

from __future__ import annotations

import torch

BLOCK_BYTES = 256
LINE_BYTES = 64
"""Of a line of the cache: a multiple of any machine's vectors"""


def padded_size(size: int, dtype: torch.dtype, piece: int = BLOCK_BYTES) -> int:
    """The size of a row of whole blocks, or other pieces, that has room for the given number of numbers."""
    numbers = piece // dtype.itemsize
    return -(-size // numbers) * numbers
