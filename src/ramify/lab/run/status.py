"""The state of the jobs of an experiment, shown as a table in a terminal and as lines elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
from rich.console import Console, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from ramify.evaluation.coverage import NOT_COMPARABLE
from ramify.lab.results.schema import Epoch, Result
from ramify.lab.run.jobs import Event
from ramify.terminal.tables import plain_table


@dataclass
class Status:
    """The state of a job, updated by the events of its process."""

    name: str
    state: str = "waiting"
    """waiting, starting, training, scoring (and by which decoder), finished, stopped, failed"""
    epoch: int | None = None
    epochs: int | None = None
    dev_perplexity: float | None = None
    dev_f1: float | None = None
    f1: float | None = None
    """Of the set that is scored, by the first decoder"""
    seconds_left: float | None = None
    """Of training"""
    vocabulary: str = ""
    """Its data, and settings that decide which words are known"""
    error: str = ""
    details: str = ""

    @property
    def is_running(self) -> bool:
        """Whether a process is busy with it."""
        return self.state not in ("waiting", "finished", "stopped", "failed")

    def take(self, event: dict[str, Any]) -> None:
        """Update the state by an event."""
        kind = event["event"]
        if kind == "state":
            self.state, self.seconds_left = event["state"], None
        elif kind == "progress":
            self.epoch, self.epochs, self.seconds_left = event["epoch"], event["epochs"], event["seconds_left"]
        elif kind == "epoch":
            self.resume([msgspec.convert(event["record"], Epoch)])
        elif kind == "failed":
            self.state, self.error, self.seconds_left = "failed", event["error"], None
            self.details = event.get("details", self.details)
        elif kind == "finished":
            self.finish(event["result"])

    def resume(self, epochs: Sequence[Epoch]) -> None:
        """These epochs are done."""
        for last in epochs[-1:]:
            self.epoch, self.dev_perplexity, self.dev_f1 = last.epoch, last.dev_perplexity, last.dev_f1

    def finish(self, result: Result | None) -> None:
        """All is done; its figures are those of the epoch that was kept."""
        self.state, self.seconds_left = "finished", None
        if result is None:
            return
        self.f1 = None if result.evaluation is None else result.f1
        if result.epochs:  # which an average does not have
            last = result.epochs[-1]
            self.resume([epoch for epoch in result.epochs if epoch.epoch == last.best_epoch])
            self.epoch = last.epoch


HEADS = ("run", "state", "epoch", "dev perplexity", "dev S-F1", "S-F1", "time left")
COLOURS = {"finished": "green", "failed": "red", "stopped": "yellow", "waiting": "dim"}
OTHER_LINES = 8
"""Lines of the terminal that are not rows of the table."""

Callbacks = tuple[Callable[[list[Status]], None], Callable[[Status, Event], None]]


@contextmanager
def experiment_progress(console: Console) -> Iterator[Callbacks]:
    """Callbacks for the beginning of an experiment and for every change."""
    statuses: list[Status] = []
    printed: set[str] = set()

    def draw() -> RenderableType:
        return status_table(statuses, console.height - OTHER_LINES) if statuses else ""

    with Live(get_renderable=draw, console=console, transient=True, auto_refresh=console.is_terminal) as live:

        def on_begin(found: list[Status]) -> None:
            statuses[:] = found
            console.print(f"{summary(found)}.", highlight=False)
            for line in () if console.is_terminal else vocabulary_note(found):  # in a terminal it is below the table
                console.print(line, highlight=False)

        def on_change(status: Status, event: Event) -> None:
            line = event_line(status, event, lines=not console.is_terminal)
            if line is not None and line not in printed:
                printed.add(line)
                console.print(line, markup=False, highlight=False, soft_wrap=True)
            if console.is_terminal:
                live.refresh()

        yield on_begin, on_change


def event_line(status: Status, event: Event, lines: bool) -> str | None:
    """A line about an event, if it needs one; in a terminal only notes and failures do, as the table shows the rest."""
    kind = event["event"]
    if kind == "note":
        return f"note: {event['text']}"
    if kind == "failed" and event.get("final"):
        return f"{status.name} failed: {status.error}"
    if not lines:
        return None
    if kind == "epoch":
        f1 = "" if status.dev_f1 is None else f", S-F1 {status.dev_f1:.1f}"
        seconds = event["record"]["seconds"]
        perplexity = status.dev_perplexity
        reached = "" if perplexity is None else f", perplexity {perplexity:.1f} on dev"
        return f"{status.name}: epoch {status.epoch} of {status.epochs}{reached}{f1} ({seconds:.0f} s)"
    if kind == "finished":
        return f"{status.name}: finished" + ("" if status.f1 is None else f", S-F1 {status.f1:.2f}")
    return None


def summary(statuses: Sequence[Status]) -> str:
    """The number of jobs in each state."""
    counts = Counter("running" if status.is_running else status.state for status in statuses)
    return f"{len(statuses)} jobs: " + ", ".join(f"{count} {state}" for state, count in counts.items())


def vocabulary_note(statuses: Sequence[Status]) -> list[str]:
    """A line where runs on the same data know different words."""
    known = {status.vocabulary for status in statuses if status.vocabulary}
    data = {vocabulary.partition(":")[0] for vocabulary in known}
    return [NOT_COMPARABLE] if len(known) > len(data) else []


def status_table(statuses: Sequence[Status], most: int | None = None) -> Table:
    """A row for each job; if there is no room for all, the running ones, then those failed, stopped and waiting."""
    table = plain_table(*HEADS)
    table.columns[1].justify = table.caption_justify = "left"
    table.caption = "\n".join([summary(statuses), *vocabulary_note(statuses)])
    by_urgency = sorted(range(len(statuses)), key=lambda place: _urgency(statuses[place]))
    for place in sorted(by_urgency if most is None else by_urgency[: max(most, 1)]):
        status = statuses[place]
        colour = COLOURS.get(status.state, "bold")
        table.add_row(
            escape(status.name),
            f"[{colour}]{escape(status.state)}[/]",
            "" if status.epoch is None else f"{status.epoch}/{status.epochs}",
            "" if status.dev_perplexity is None else f"{status.dev_perplexity:.1f}",
            "" if status.dev_f1 is None else f"{status.dev_f1:.1f}",
            "" if status.f1 is None else f"{status.f1:.2f}",
            "" if status.seconds_left is None else str(timedelta(seconds=round(status.seconds_left))),
        )
    return table


def _urgency(status: Status) -> int:
    if status.is_running:
        return 0
    return {"failed": 1, "stopped": 2, "waiting": 3}.get(status.state, 4)
