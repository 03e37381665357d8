"""Scores as in EVALB (Sekine and Collins): labelled brackets, pooled over the corpus, with its usual parameters.

With the parameters of `COLLINS.prm`, leaves tagged `, : `` '' .` or -NONE- are removed, and so are brackets labelled
TOP; ADVP and PRT are the same label; function tags are stripped. Brackets over one word count, and two equal brackets
must both be found. The gold tags decide which leaves are removed on both sides, so trees without tags can be scored; if
the tags of both trees agree, this makes no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ramify.corpus.cleaning import WordRule, keep_leaves
from ramify.corpus.tree import ROOT, Parse
from ramify.evaluation.labels import category

PUNCTUATION = WordRule(removed=frozenset([",", ":", "``", "''", ".", "-NONE-"]))
_TRACES = WordRule(removed=frozenset(["-NONE-"]))
_EQUAL = {"PRT": "ADVP"}
CUT_LENGTH = 40
RULE = ("EVALB COLLINS.prm", f"all leaves in both trees but {PUNCTUATION}")
"""The convention, for the signature"""

Bracket = tuple[int, int, str]


@dataclass(frozen=True)
class EvalbScores:
    """The figures of EVALB's summary, in percent, except `crossing`, a number of brackets per sentence."""

    recall: float
    precision: float
    f1: float
    complete_match: float
    average_crossing: float
    """Predicted brackets that cross a gold one"""
    no_crossing: float
    two_or_less_crossing: float
    tagging_accuracy: float
    sentences: int


def evalb(pairs: Iterable[tuple[Parse, Parse]]) -> dict[str, EvalbScores]:
    """The summary of `all` gold and predicted trees, leaf by leaf of the same words, and of those `up to 40` leaves.

    Sentences that consist only of punctuation are skipped.
    """
    rows, short = [], []
    for gold, predicted in pairs:
        keep = PUNCTUATION.word_mask(gold.tags)
        if any(keep):
            rows.append(_counts(keep_leaves(gold, keep), keep_leaves(predicted, keep)))
            short.append(sum(_TRACES.word_mask(gold.tags)) <= CUT_LENGTH)
    table = np.array(rows, dtype=np.int64).reshape(-1, 6)
    chosen = {"all": table, f"up to {CUT_LENGTH}": table[np.array(short, dtype=bool)]}
    return {name: _summary(part) for name, part in chosen.items() if len(part)}


def _counts(gold: Parse, predicted: Parse) -> tuple[int, int, int, int, int, int]:
    """Numbers of matching, gold, predicted and crossing brackets, of correct tags and of words."""
    ours, theirs = _brackets(gold), _brackets(predicted)
    spans = {(start, end) for start, end, _ in ours}
    crossing = sum(count for (i, j, _), count in theirs.items() if any(_cross(i, j, k, m) for k, m in spans))
    tags = sum(a == b for a, b in zip(gold.tags, predicted.tags, strict=True))
    return (ours & theirs).total(), ours.total(), theirs.total(), crossing, tags, len(gold)


def _brackets(parse: Parse) -> Counter[Bracket]:
    cut = (category(label) for label in parse.labels)
    labels = (_EQUAL.get(label, label) for label in cut)
    pairs = zip(parse.spans.tolist(), labels, strict=True)
    return Counter((start, end, label) for (start, end), label in pairs if label != ROOT)


def _cross(i: int, j: int, k: int, m: int) -> bool:
    return k < i < m < j or i < k < j < m


def _summary(table: NDArray[np.int64]) -> EvalbScores:
    matching, gold, predicted, crossing, tags, words = table.T
    recall, precision = (100 * float(matching.sum() / side.sum()) if side.sum() else 0.0 for side in (gold, predicted))
    return EvalbScores(
        recall=recall,
        precision=precision,
        f1=2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        complete_match=100 * float(np.mean((matching == gold) & (matching == predicted))),
        average_crossing=float(crossing.mean()),
        no_crossing=100 * float(np.mean(crossing == 0)),
        two_or_less_crossing=100 * float(np.mean(crossing <= 2)),
        tagging_accuracy=100 * float(tags.sum() / words.sum()),
        sentences=len(table),
    )
