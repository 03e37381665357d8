"""What a person sees in the terminal: progress, tables, trees."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from ramify.corpus.vocabulary import UnknownCount
from ramify.evaluation.calibration import Reliability
from ramify.evaluation.coverage import NOT_COMPARABLE, are_comparable
from ramify.evaluation.significance import Comparison
from ramify.evaluation.spans import CONVENTIONS
from ramify.parser import Evaluation, Parser
from ramify.training.data import Data
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
        disable=not console.is_terminal,
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


def unknown_lines(data: Data) -> Iterator[str]:
    """How many words of the training and dev text are unknown, and what may be wrong with that."""
    train, dev = data.unknown["train"], data.unknown["dev"]
    rule = f"; words seen fewer than {data.min_count} times are unknown" if data.min_count > 1 else ""
    yield f"unknown: {train} in training, {dev} on dev{rule}"
    if dev.unknown and not train.unknown:
        yield (
            "note: no word of the training text is unknown, so the grammar cannot learn where unknown words stand; "
            "--min-count 2 makes words seen once unknown."
        )


@contextmanager
def counting(console: Console, what: str) -> Iterator[Callable[[], None]]:
    """A counter for work of unknown size."""
    columns = (TextColumn(what), BarColumn(bar_width=24), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
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


def results_console() -> Console:
    """Standard output; into a file or a pipe lines are as long as a table is wide."""
    return Console(width=None if sys.stdout.isatty() else 1000, highlight=False, soft_wrap=True)


def evaluation_table(evaluations: Sequence[Evaluation]) -> Table:
    """Systems below each other; all must share one signature, which the caller prints."""
    table = _table("system", "S-F1", "C-F1", "S-F1 ≤10", "≤40", "perplexity", "sentences")
    if not are_comparable(result.coverage for result in evaluations if result.perplexity is not None):
        table.caption, table.caption_justify = NOT_COMPARABLE, "left"
    for result in evaluations:
        std = f"±{result.f1_std:.2f}" if result.run_f1 else ""
        short = (result.by_length.get(name) for name in ("2-10", "2-40"))
        table.add_row(
            escape(result.system),
            f"{result.scores.sentence_f1:.2f}{std}",
            f"{result.scores.corpus_f1:.2f}",
            *("" if scores is None else f"{scores.sentence_f1:.2f}" for scores in short),
            "" if result.perplexity is None else f"{result.perplexity:.1f}",
            str(result.scores.sentences),
        )
    return table


def coverage_lines(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """Of each system with a vocabulary: unknown words, other perplexities, and the signature of all perplexities."""
    for result in evaluations:
        if result.coverage is not None and not result.run_f1:
            found = result.coverage
            count = UnknownCount(found.words, found.unknown)
            yield f"{result.system}: unknown {count}; perplexity {found.figures()} ({found.perplexity_signature})"


def run_lines(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """What a row for the mean of several runs has no place for."""
    for result in evaluations:
        if result.run_f1:
            best = result.best_by_dev_likelihood
            chosen = f"; by dev likelihood the best is {best}" if best else ""
            yield (
                f"{result.system}: S-F1 {result.scores.sentence_f1:.2f} ± {result.f1_std:.2f} over "
                f"{len(result.run_f1)} runs, max {result.f1_max:.2f}{chosen}"
            )


def detail_tables(evaluations: Sequence[Evaluation]) -> Iterator[Table]:
    """Both conventions; by length, by label; induced labels and tags, and calibration, where there are any."""
    names = [escape(result.system) for result in evaluations]
    first = evaluations[0]
    pooled = _table("system", "precision", "recall", "exact match", "S-F1 tn", "C-F1 tn", "S-F1 kim", "C-F1 kim")
    for result in evaluations:
        scores, both = result.scores, result.by_convention
        values = [scores.precision, scores.recall, scores.exact_match]
        values += [value for name in CONVENTIONS for value in (both[name].sentence_f1, both[name].corpus_f1)]
        pooled.add_row(escape(result.system), *(f"{value:.2f}" for value in values))
    yield pooled
    by_length = _table("words", "sentences", *names, title="S-F1 by length of sentence")
    for span, scores in first.by_length.items():
        found = (f"{result.by_length[span].sentence_f1:.2f}" for result in evaluations)
        by_length.add_row(span, str(scores.sentences), *found)
    yield by_length
    by_label = _table("label", "share", "mean length", *names, title="Recall by label")
    for label, about in first.recall_by_label.items():
        found = (f"{result.recall_by_label[label].recall:.1f}" for result in evaluations)
        by_label.add_row(escape(label), f"{about.share:.1f}", f"{about.mean_length:.1f}", *found)
    yield by_label
    if any(result.labels or result.tags for result in evaluations):
        yield _agreement_table(evaluations)
    if any(result.nonterminals_used for result in evaluations):
        yield _usage_table(evaluations)
    for result in evaluations:
        if result.calibration is not None:
            yield _reliability_table(result.system, result.calibration)


def _agreement_table(evaluations: Sequence[Evaluation]) -> Table:
    heads = ("labels: many-to-one", "V-measure", "recall-homogeneity", "tags: many-to-one", "V-measure")
    table = _table("system", *heads, title="Induced labels of correct brackets, and induced tags")
    for result in evaluations:
        labels, tags = result.labels, result.tags
        values = (
            labels and labels.many_to_one,
            labels and labels.v_measure,
            result.recall_homogeneity,
            tags and tags.many_to_one,
            tags and tags.v_measure,
        )
        table.add_row(escape(result.system), *("" if value is None else f"{value:.2f}" for value in values))
    return table


def _usage_table(evaluations: Sequence[Evaluation]) -> Table:
    heads = ("nonterminals used", "in 90 %", "entropy (bits)", "preterminals used", "in 90 %", "entropy (bits)")
    table = _table("system", *heads, title="Symbols in the predicted trees")
    for result in evaluations:
        cells = []
        for used in (result.nonterminals_used, result.preterminals_used):
            cells += ["", "", ""] if used is None else [str(used.used), str(used.carrying), f"{used.entropy:.2f}"]
        table.add_row(escape(result.system), *cells)
    return table


def _reliability_table(system: str, calibration: Reliability) -> Table:
    error = calibration.expected_calibration_error
    title = f"Calibration of span posteriors: {escape(system)} (expected calibration error {error:.4f})"
    table = _table("posterior", "spans", "mean posterior", "share gold", title=title)
    for row in calibration.bins:
        values = ("" if value is None else f"{value:.4f}" for value in (row.mean_posterior, row.share_gold))
        table.add_row(f"{row.low:.1f}-{row.high:.1f}", str(row.spans), *values)
    return table


def evalb_table(evaluations: Sequence[Evaluation]) -> Table:
    """EVALB's summary, a row for each system and length limit."""
    heads = ("recall", "precision", "F1", "complete", "crossing", "no crossing", "≤2 crossing", "tags", "sentences")
    table = _table("system", "length", *heads, title="EVALB")
    for result in evaluations:
        for name, scores in (result.evalb or {}).items():
            *values, sentences = astuple(scores)
            table.add_row(escape(result.system), name, *(f"{value:.2f}" for value in values), str(sentences))
    return table


def comparison_lines(names: Sequence[str], means: Sequence[float], found: Comparison) -> Iterator[str]:
    """The two systems, their difference and how sure it is."""
    for side, name, mean in zip("AB", names, means, strict=True):
        yield f"{side}: {name}, S-F1 {mean:.2f}"
    yield (
        f"B - A: {found.difference:+.2f}, 95 % interval {found.low:+.2f} to {found.high:+.2f}; "
        f"p = {found.bootstrap_p:.4f} (paired bootstrap), {found.permutation_p:.4f} (permutation); "
        f"{found.samples} samples, seed {found.seed}"
    )
    yield f"B is better on {found.better} of {found.sentences} sentences, A on {found.worse}"


def _table(*heads: str, title: str | None = None) -> Table:
    """Numbers to the right; in a narrow terminal cells are folded, so that no digit is lost."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if number else "left", overflow="fold")
    return table


def bench_table(record: Mapping[str, Any]) -> Table:
    """One measurement, a figure a line."""
    table = _table("figure", "value")
    for name, value in record.items():
        precise = isinstance(value, float) and value < 1000
        shown = f"{value:.4g}" if precise else f"{value:,.0f}" if isinstance(value, float) else str(value)
        table.add_row(name.replace("_", " "), shown)
    return table


def sweep_table(axis: str, records: Sequence[Mapping[str, Any]], exponent: float) -> Table:
    """One axis of a sweep, a size a line."""
    table = _table(axis, "ms", "sentences/s", "share of peak", title=f"time ~ {axis}^{exponent:.2f}")
    for record in records:
        size = record["preterminals" if axis == "symbols" else axis]
        figures = (record["sentences_per_second"], record["share_of_peak"])
        table.add_row(str(size), f"{record['seconds'] * 1e3:.2f}", *(f"{figure:.3g}" for figure in figures))
    return table


def rules_table(rules: Sequence[tuple[str, str, str, float]], parser: Parser, title: str) -> Table:
    """Binary rules with their probabilities; a preterminal is shown with its most probable words."""
    table = _table("rule", "probability", title=title)
    for parent, left, right, probability in rules:
        children = " ".join(_with_words(child, parser) for child in (left, right))
        table.add_row(f"{parent} → {children}", f"{probability:.3f}")
    return table


def _with_words(symbol: str, parser: Parser) -> str:
    if symbol not in parser.tags:
        return symbol
    return f"{symbol} ({', '.join(word for word, _ in parser.strongest_words(symbol, 3))})"
