"""Labels of gold trees: their recall, and how well a system's labels and tags agree with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ramify.corpus.tree import Parse
from ramify.evaluation.scores import percent
from ramify.evaluation.spans import Spans


@dataclass(frozen=True)
class LabelRecall:
    """The recall of one category."""

    recall: float
    """The percentage of its constituents whose spans are predicted, with any label"""
    constituents: int
    share: float
    """Percentage of all counted gold constituents"""
    mean_length: float
    """Mean length in words"""


def recall_by_label(gold: Sequence[Parse], predicted: Sequence[Spans]) -> dict[str, LabelRecall]:
    """Recall of each category of the gold trees, the most frequent first.

    Every label of a unary chain counts; spans over one word or over the whole sentence do not. Function tags
    are cut: NP-SBJ and NP=2 are NP.
    """
    counts: dict[str, list[int]] = {}
    for parse, spans in zip(gold, predicted, strict=True):
        found = set(map(tuple, spans.tolist()))
        for (start, end), label in zip(parse.spans.tolist(), parse.labels, strict=True):
            if 1 < end - start < len(parse):
                count = counts.setdefault(category(label), [0, 0, 0])
                count[0] += (start, end) in found
                count[1] += 1
                count[2] += end - start
    everything = sum(total for _, total, _ in counts.values())
    ordered = sorted(counts.items(), key=lambda item: -item[1][1])
    return {
        label: LabelRecall(percent(hits, total), total, percent(total, everything), words / total)
        for label, (hits, total, words) in ordered
    }


def category(label: str) -> str:
    """`label` without function tags and indices; one that begins with a dash, such as -LRB-, stays whole."""
    return label if label[:1] in ("-", "=") else label.partition("-")[0].partition("=")[0]


@dataclass(frozen=True)
class Agreement:
    """How well induced symbols predict the gold symbols, in percent."""

    many_to_one: float
    """Accuracy if every induced symbol is mapped to the gold symbol that it occurs with most often"""
    homogeneity: float
    """1 - H(gold | induced) / H(gold)"""
    completeness: float
    """1 - H(induced | gold) / H(induced)"""
    v_measure: float
    """The harmonic mean of homogeneity and completeness (Rosenberg and Hirschberg 2007)"""
    items: int


def agreement(gold: Sequence[str], induced: Sequence[str]) -> Agreement | None:
    """The agreement of two labellings of the same items; None if there are no items."""
    if not gold:
        return None
    pairs = Counter(zip(gold, induced, strict=True))
    row, column = ({symbol: i for i, symbol in enumerate(dict.fromkeys(side))} for side in (gold, induced))
    table = np.zeros((len(row), len(column)))
    for (truth, symbol), count in pairs.items():
        table[row[truth], column[symbol]] = count
    together = _entropy(table)
    of_gold, of_induced = _entropy(table.sum(1)), _entropy(table.sum(0))
    homogeneity = 1 - (together - of_induced) / of_gold if of_gold > 0 else 1.0
    completeness = 1 - (together - of_gold) / of_induced if of_induced > 0 else 1.0
    both = homogeneity + completeness
    return Agreement(
        many_to_one=100 * float(table.max(0).sum() / table.sum()),
        homogeneity=100 * homogeneity,
        completeness=100 * completeness,
        v_measure=100 * 2 * homogeneity * completeness / both if both > 0 else 0.0,
        items=len(gold),
    )


def labels_of_shared_spans(gold: Sequence[Parse], predicted: Sequence[Parse]) -> tuple[list[str], list[str]]:
    """The gold category and the predicted label of every span that both trees have, as `shared_constituents`."""
    pairs = [each[1:] for both in zip(gold, predicted, strict=True) for each in shared_constituents(*both)]
    return [truth for truth, _ in pairs], [label for _, label in pairs]


def shared_constituents(gold: Parse, predicted: Parse) -> Iterator[tuple[tuple[int, int], str, str]]:
    """Every span that both trees have, with its gold category and its predicted label.

    Spans of two words or more count, except the whole sentence; in a unary chain, the topmost label counts.
    """
    theirs = _uppermost(predicted)
    for span, label in _uppermost(gold).items():
        if span in theirs:
            yield span, category(label), theirs[span]


def _uppermost(parse: Parse) -> dict[tuple[int, int], str]:
    # Constituents are in preorder, so in reverse order the topmost one is written last.
    pairs = zip(reversed(parse.spans.tolist()), reversed(parse.labels), strict=True)
    return {(start, end): label for (start, end), label in pairs if 1 < end - start < len(parse)}


def _entropy(counts: NDArray[np.float64]) -> float:
    share = counts[counts > 0] / counts.sum()
    return float(-(share * np.log(share)).sum())
