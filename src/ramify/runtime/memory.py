"""Memory of this process: settings of the C library and the garbage collector, and the peak."""

from __future__ import annotations

import ctypes
import gc
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LARGEST_KEPT = 24 * 2**20
"""Larger blocks are returned to the system: those of a grammar with thousands of symbols would leave unusable gaps."""

# Parameters of mallopt(3).
_ARENA_MAX, _MMAP_THRESHOLD, _TRIM_THRESHOLD = -8, -3, -1


def keep_freed_memory() -> None:
    """Keep freed memory for the next batch, if the C library is glibc; call it before starting threads.

    By default, glibc returns the charts of each batch to the system, which clears every page before it hands it out
    again; this takes up to a tenth of a training step. It applies to the whole process, so programs decide about it,
    not this library.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)
        mallopt(_MMAP_THRESHOLD, LARGEST_KEPT)
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)


@contextmanager
def importing() -> Iterator[None]:
    """Turn off the garbage collector during large imports, because it would scan the new objects again and again.

    Imported objects stay, so they are not scanned later either. Programs decide about this, too: garbage that exists
    at the end of this context is never collected.
    """
    was_on, before = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > before:
            gc.freeze()
        if was_on:
            gc.enable()


class Budget:
    """Lets threads run at the same time while their memory stays within a limit; a thread that needs more runs alone.

    A thread must not reserve memory a second time before it has released the first.
    """

    def __init__(self) -> None:
        self._used, self._changed = 0, threading.Condition()

    @contextmanager
    def __call__(self, needed: int, limit: int) -> Iterator[None]:
        """Wait until this many bytes are free; they are released at the end."""
        with self._changed:
            self._changed.wait_for(lambda: not self._used or self._used + needed <= limit)
            self._used += needed
        try:
            yield
        finally:
            with self._changed:
                self._used -= needed
                self._changed.notify_all()


def forget_peak_memory() -> float:
    """Return freed memory and reset the peak, if the system is Linux; returns the memory in use, in MB."""
    import psutil

    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
    return float(psutil.Process().memory_info().rss / 2**20)


def peak_memory() -> float:
    """The peak memory of this process, in MB, since its start or since the peak was reset."""
    if sys.platform == "win32":
        import psutil

        return float(psutil.Process().memory_info().peak_wset / 2**20)
    if sys.platform == "linux":
        # Not getrusage, which also counts the memory of the process that started this one.
        status = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace")
        if (found := re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)) is not None:
            return int(found[1]) / 2**10
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
