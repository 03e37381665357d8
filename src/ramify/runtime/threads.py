"""Divides work among the cores, without a second pool of spinning threads next to torch's.

OpenMP's threads wait by spinning, and a parallel loop ends only when the last of them gets a core. On a machine with
other work, even a short loop may therefore take milliseconds. The pieces here are whole sentences or blocks of words,
handed to sleeping threads in which torch runs on one core, so a step waits once and not at every loop.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, TypeVar

import torch

Piece = TypeVar("Piece")
Result = TypeVar("Result")

SMALLEST_WORK = 100e6
"""About a millisecond of one core. Smaller work is slower in pieces: threads also wait for the interpreter's lock."""

_pools: dict[int, ThreadPoolExecutor] = {}
_making = threading.Lock()
_counting = threading.Lock()
_state = threading.local()
_entered, _usual_threads = 0, 1
"""Threads inside `torch_on_one_core` now, and torch's number of threads outside it."""


def available() -> int:
    """Maximum number of pieces: one for each thread, or the number set by `in_fixed_pieces`."""
    return getattr(_state, "pieces", None) or _threads()


def _threads() -> int:
    """Number of threads that may be used: that of torch (`torch.set_num_threads`)."""
    return getattr(_state, "available", None) or torch.get_num_threads()


def worth(work: float) -> int:
    """Number of pieces for this many floating-point operations; one if dividing them is not worth it."""
    return available() if work > SMALLEST_WORK else 1


@contextmanager
def torch_on_one_core() -> Iterator[None]:
    """In this context, torch's loops run serially; `in_pieces` still uses every core.

    It is for work in small steps, where waiting for threads costs more than they save. Contexts of several threads may
    overlap. Threads that start later inherit torch's setting, so the number to restore is the one before the first
    context.
    """
    global _entered, _usual_threads
    if getattr(_state, "available", None):  # nested
        yield
        return
    with _counting:
        before = torch.get_num_threads()
        if not _entered or before > 1:
            _usual_threads = before
        _entered += 1
        usual_threads = _usual_threads
    _state.available = usual_threads
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(usual_threads)
        _state.available = None
        with _counting:
            _entered -= 1


@contextmanager
def on_one_core() -> Iterator[None]:
    """In this context, neither torch nor `in_pieces` divides work: sums have the same order on every machine."""
    with torch_on_one_core(), _divided_into(1):
        before, _state.available = _state.available, 1
        try:
            yield
        finally:
            _state.available = before


@contextmanager
def in_fixed_pieces(count: int) -> Iterator[None]:
    """In this context, work is divided into this many pieces for any number of threads: sums have a fixed order."""
    with torch_on_one_core(), _divided_into(count):
        yield


@contextmanager
def _divided_into(count: int) -> Iterator[None]:
    before = getattr(_state, "pieces", None)
    _state.pieces = count
    try:
        yield
    finally:
        _state.pieces = before


def in_pieces(function: Callable[[Piece], Result], pieces: Sequence[Piece]) -> list[Result]:
    """The results in order, without gradients; several pieces run at a time if there are several cores."""

    def run(piece: Piece) -> Result:
        with torch.no_grad():
            return function(piece)

    count = min(_threads(), os.cpu_count() or 1)
    if len(pieces) < 2:
        return [run(piece) for piece in pieces]
    if count == 1:
        with _divided_into(1):  # as in the threads of a pool
            return [run(piece) for piece in pieces]
    return list(_pool(count).map(partial(_undivided, run), pieces))


def _undivided(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function in which work is not divided again: a thread that waits for its own pool would never end."""
    before = getattr(_state, "available", None)
    _state.available = 1
    try:
        with _divided_into(1):
            return function(*arguments)
    finally:
        _state.available = before


class BackgroundCall(Generic[Result]):
    """A function call in another thread or, on a single core, when its result is needed."""

    def __init__(self, function: Callable[[], Result]) -> None:
        count = min(_threads(), os.cpu_count() or 1)
        self._function = function
        self._future = _pool(count).submit(self._run) if count > 1 else None

    def result(self) -> Result:
        """Wait for the result; an exception of the function is raised here."""
        return self._run() if self._future is None else self._future.result()

    def cancel(self) -> None:
        """Do not start the call if it has not started yet."""
        if self._future is not None:
            self._future.cancel()

    def _run(self) -> Result:
        return _undivided(self._function)


def _pool(count: int) -> ThreadPoolExecutor:
    with _making:
        if count not in _pools:
            pool = ThreadPoolExecutor(count, thread_name_prefix="ramify")
            ready = threading.Barrier(count + 1)

            def begin() -> None:
                torch.get_num_threads()  # torch initialises its threads here, which would undo the next setting
                torch.set_num_threads(1)
                ready.wait()

            before = torch.get_num_threads()
            for _ in range(count):
                pool.submit(begin)
            ready.wait()
            # Torch passes the setting of a thread on to threads that start later.
            torch.set_num_threads(before)
            _pools[count] = pool
        return _pools[count]


if hasattr(os, "register_at_fork"):  # threads do not survive a fork, which Windows does not have
    os.register_at_fork(after_in_child=_pools.clear)
