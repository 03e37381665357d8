"""What a person sees in the terminal: progress, tables, trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from ramify.parser import Evaluation, Parser
from ramify.training.loop import Progress as TrainingProgress

ProgressCallbacks = tuple[Callable[[TrainingProgress], None], Callable[[dict[str, Any]], None]]


@contextmanager
def training_progress(console: Console, epochs: int) -> Iterator[ProgressCallbacks]:
    """A bar with epoch, sentences/s, perplexity and time left, and a line for every finished epoch."""
    bar = Progress(
        TextColumn("epoch {task.fields[epoch]}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[rate]:.0f} sentences/s"),
        TextColumn("perplexity {task.fields[perplexity]:.1f}"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=None, epoch=f"1/{epochs}", rate=0.0, perplexity=float("nan"))

        def on_progress(now: TrainingProgress) -> None:
            bar.update(
                task,
                total=epochs * now.sentences,
                completed=(now.epoch - 1) * now.sentences + now.sentences_done,
                epoch=f"{now.epoch}/{epochs}",
                rate=now.sentences_per_second,
                perplexity=now.perplexity,
            )

        def on_epoch(record: dict[str, Any]) -> None:
            seen = record["train_perplexity"]
            f1 = f", S-F1 {record['dev_f1']:.1f}" if "dev_f1" in record else ""
            console.print(
                f"epoch {record['epoch']}: perplexity {float('inf') if seen is None else seen:.1f} in training, "
                f"{record['dev_perplexity']:.1f} on dev{f1} ({record['seconds']:.0f} s)",
                highlight=False,
            )

        yield on_progress, on_epoch


@contextmanager
def counting(console: Console, what: str) -> Iterator[Callable[[], None]]:
    """A counter for work of unknown size."""
    columns = (TextColumn(what), BarColumn(bar_width=24), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda: bar.advance(task)


@contextmanager
def reading_progress(console: Console, size: int | None, visible: bool) -> Iterator[Callable[[int], None]]:
    """A bar over the bytes of a file, where its size is known and nothing else is printed to the terminal."""
    columns = (BarColumn(bar_width=24), TaskProgressColumn(), TimeRemainingColumn(), TextColumn("left"))
    hidden = size is None or not visible or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("", total=size)
        yield lambda count: bar.advance(task, count)


def evaluation_table(evaluations: Sequence[Evaluation]) -> Table:
    """Systems below each other; all must share one signature, which the caller prints."""
    table = Table("system", "S-F1", "C-F1", "perplexity", "sentences")
    for column in table.columns[1:]:
        column.justify = "right"
    for result in evaluations:
        scores = result.scores
        shown = "" if result.perplexity is None else f"{result.perplexity:.1f}"
        table.add_row(
            result.system,
            f"{scores.sentence_f1:.2f}",
            f"{scores.corpus_f1:.2f}",
            shown,
            str(scores.sentences),
        )
    return table


def bench_table(record: Mapping[str, Any]) -> Table:
    """One measurement, a figure a line."""
    table = Table("figure", "value")
    table.columns[1].justify = "right"
    for name, value in record.items():
        precise = isinstance(value, float) and value < 1000
        shown = f"{value:.4g}" if precise else f"{value:,.0f}" if isinstance(value, float) else str(value)
        table.add_row(name.replace("_", " "), shown)
    return table


def sweep_table(axis: str, records: Sequence[Mapping[str, Any]], exponent: float) -> Table:
    """One axis of a sweep, a size a line."""
    table = Table(axis, "ms", "sentences/s", "share of peak", title=f"time ~ {axis}^{exponent:.2f}")
    for column in table.columns:
        column.justify = "right"
    for record in records:
        size = record["preterminals" if axis == "symbols" else axis]
        figures = (record["sentences_per_second"], record["share_of_peak"])
        table.add_row(str(size), f"{record['seconds'] * 1e3:.2f}", *(f"{figure:.3g}" for figure in figures))
    return table


def rules_table(rules: Sequence[tuple[str, str, str, float]], parser: Parser, title: str) -> Table:
    """Binary rules with their probabilities; a preterminal is shown with its most probable words."""
    table = Table("rule", "probability", title=title)
    table.columns[1].justify = "right"
    for parent, left, right, probability in rules:
        children = " ".join(_with_words(child, parser) for child in (left, right))
        table.add_row(f"{parent} → {children}", f"{probability:.3f}")
    return table


def _with_words(symbol: str, parser: Parser) -> str:
    if symbol not in parser.tags:
        return symbol
    return f"{symbol} ({', '.join(word for word, _ in parser.strongest_words(symbol, 3))})"
