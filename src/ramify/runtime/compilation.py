"""Loops compiled by numba: kept on disk for the next process, and never compiled in silence.

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
_ours: set[Any] = set()
_callbacks: list[Callable[[str], None]] = [_log.info]
_told = False
_building = threading.RLock()
_words_to_spare = 0
"""How many more words are parsed without compiled loops"""


def tell_of_compilation(callback: Callable[[str], None]) -> None:
    """Have `callback` called with one sentence before this process compiles for the first time, if it ever does.

    Without a callback the sentence goes to the logger `ramify`. Costs nothing: numba is not imported for it.
    """
    _callbacks[:] = [callback]


@contextmanager
def spare_loops(words: int) -> Iterator[None]:
    """Do without compiled loops, where there is another way, for fewer than this many words.

    For a program that may end after a few sentences. Their last digits differ from those with compiled loops.
    """
    global _words_to_spare
    _words_to_spare = words
    try:
        yield
    finally:
        _words_to_spare = 0


def expect_words(count: int) -> None:
    """Say that `count` words are about to be parsed; they are all parsed in the same way."""
    global _words_to_spare
    _words_to_spare = max(_words_to_spare - count, 0)


def loops_are_spared() -> bool:
    """Whether what comes next is too little to load compiled loops for."""
    return _words_to_spare > 0


class Loop:
    """A function that is compiled by its first call."""

    def __init__(self, function: Callable[..., Any], reorder_sums: bool) -> None:
        update_wrapper(self, function)
        self._function, self._reorder_sums = function, reorder_sums
        self._kernel: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """The result of the compiled function."""
        return (self._kernel or self._built())(*arguments)

    def unless_spared(self) -> Callable[..., Any]:
        """Itself or, where loops are spared, the plain function, which is fast enough for loops over few words."""
        return self._function if loops_are_spared() else self

    def _built(self) -> Any:
        """Numba's function; it knows only numba's functions, so the loops that this one calls are built first."""
        with _building:
            if self._kernel is None:
                names = self._function.__globals__
                for name in self._function.__code__.co_names:
                    if isinstance(called := names.get(name), Loop):
                        names[name] = called._built()
                self._kernel = _compiled(self._function, self._reorder_sums)
            return self._kernel


def compiled(function: Callable[..., Any], reorder_sums: bool = True) -> Loop:
    """Compile on the first call, without the interpreter's lock; cached on disk where some folder can be written."""
    return Loop(function, reorder_sums)


def _compiled(function: Callable[..., Any], reorder_sums: bool) -> Any:
    import numba

    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": _FLAGS if reorder_sums else False}
    try:
        kernel = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        kernel = numba.njit(**options)(function)
    if not _ours:
        _listen()
    _ours.add(kernel)
    return kernel


def _listen() -> None:
    from numba.core import event

    class Listener(event.Listener):
        """Numba raises this event where the cache does not help."""

        def on_start(self, raised: Any) -> None:
            global _told
            if not _told and raised.data["dispatcher"] in _ours:
                _told = True
                for callback in _callbacks:
                    callback(NOTICE)

        def on_end(self, raised: Any) -> None:
            pass

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]
