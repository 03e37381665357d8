"""Parses sentences ahead in other threads: reading, parsing and writing overlap, and results keep their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ramify.parser.analysis import Analysis
from ramify.runtime.compilation import loops_are_postponed
from ramify.runtime.threads import BackgroundCall

WINDOWS_AHEAD = 2
"""Number of windows that are parsed while the results of an earlier one are used"""
Batch = Callable[[], Iterable[tuple[int, Analysis]]]
"""Parses some sentences of a window; each result comes with the sentence's place in the window."""


@dataclass(frozen=True)
class Window:
    """Consecutive sentences of a stream."""

    size: int
    batches: list[Batch]
    is_last: bool
    """Whether no further sentence has arrived, so that reading on would block"""


def results_in_order(windows: Iterable[Window], in_threads: bool) -> Iterator[Analysis]:
    """The results of all batches in the order of the sentences, while other threads parse later windows.

    An error in reading a window is raised after the results of the windows before it.
    """
    waiting: deque[tuple[int, list[BackgroundCall[Iterable[tuple[int, Analysis]]]]]] = deque()
    stream, failure = iter(windows), None
    try:
        while failure is None:
            try:
                window = next(stream, None)
            except Exception as error:
                window, failure = None, error
            if window is None:
                break
            # This holds for one window only: the next one may need the loops.
            if not in_threads or loops_are_postponed():
                while waiting:
                    yield from _results(*waiting.popleft())
                yield from _by_position(window.size, (found for batch in window.batches for found in batch()))
                continue
            waiting.append((window.size, list(map(BackgroundCall, window.batches))))
            while waiting and (window.is_last or len(waiting) > WINDOWS_AHEAD):
                yield from _results(*waiting.popleft())
        while waiting:
            yield from _results(*waiting.popleft())
        if failure is not None:
            raise failure
    finally:
        for _, batches in waiting:
            for batch in batches:
                batch.cancel()


def _results(size: int, batches: Iterable[BackgroundCall[Iterable[tuple[int, Analysis]]]]) -> Iterator[Analysis]:
    return _by_position(size, (found for batch in batches for found in batch.result()))


def _by_position(size: int, results: Iterable[tuple[int, Analysis]]) -> Iterator[Analysis]:
    found = dict(results)
    return (found[place] for place in range(size))
