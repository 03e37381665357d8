"""Progress bars and counters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn


@contextmanager
def progress_counter(console: Console, what: str) -> Iterator[Callable[[], None]]:
    """A counter for work of unknown size."""
    columns = (TextColumn(what), BarColumn(bar_width=24), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)
        yield lambda: bar.advance(task)


@contextmanager
def reading_progress(console: Console, size: int | None, visible: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar over the bytes of a file, if its size is known and nothing else is printed to the terminal."""
    columns = (BarColumn(bar_width=24), TaskProgressColumn(), TimeRemainingColumn(), TextColumn("left"))
    hidden = size is None or not visible or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("", total=size)
        yield lambda count: bar.advance(task, count)
