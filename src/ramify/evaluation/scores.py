"""The scores in tables, in percent, and perplexity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.errors import RamifyError
from ramify.evaluation.spans import SpanCounts

LENGTHS: tuple[tuple[int, int | None], ...] = ((2, 10), (11, 20), (21, 30), (31, 40), (41, None), (2, 40))
"""Ranges of lengths that are also scored separately: five bins, and 40 words or fewer"""


@dataclass(frozen=True)
class Scores:
    """Agreement of predicted with gold spans, in percent."""

    sentence_f1: float
    """F1 of every sentence, averaged"""
    corpus_f1: float
    """F1 of the counts of all sentences together, as are precision and recall"""
    precision: float
    recall: float
    exact_match: float
    """Sentences whose predicted and gold sets are equal"""
    sentences: int

    @classmethod
    def of(cls, counts: SpanCounts) -> Scores:
        """The scores of these sentences, of which there must be at least one."""
        hits, gold, predicted = (int(side.sum()) for side in (counts.hits, counts.gold, counts.predicted))
        return cls(
            sentence_f1=100 * float(counts.f1.mean()),
            corpus_f1=percent(2 * hits, gold + predicted),
            precision=percent(hits, predicted),
            recall=percent(hits, gold),
            exact_match=100 * float(np.mean(2 * counts.hits == counts.gold + counts.predicted)),
            sentences=len(counts),
        )


def scores_by_length(counts: SpanCounts, lengths: Sequence[int] | NDArray[np.integer]) -> dict[str, Scores]:
    """The scores of each range of `LENGTHS` that occurs, such as `2-10` or `41+`."""
    length = np.asarray(lengths)
    found: dict[str, Scores] = {}
    for shortest, longest in LENGTHS:
        chosen = (length >= shortest) & (length <= (longest or np.inf))
        if chosen.any():
            found[range_name(shortest, longest)] = Scores.of(counts.among(chosen))
    return found


def range_name(shortest: int, longest: int | None) -> str:
    """`2-10`, or `41+` without an upper limit."""
    return f"{shortest}+" if longest is None else f"{shortest}-{longest}"


def perplexity(log_probabilities: ArrayLike, lengths: ArrayLike) -> float:
    """exp(-sum log p / sum (length + 1)): one end of sentence is counted, although it is not generated."""
    total = float(np.sum(np.asarray(log_probabilities, dtype=np.float64)))
    return perplexity_of_total(total, int(np.sum(np.asarray(lengths, dtype=np.int64) + 1)))


def perplexity_of_total(total: float, places: int) -> float:
    """exp(-total / places), where the places are the words and one end per sentence."""
    if places == 0:
        raise RamifyError("Perplexity needs at least one sentence; check the data.")
    try:
        return math.exp(-total / places)
    except OverflowError:
        return math.inf


def percent(part: float, whole: float) -> float:
    """100 if both are zero."""
    return 100 * part / whole if whole > 0 else 100.0
