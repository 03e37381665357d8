"""Results as tables and lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ramify.corpus.vocabulary import UnknownCount
from ramify.evaluation.agreement import BRANCHING
from ramify.evaluation.calibration import Reliability
from ramify.evaluation.coverage import NOT_COMPARABLE, are_comparable
from ramify.evaluation.dependencies import HeadEvaluation
from ramify.evaluation.failures import describe_failures, describe_log_space
from ramify.evaluation.gold import Prediction
from ramify.evaluation.significance import Comparison
from ramify.evaluation.spans import CONVENTIONS
from ramify.parser import Evaluation, Parser
from ramify.terminal.characters import ascii_if_needed


def results_console() -> Console:
    """Standard output; in a file or a pipe, lines are as long as a table is wide."""
    return Console(width=None if sys.stdout.isatty() else 1000, highlight=False, soft_wrap=True)


def evaluation_table(evaluations: Sequence[Evaluation]) -> Table:
    """Systems below each other; all must share one signature, which the caller prints."""
    table = plain_table(
        "system", "S-F1", "C-F1", ascii_if_needed("S-F1 ≤10"), ascii_if_needed("≤40"), "perplexity", "sentences"
    )
    if not are_comparable(result.coverage for result in evaluations if result.perplexity is not None):
        table.caption, table.caption_justify = NOT_COMPARABLE, "left"
    for result in evaluations:
        std = ascii_if_needed(f"±{result.f1_std:.2f}") if result.run_f1 else ""
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


def head_table(evaluations: Sequence[HeadEvaluation]) -> Table:
    """Systems below each other; all must share one signature, which the caller prints."""
    table = plain_table("system", "directed", "undirected", "words", "sentences")
    for result in evaluations:
        std = ascii_if_needed(f"±{result.directed_std:.2f}") if result.run_directed else ""
        scores = result.scores
        figures = (f"{scores.directed:.2f}{std}", f"{scores.undirected:.2f}", str(scores.words), str(scores.sentences))
        table.add_row(escape(result.system), *figures)
    return table


def heads_by_length(evaluations: Sequence[HeadEvaluation]) -> Table:
    """Directed accuracy of each system for each range of sentence lengths."""
    names = [escape(result.system) for result in evaluations]
    table = plain_table("words", "sentences", *names, title="Directed accuracy by length of sentence")
    for span, scores in evaluations[0].by_length.items():
        found = (f"{result.by_length[span].directed:.2f}" for result in evaluations)
        table.add_row(span, str(scores.sentences), *found)
    return table


def coverage_lines(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """For each system with a vocabulary: unknown words, other perplexities, and the signature of all perplexities."""
    for result in evaluations:
        if result.coverage is not None and not result.run_f1:
            found = result.coverage
            count = UnknownCount(found.words, found.unknown)
            yield f"{result.system}: unknown {count}; perplexity {found.figures()} ({found.perplexity_signature})"


def run_lines(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """Lines with figures that do not fit into a row for the mean of several runs."""
    for result in evaluations:
        if result.run_f1:
            best = result.best_by_dev_likelihood
            chosen = f"; best by dev likelihood: {best}" if best else ""
            yield (
                f"{result.system}: S-F1 {result.scores.sentence_f1:.2f} {ascii_if_needed('±')} {result.f1_std:.2f} "
                f"over {len(result.run_f1)} runs, max {result.f1_max:.2f}{chosen}"
            )


def failure_lines(
    systems: Iterable[Evaluation | Prediction | HeadEvaluation],
    sentences: int,
    consequence: str = "They are scored as flat trees.",
) -> Iterator[str]:
    """The sentences without a parse, by their numbers in the treebank, and the number that needed log space."""
    for result in systems:
        if result.failures:
            counts = {reason: len(numbers) for reason, numbers in result.failures.items()}
            named = {reason: [f"sentence {number}" for number in found] for reason, found in result.failures.items()}
            failures = describe_failures(counts, named, sentences)
            yield f"{result.system}: {failures} {consequence}"
        if result.in_log_space:
            yield f"{result.system}: {describe_log_space(result.in_log_space)}"


def agreement_table(agreement: Mapping[str, Any]) -> Table:
    """S-F1 between the members of an ensemble, their average, and left and right branching."""
    columns, f1 = agreement["columns"], agreement["sentence_f1"]
    title = f"S-F1 between the members, over {agreement['sentences']:,} sentences"
    table = plain_table("", *map(escape, columns), title=title)
    for name in columns[: -len(BRANCHING)]:
        values = ("" if other == name else f"{value:.1f}" for other, value in zip(columns, f1[name], strict=True))
        table.add_row(escape(name), *values)
    return table


def collapse_lines(collapsed: Mapping[str, str]) -> Iterator[str]:
    """The collapsed members of an ensemble."""
    for name, reason in collapsed.items():
        yield f"{name} may have collapsed: {reason}; consider averaging without it."


def detail_tables(evaluations: Sequence[Evaluation]) -> Iterator[Table]:
    """Tables: both conventions; by length, by label; induced labels and tags, and calibration, if available."""
    names = [escape(result.system) for result in evaluations]
    first = evaluations[0]
    pooled = plain_table("system", "precision", "recall", "exact match", "S-F1 tn", "C-F1 tn", "S-F1 kim", "C-F1 kim")
    for result in evaluations:
        scores, both = result.scores, result.by_convention
        values = [scores.precision, scores.recall, scores.exact_match]
        values += [value for name in CONVENTIONS for value in (both[name].sentence_f1, both[name].corpus_f1)]
        pooled.add_row(escape(result.system), *(f"{value:.2f}" for value in values))
    yield pooled
    by_length = plain_table("words", "sentences", *names, title="S-F1 by length of sentence")
    for span, scores in first.by_length.items():
        found = (f"{result.by_length[span].sentence_f1:.2f}" for result in evaluations)
        by_length.add_row(span, str(scores.sentences), *found)
    yield by_length
    by_label = plain_table("label", "share", "mean length", *names, title="Recall by label")
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
    table = plain_table("system", *heads, title="Induced labels of correct brackets, and induced tags")
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
    heads = ["nonterminals used", "in 90 %", "entropy (bits)", "preterminals used", "in 90 %", "entropy (bits)"]
    heads += ["rule cosine"] if any(result.rule_cosine is not None for result in evaluations) else []
    table = plain_table("system", *heads, title="Symbols in the predicted trees")
    for result in evaluations:
        cells = []
        for used in (result.nonterminals_used, result.preterminals_used):
            cells += ["", "", ""] if used is None else [str(used.used), str(used.carrying), f"{used.entropy:.2f}"]
        cells.append("" if result.rule_cosine is None else f"{result.rule_cosine:.3f}")
        table.add_row(escape(result.system), *cells[: len(heads)])
    return table


def _reliability_table(system: str, calibration: Reliability) -> Table:
    error = calibration.expected_calibration_error
    title = f"Calibration of span posteriors: {escape(system)} (expected calibration error {error:.4f})"
    table = plain_table("posterior", "spans", "mean posterior", "share gold", title=title)
    for row in calibration.bins:
        values = ("" if value is None else f"{value:.4f}" for value in (row.mean_posterior, row.share_gold))
        table.add_row(f"{row.low:.1f}-{row.high:.1f}", str(row.spans), *values)
    return table


def evalb_table(evaluations: Sequence[Evaluation]) -> Table:
    """EVALB's summary, a row for each system and length limit."""
    crossing = ("crossing", "no crossing", ascii_if_needed("≤2 crossing"))
    heads = ("recall", "precision", "F1", "complete", *crossing, "tags", "sentences")
    table = plain_table("system", "length", *heads, title="EVALB")
    for result in evaluations:
        for name, scores in (result.evalb or {}).items():
            *values, sentences = astuple(scores)
            table.add_row(escape(result.system), name, *(f"{value:.2f}" for value in values), str(sentences))
    return table


def comparison_lines(names: Sequence[str], means: Sequence[float], found: Comparison) -> Iterator[str]:
    """The two systems, their difference and its significance."""
    for side, name, mean in zip("AB", names, means, strict=True):
        yield f"{side}: {name}, S-F1 {mean:.2f}"
    yield (
        f"B - A: {found.difference:+.2f}, 95 % interval {found.low:+.2f} to {found.high:+.2f}; "
        f"p = {found.bootstrap_p:.4f} (paired bootstrap), {found.permutation_p:.4f} (permutation); "
        f"{found.samples} samples, seed {found.seed}"
    )
    yield f"B is better on {found.better} of {found.sentences} sentences, A on {found.worse}"


def plain_table(*heads: str, title: str | None = None) -> Table:
    """A column of right-aligned numbers; in a narrow terminal, cells are folded, so that no digit is lost."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if number else "left", overflow="fold")
    return table


def bench_table(record: Mapping[str, Any]) -> Table:
    """One measurement, with one figure and its unit per line; times in milliseconds, shares in percent."""
    table = plain_table("figure", "value", "unit")
    table.columns[2].justify = "left"
    for key, value in record.items():
        name, unit, factor = _FIGURES.get(key, (key, "", 1))
        if isinstance(value, float):
            value *= factor
            value = f"{value:.4g}" if value < 1000 else f"{value:,.0f}"
        if value is not None:
            table.add_row(name, str(value), unit)
    return table


_FIGURES = {
    "batch": ("batch", "sentences", 1),
    "length": ("length", "words", 1),
    "vocabulary": ("vocabulary", "words", 1),
    "seconds": ("time, fastest", "ms", 1000),
    "seconds_median": ("time, median", "ms", 1000),
    "sentences_per_second": ("speed", "sentences/s", 1),
    "tokens_per_second": ("speed", "tokens/s", 1),
    "gflop": ("work", "GFLOP", 1),
    "peak_gflop_per_second": ("matrix product of the machine", "GFLOP/s", 1),
    "share_of_peak": ("share of it", "%", 100),
    "sentences_per_second_per_peak_gflop": ("speed for each GFLOP/s of it", "sentences/s", 1),
    "peak_memory_mb": ("memory, peak", "MB", 1),
    "task_memory_mb": ("memory of the task alone", "MB", 1),
    "predicted_memory_mb": ("the same, predicted", "MB", 1),
    "reference_sentences_per_second": ("speed of the reference", "sentences/s", 1),
}
"""The figures of `ramify bench`: name, unit, and the factor to this unit"""


def sweep_table(axis: str, records: Sequence[Mapping[str, Any]], exponent: float) -> Table:
    """One axis of a sweep, with one size per line."""
    unit = {"length": "words", "symbols": "preterminals", "batch": "sentences"}[axis]
    heads = (
        f"{axis} ({unit})",
        "time (ms)",
        "speed (sentences/s)",
        "share of peak (%)",
        "memory (MB)",
        "predicted (MB)",
    )
    shown_heads = heads if records[0]["predicted_memory_mb"] is not None else heads[:-1]
    table = plain_table(*shown_heads, title=f"time ~ {axis}^{exponent:.2f}")
    for record in records:
        size = record["preterminals" if axis == "symbols" else axis]
        figures = (record["sentences_per_second"], 100 * record["share_of_peak"])
        memory = [record[name] for name in ("task_memory_mb", "predicted_memory_mb")[: len(shown_heads) - 4]]
        table.add_row(
            str(size),
            f"{record['seconds'] * 1e3:.2f}",
            *(f"{figure:.3g}" for figure in figures),
            *(f"{figure:.0f}" for figure in memory),
        )
    return table


def rules_table(rules: Sequence[tuple[str, str, str, float]], parser: Parser, title: str) -> Table:
    """Binary rules with their probabilities; a preterminal is shown with its most probable words."""
    table = plain_table("rule", "probability", title=title)
    for parent, left, right, probability in rules:
        children = " ".join(_with_words(child, parser) for child in (left, right))
        table.add_row(f"{parent} {ascii_if_needed('→')} {children}", f"{probability:.3f}")
    return table


def _with_words(symbol: str, parser: Parser) -> str:
    if symbol not in parser.tags:
        return symbol
    return f"{symbol} ({', '.join(word for word, _ in parser.strongest_words(symbol, 3))})"
