"""How well predicted spans agree with gold ones, under both conventions in circulation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.corpus.cleaning import WordRule
from ramify.corpus.tree import Parse
from ramify.errors import RamifyError
from ramify.version import VERSION

Convention = Literal["tn", "kim"]
"""Both compare sets of spans of two or more words. `tn` removes every span over the whole sentence; `kim`
removes one on each side, so that a unary chain at the root leaves a gold span that no binary tree reaches."""

Spans = NDArray[np.int32]


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
    skipped: int
    """Sentences of fewer than two words, which are not scored"""
    convention: Convention


def span_f1(
    gold: Sequence[Spans],
    predicted: Sequence[Spans],
    lengths: Sequence[int] | NDArray[np.integer],
    convention: Convention = "tn",
) -> Scores:
    """Unlabelled scores of the predicted spans of each sentence, (constituents, 2), in any order.

    Where neither side has a span left, a sentence scores 1; where only one side has, 0.
    """
    if convention not in get_args(Convention):
        raise RamifyError(f"The scoring convention {convention!r} is unknown; give tn or kim.")
    if not len(gold) == len(predicted) == len(lengths):
        raise RamifyError(
            f"There are {len(gold)} gold and {len(predicted)} predicted trees for {len(lengths)} sentences; "
            "score one of each a sentence."
        )
    length = np.asarray(lengths, dtype=np.int64)
    scored = length >= 2
    if not scored.any():
        raise RamifyError("There is no sentence of two or more words to score; check the data.")
    gold_keys, gold_counts = _span_set(gold, length, convention)
    predicted_keys, predicted_counts = _span_set(predicted, length, convention)
    common = np.intersect1d(gold_keys, predicted_keys, assume_unique=True)
    hits = np.bincount(_sentence_of(common, length), minlength=len(length))

    both = (gold_counts + predicted_counts)[scored]
    # 2 hits / (gold + predicted) is F1; with nothing on either side recall and precision are 1 by definition.
    f1 = np.where(both > 0, 2 * hits[scored] / np.maximum(both, 1), 1.0)
    total_hits, total_gold, total_predicted = len(common), len(gold_keys), len(predicted_keys)
    return Scores(
        sentence_f1=100 * float(f1.mean()),
        corpus_f1=_percent(2 * total_hits, total_gold + total_predicted),
        precision=_percent(total_hits, total_predicted),
        recall=_percent(total_hits, total_gold),
        exact_match=100 * float(np.mean(2 * hits[scored] == both)),
        sentences=int(scored.sum()),
        skipped=int((~scored).sum()),
        convention=convention,
    )


def mean_scores(runs: Sequence[Scores]) -> Scores:
    """The percentages averaged over runs on the same sentences."""
    percentages = ("sentence_f1", "corpus_f1", "precision", "recall", "exact_match")
    mean: dict[str, Any] = {name: float(np.mean([getattr(run, name) for run in runs])) for name in percentages}
    return replace(runs[0], **mean)


def recall_by_label(gold: Sequence[Parse], predicted: Sequence[Spans]) -> dict[str, tuple[float, int]]:
    """For each category of the gold trees, the percentage of its constituents predicted, and their number.

    The most frequent category comes first. Every label of a unary chain counts; spans over one word or over
    the whole sentence do not. Function tags are cut: NP-SBJ and NP=2 are NP.
    """
    counts: dict[str, list[int]] = {}
    for parse, spans in zip(gold, predicted, strict=True):
        found = set(map(tuple, spans.tolist()))
        for (start, end), label in zip(parse.spans.tolist(), parse.labels, strict=True):
            if 1 < end - start < len(parse):
                count = counts.setdefault(category(label), [0, 0])
                count[0] += (start, end) in found
                count[1] += 1
    ordered = sorted(counts.items(), key=lambda item: -item[1][1])
    return {label: (_percent(hits, total), total) for label, (hits, total) in ordered}


def category(label: str) -> str:
    """`label` without function tags and indices; one that begins with a dash, such as -LRB-, stays whole."""
    return label if label[:1] in ("-", "=") else label.partition("-")[0].partition("=")[0]


def perplexity(log_probabilities: ArrayLike, lengths: ArrayLike) -> float:
    """exp(-sum log p / sum (length + 1)): one end of sentence is counted, although it is not generated."""
    total = float(np.sum(np.asarray(log_probabilities, dtype=np.float64)))
    places = int(np.sum(np.asarray(lengths, dtype=np.int64) + 1))
    if places == 0:
        raise RamifyError("There is no sentence to take the perplexity of; check the data.")
    try:
        return math.exp(-total / places)
    except OverflowError:
        return math.inf


def signature(convention: Convention, words: WordRule, checksum: str, shortest: int = 2) -> str:
    """What must stand beside a score for it to be compared: version, convention, words, sentences, data."""
    parts = [
        f"ramify {VERSION}",
        f"S-F1 {convention}",
        f"words {words}",
        f"sentences of {shortest}+ words",
        f"data sha256:{checksum[:8]}",
    ]
    return " | ".join(parts)


def _span_set(
    spans: Sequence[Spans], length: NDArray[np.int64], convention: Convention
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every distinct span that counts as one sorted number, and how many of them each sentence has."""
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
        # Spans are sets afterwards, so all but one leaves one span whenever there are two or more.
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


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole > 0 else 100.0
