"""What the C library does with memory that was freed."""

from __future__ import annotations

import ctypes
import sys

LARGEST_KEPT = 16 * 2**20
"""Larger pieces are given back: kept, those of a grammar with thousands of symbols leave gaps that nothing fits."""

# Parameters of mallopt(3).
_ARENA_MAX, _MMAP_THRESHOLD, _TRIM_THRESHOLD = -8, -3, -1


def keep_freed_memory() -> None:
    """Keep freed memory for the next batch, where the C library is glibc; call it before there are threads.

    Left alone, glibc gives the charts of each batch back to the system, which clears every page before it hands it out
    again: up to a tenth of a training step. For the process as a whole, so it is a program's choice, not the library's.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)
        mallopt(_MMAP_THRESHOLD, LARGEST_KEPT)
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)
