"""Predicted spans against gold ones, counted sentence by sentence, under both conventions in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ramify.errors import RamifyError

Convention = Literal["tn", "kim"]
"""Both compare sets of spans of two or more words. `tn` removes every span over the whole sentence; `kim`
removes one on each side, so that a unary chain at the root leaves a gold span that no binary tree reaches."""

CONVENTIONS: tuple[Convention, ...] = get_args(Convention)

Spans = NDArray[np.int32]
"""(constituents, 2), in any order"""


@dataclass(frozen=True)
class SpanCounts:
    """Numbers of common, gold and predicted spans of each sentence: (sentences,)."""

    hits: NDArray[np.int64]
    gold: NDArray[np.int64]
    predicted: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.hits)

    @property
    def f1(self) -> NDArray[np.float64]:
        """F1 of each sentence, from 0 to 1; it is 1 if neither side has a span, and 0 if only one side has."""
        both = self.gold + self.predicted
        # F1 is 2 hits / (gold + predicted); if both sides are empty, recall and precision are 1 by definition.
        return np.where(both > 0, 2 * self.hits / np.maximum(both, 1), 1.0)

    def among(self, chosen: NDArray[np.bool_]) -> SpanCounts:
        """The counts of the chosen sentences."""
        return SpanCounts(self.hits[chosen], self.gold[chosen], self.predicted[chosen])


def count_spans(
    gold: Sequence[Spans],
    predicted: Sequence[Spans],
    lengths: Sequence[int] | NDArray[np.integer],
    convention: Convention = "tn",
) -> SpanCounts:
    """Count the spans of every sentence of two words or more; a repeated span counts once."""
    if convention not in CONVENTIONS:
        raise RamifyError(f"The scoring convention {convention!r} is unknown; choose tn or kim.")
    if not len(gold) == len(predicted) == len(lengths):
        raise RamifyError(
            f"There are {len(gold)} gold and {len(predicted)} predicted trees for {len(lengths)} sentences; "
            "give one of each per sentence."
        )
    length = np.asarray(lengths, dtype=np.int64)
    if len(length) == 0 or length.min() < 2:
        raise RamifyError("Only sentences of two or more words can be scored; leave out the others.")
    gold_keys, gold_counts = _span_set(gold, length, convention)
    predicted_keys, predicted_counts = _span_set(predicted, length, convention)
    common = np.intersect1d(gold_keys, predicted_keys, assume_unique=True)
    hits = np.bincount(_sentence_of(common, length), minlength=len(length))
    return SpanCounts(hits, gold_counts, predicted_counts)


def _span_set(
    spans: Sequence[Spans], length: NDArray[np.int64], convention: Convention
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All distinct spans that count, as sorted numbers, and the number of them in each sentence."""
    sentence = np.repeat(np.arange(len(spans)), [len(s) for s in spans])
    start, end = np.concatenate([np.reshape(s, (-1, 2)) for s in spans]).astype(np.int64).T
    n = length[sentence]
    if ((start < 0) | (end > n) | (start >= end)).any():
        wrong = int(sentence[np.argmax((start < 0) | (end > n) | (start >= end))])
        raise RamifyError(
            f"Sentence {wrong + 1} has a span outside its {length[wrong]} words; "
            "make sure that both trees are of the same sentence."
        )
    whole = end - start == n
    if convention == "kim":
        # Spans become sets later, so removing all but one leaves one span if there are two or more.
        repeated = np.bincount(sentence[whole], minlength=len(spans)) >= 2
        whole &= ~repeated[sentence]
    counting = (end - start >= 2) & ~whole
    keys = np.unique((_offsets(length)[sentence] + start * (n + 1) + end)[counting])
    return keys, np.bincount(_sentence_of(keys, length), minlength=len(spans))


def _offsets(length: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first number of each sentence, which has (n + 1)^2 of them: start * (n + 1) + end."""
    sizes = (length + 1) ** 2
    return np.cumsum(sizes) - sizes


def _sentence_of(keys: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.searchsorted(_offsets(length), keys, side="right") - 1
