"""Output of a training run: a summary, progress, a line for every epoch, and the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from ramify.training.loop import Progress as TrainingProgress
from ramify.training.summary import Summary, Verdict

FIRST_STEPS, FIRST_SECONDS = 20, 10.0
"""The expected time is measured over the first steps, or over the steps in this number of seconds."""
LINE_SHARE, LINE_SECONDS = 0.1, 60.0
"""Without a terminal, a line is printed after this share of an epoch or this time, whichever is later."""

Clock = Callable[[], float]


@contextmanager
def training_display(console: Console, clock: Clock = time.monotonic) -> Iterator[dict[str, Any]]:
    """The callbacks of `ramify.train`, which print to `console`: a progress bar in a terminal, else lines."""
    display = _TrainingDisplay(console, clock)
    try:
        yield {name: getattr(display, name) for name in ("on_start", "on_teacher", "on_progress", "on_epoch", "on_end")}
    finally:
        display.stop_bar()


class _TrainingDisplay:
    def __init__(self, console: Console, clock: Clock) -> None:
        self.console = console
        self.bar = Progress(
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[status]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.pace = _Pace(clock)
        self.epochs, self.shows_perplexity = 0, True
        self.line_at: tuple[float, float] | None = None
        """Epochs done and time when the last line was printed"""

    def on_start(self, summary: Summary) -> None:
        for line in summary_lines(summary):
            self._print(line)
        for note in summary.notes:
            self._note(note)
        # The objective of a focused run includes the scores of its teachers, so it has no training perplexity.
        self.epochs, self.shows_perplexity = summary.epochs, summary.has_likelihood and not summary.teachers
        first = min(summary.epochs_done + 1, summary.epochs)
        self.task = self.bar.add_task("", total=self.epochs, epoch=f"{first}/{self.epochs}", status="starting")
        self.bar.start()

    def on_teacher(self, done: int, total: int) -> None:
        self.bar.update(self.task, status=f"teachers: {done:,} of {total:,} sentences parsed")
        if not self.console.is_terminal and done == total:
            self._print(f"teachers parsed {total:,} sentences")

    def on_progress(self, now: TrainingProgress) -> None:
        share = now.sentences_done / now.sentences
        done = now.epoch - 1 + share
        if self.pace.measure(done):
            expected = duration(self.pace.seconds_for(self.epochs - done))
            self._print(f"time    about {expected} left, estimated from the first steps, without dev evaluation")
        status = f"{now.sentences_per_second:.0f} sentences/s"
        if self.shows_perplexity:
            status += f", perplexity {now.perplexity:.1f}"
        if share == 1:
            status += ", evaluating on dev"
        elif self.pace.is_known:
            status += f", {duration(self.pace.seconds_for(self.epochs - done))} left"
        epoch = f"{now.epoch}/{self.epochs}"
        self.bar.update(self.task, completed=done, epoch=epoch, status=status)
        if not self.console.is_terminal and self._line_is_due(done):
            self._print(f"epoch {epoch}, {share:.0%}: {status}")

    def on_epoch(self, record: dict[str, Any]) -> None:
        others = f", agreement {record['dev_agreement']:.1f}" if "dev_agreement" in record else ""
        others += f", S-F1 {record['dev_f1']:.1f}" if "dev_f1" in record else ""
        if record["dev_perplexity"] is None:
            reached = f"loss {record['dev_loss']:.4f} on dev"
        else:
            seen = record["train_perplexity"]
            in_training = f"{float('inf') if seen is None else seen:.1f} in training, " if self.shows_perplexity else ""
            reached = f"perplexity {in_training}{record['dev_perplexity']:.1f} on dev"
        self._print(f"epoch {record['epoch']}: {reached}{others} ({record['seconds']:.0f} s)")

    def on_end(self, verdict: Verdict) -> None:
        self.stop_bar()
        for line in verdict_lines(verdict):
            self._print(line)
        if (winner := verdict.lost_to) is not None:
            self._note(
                f"on dev, the trees of this model score below {winner} branching, which needs no training. More "
                "text, another seed or other settings may help."
            )
        if verdict.wrong_side is not None:
            self._note(
                f"the trees of this model branch mostly to the {verdict.wrong_side}, but the order of frequent words "
                "shows the other side. Such trees are usually poor: try another --seed, or ramify focus."
            )

    def stop_bar(self) -> None:
        if self.bar.live.is_started:  # otherwise some versions of rich print an empty line
            self.bar.stop()

    def _line_is_due(self, done: float) -> bool:
        now = self.pace.clock()
        if self.line_at is None:
            self.line_at = done, now
        due = done - self.line_at[0] >= LINE_SHARE and now - self.line_at[1] >= LINE_SECONDS
        if due:
            self.line_at = done, now
        return due

    def _print(self, line: str) -> None:
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _note(self, text: str) -> None:
        self.console.print(Text.assemble(("note: ", "bold yellow"), text), soft_wrap=True)


class _Pace:
    """Seconds per epoch, measured after the first step, which may include compilation."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.is_known = False
        self._steps = 0

    def measure(self, done: float) -> bool:
        """Record a step, after which `done` epochs are done; true when the pace becomes known."""
        now = self.clock()
        if not self._steps:
            self._began = done, now
        self._steps += 1
        self._epochs, self._seconds = done - self._began[0], now - self._began[1]
        enough = self._steps > FIRST_STEPS or (self._steps > 1 and self._seconds >= FIRST_SECONDS)
        becomes_known = enough and not self.is_known
        self.is_known = self.is_known or enough
        return becomes_known

    def seconds_for(self, epochs: float) -> float:
        """The time of this many epochs."""
        return epochs * self._seconds / self._epochs if self._epochs > 0 else 0.0


def summary_lines(summary: Summary) -> Iterator[str]:
    """The summary before the first step."""
    parts = [f"{summary.read:,} sentences read", f"{summary.used:,} used"]
    if summary.held_out:
        parts.append(f"{summary.held_out:,} held out as dev set")
    if summary.dropped:
        reasons = [f"{count:,} {reason}" for reason, count in summary.dropped.items()]
        listed = ", ".join(reasons if len(reasons) > 1 else summary.dropped)
        parts.append(f"{sum(summary.dropped.values()):,} dropped ({listed})")
    if summary.blank_lines:
        parts.append(f"{summary.blank_lines:,} blank lines skipped")
    yield f"data    {Path(summary.source).name}: {', '.join(parts)}"
    if not summary.held_out:
        trees = ", with trees, used only for scores" if summary.dev_has_trees else ""
        yield f"dev     {Path(summary.dev_source).name}: {summary.dev:,} sentences{trees}"
    yield f"words   {summary.words:,} in training, {summary.vocabulary:,} in the vocabulary"
    rule = f"; words seen fewer than {summary.min_count} times are unknown" if summary.min_count > 1 else ""
    yield f"unknown {summary.unknown} in training, {summary.dev_unknown} on dev{rule}"
    if summary.breaks:
        yield f"breaks  {summary.breaks:,} places with punctuation between words; constituents should not cross them"
    sizes = "".join(f", {name} {size:,}" for name, size in summary.sizes.items())
    yield f"model   {summary.model}{sizes}: {summary.parameters:,} parameters"
    if summary.recommended:
        listed = ", ".join(f"{name.replace('_', ' ')} {_shown(value)}" for name, value in summary.recommended.items())
        yield f"for     {summary.used:,} sentences: {listed}"
    if summary.branching:
        side = "right" if summary.branching > 0 else "left"
        yield f"trees   favour {side} branching (bonus {abs(summary.branching):g}), the likely side of the language"
    if summary.focus is not None:
        yield f"focus   {summary.focus:g} on the spans of {', '.join(summary.teachers)}"
    elif summary.teachers:
        yield f"learns  from {', '.join(summary.teachers)}"
    done = f", {summary.epochs_done:,} already done" if summary.epochs_done else ""
    yield f"epochs  {summary.epochs:,} at most{done}"


def _shown(value: object) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def verdict_lines(verdict: Verdict) -> Iterator[str]:
    """The result of the run."""
    reached = "" if verdict.dev_perplexity is None else f", dev perplexity {verdict.dev_perplexity:.1f}"
    yield f"kept    epoch {verdict.best_epoch} of {verdict.epochs}{reached}"
    if verdict.dev_f1 is not None:
        others = ", ".join(f"{name} branching {f1:.1f}" for name, f1 in verdict.branching.items())
        yield f"S-F1    {verdict.dev_f1:.1f} on dev; {others} on the same sentences"


def duration(seconds: float) -> str:
    """A duration, rounded."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{round(hours / 24)} days"
