"""Memory of this process: what the C library and the garbage collector do, and the most there ever was."""

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


@contextmanager
def importing() -> Iterator[None]:
    """For large imports: the garbage collector, which would scan the new objects again and again, is off here.

    What was imported stays, so it is never looked at later either. A program's choice too: objects that exist at the
    end of this context are never found to be garbage.
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
    """Lets threads work at the same time as long as all together need no more than a limit; who needs more works alone.

    Nobody may ask for memory a second time before giving the first back.
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
    """Give freed memory back and count the peak from here on, where the system is Linux; what is held now, in MB."""
    import psutil

    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
    return float(psutil.Process().memory_info().rss / 2**20)


def peak_memory() -> float:
    """The most memory this process ever held, or held since the peak was forgotten, in MB."""
    if sys.platform == "win32":
        import psutil

        return float(psutil.Process().memory_info().peak_wset / 2**20)
    if sys.platform == "linux":
        # Not getrusage, which also counts what the process that started this one held.
        status = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace")
        if (found := re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)) is not None:
            return int(found[1]) / 2**10
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
