"""Loops compiled by numba: kept on disk for the next process, and never compiled in silence."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

NOTICE = "Compiling the inner loops for this machine; this happens once and takes about half a minute."

# Reordering of sums and fused multiply-add; nothing that assumes away inf or NaN.
_FLAGS = {"reassoc", "contract", "nsz", "arcp"}

_log = logging.getLogger("ramify")
_ours: set[Any] = set()
_callbacks: list[Callable[[str], None]] = [_log.info]
_told = False


def tell_of_compilation(callback: Callable[[str], None]) -> None:
    """Have `callback` called with one sentence before this process compiles for the first time, if it ever does.

    Without a callback the sentence goes to the logger `ramify`. Costs nothing: numba is not imported for it.
    """
    _callbacks[:] = [callback]


def compiled(function: Any, reorder_sums: bool = True) -> Any:
    """Compile on the first call, without the interpreter's lock; cached on disk where some folder can be written."""
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
