"""Loops compiled by numba: cached on disk for the next process, and announced when they are compiled.

Numba is imported, and a loop loaded or compiled, by the loop's first call: importing numba and loading the loops of
one parse take a third of the time that importing torch takes, and compiling them takes many seconds.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from typing import Any

NOTICE = "Compiling the inner loops for this machine; this happens once and takes about half a minute."

# Reordering of sums and fused multiply-add; nothing that assumes away inf or NaN.
_FLAGS = {"reassoc", "contract", "nsz", "arcp"}

_log = logging.getLogger("ramify")
_our_kernels: set[Any] = set()
_callbacks: list[Callable[[str], None]] = [_log.info]
_notified = False
_building = threading.RLock()
_words_before_loops = 0
"""Number of words that are still to be parsed without compiled loops"""


def on_compilation(callback: Callable[[str], None]) -> None:
    """Call `callback` with one sentence before this process first compiles a loop.

    By default the sentence goes to the logger `ramify`. This does not import numba.
    """
    _callbacks[:] = [callback]


@contextmanager
def postpone_loops(words: int) -> Iterator[None]:
    """Do not use compiled loops, if there is an alternative, until this many words have been parsed.

    Loading the loops is not worth the time for a program that ends after a few sentences. The last digits of the
    results differ from those of the compiled loops.
    """
    global _words_before_loops
    _words_before_loops = words
    try:
        yield
    finally:
        _words_before_loops = 0


def expect_words(count: int) -> None:
    """Announce that `count` words will be parsed next, either all or none of them with compiled loops."""
    global _words_before_loops
    _words_before_loops = max(_words_before_loops - count, 0)


def loops_are_postponed() -> bool:
    """Whether the next words are too few to be worth loading compiled loops."""
    return _words_before_loops > 0


class Loop:
    """A function that is compiled by its first call."""

    def __init__(self, function: Callable[..., Any], reorder_sums: bool) -> None:
        update_wrapper(self, function)
        self._function, self._reorder_sums = function, reorder_sums
        self._kernel: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """The result of the compiled function."""
        return (self._kernel or self._built())(*arguments)

    def unless_postponed(self) -> Callable[..., Any]:
        """This loop or, while loops are postponed, the plain Python function, which is fast enough for a few words."""
        return self._function if loops_are_postponed() else self

    def _built(self) -> Any:
        """Numba's function. It can call only numba's functions, so the loops that this one calls are built first."""
        with _building:
            if self._kernel is None:
                names = self._function.__globals__
                for name in self._function.__code__.co_names:
                    if isinstance(called := names.get(name), Loop):
                        names[name] = called._built()
                self._kernel = _compiled(self._function, self._reorder_sums)
            return self._kernel


def compiled(function: Callable[..., Any], reorder_sums: bool = True) -> Loop:
    """A loop that is compiled on its first call, releases the GIL, and is cached on disk if a folder is writable."""
    return Loop(function, reorder_sums)


def _compiled(function: Callable[..., Any], reorder_sums: bool) -> Any:
    import numba

    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": _FLAGS if reorder_sums else False}
    try:
        kernel = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache is writable
        kernel = numba.njit(**options)(function)
    if not _our_kernels:
        _listen()
    _our_kernels.add(kernel)
    return kernel


def _listen() -> None:
    from numba.core import event

    class Listener(event.Listener):
        """Numba raises this event if a function is not in the cache."""

        def on_start(self, raised: Any) -> None:
            global _notified
            if not _notified and raised.data["dispatcher"] in _our_kernels:
                _notified = True
                for callback in _callbacks:
                    callback(NOTICE)

        def on_end(self, raised: Any) -> None:
            pass

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]
