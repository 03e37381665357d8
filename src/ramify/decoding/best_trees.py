"""From posteriors to trees."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ramify.runtime import threads
from ramify.runtime.compilation import compiled
from ramify.structures.distribution import Marginals

Spans = NDArray[np.int32]

SENTENCES_PER_THREAD = 8
"""Number of sentences that one thread decodes at a time."""


def best_trees(scores: Tensor, lengths: Tensor, branching: float = 0.0) -> list[Spans]:
    """For each sentence the binary tree with the largest sum of scores[b, i, j] (B, N+1, N+1) over its spans.

    The result lists the length-1 spans of two words or more in preorder. `branching` is a bonus for every span at one
    end of the sentence, as in `add_branching`. Ties go to the split nearest to the middle, so they favour neither left
    nor right branching. If two splits are equally near, the first and the second are chosen in turn along the sentence.
    """
    best = scores.detach().cpu().double().numpy().copy()
    sizes = lengths.cpu().numpy().astype(np.int64)
    if branching:
        for chart, length in zip(best, sizes, strict=True):
            add_branching(chart[: length + 1, : length + 1], branching)
    spans = np.empty((len(best), max(best.shape[1] - 2, 0), 2), np.int32)
    find_trees = _decode.unless_postponed()

    def run(begin: int) -> None:
        piece = slice(begin, begin + SENTENCES_PER_THREAD)
        find_trees(best[piece], sizes[piece], spans[piece])

    threads.in_pieces(run, range(0, len(best), SENTENCES_PER_THREAD))
    return [spans[b, : length - 1].copy() for b, length in enumerate(sizes)]


def add_branching(scores: NDArray[Any], bonus: float) -> None:
    """Add a bonus to the scores (N+1, N+1) of all spans of two words or more at one end of the sentence.

    Above zero these are the spans that end where the sentence ends, below zero those that begin where it begins.
    Grammars learnt from raw text attach phrases too high, "(the man saw) (a dog)"; the bonus corrects this.
    """
    if bonus > 0:
        scores[:-2, -1] += bonus
    else:
        scores[0, 2:] -= bonus


@partial(compiled, reorder_sums=False)  # equal scores must stay equal
def _decode(best, lengths, spans):  # type: ignore[no-untyped-def]
    """The trees of some sentences into `spans`; `best` becomes the score of each span's best tree."""
    posts = best.shape[1]
    split = np.empty((posts, posts), np.int32)
    waiting = np.empty((posts, 2), np.int32)
    for b in range(best.shape[0]):
        chart, length = best[b], lengths[b]
        for width in range(2, length + 1):
            for i in range(length - width + 1):
                j = i + width
                choice, highest = i + 1, chart[i, i + 1] + chart[i + 1, j]
                later_of_two = (i + j) // 2 % 2 == 1
                for k in range(i + 2, j):
                    score = chart[i, k] + chart[k, j]
                    if score > highest:
                        choice, highest = k, score
                    elif score == highest:
                        further, chosen = abs(2 * k - i - j), abs(2 * choice - i - j)
                        if further < chosen or (further == chosen and later_of_two):
                            choice = k
                split[i, j] = choice
                chart[i, j] += highest
        found, left = 0, 0
        if length > 1:
            waiting[0, 0], waiting[0, 1] = 0, length
            left = 1
        while left > 0:
            left -= 1
            i, j = waiting[left]
            spans[b, found, 0], spans[b, found, 1] = i, j
            found += 1
            k = split[i, j]
            if j - k > 1:
                waiting[left, 0], waiting[left, 1] = k, j
                left += 1
            if k - i > 1:
                waiting[left, 0], waiting[left, 1] = i, k
                left += 1


def mbr(marginals: Marginals, lengths: Tensor, branching: float = 0.0) -> list[Spans]:
    """Minimum Bayes risk: the tree with the most expected correct brackets (Yang et al. 2021, sec. 6)."""
    return best_trees(marginals.spans, lengths, branching)


def mbr_labelled(marginals: Marginals, lengths: Tensor, branching: float = 0.0) -> list[Spans]:
    """The tree with the most expected correct labelled brackets (labelled recall of Goodman 1996)."""
    assert marginals.best_label_posterior is not None
    return best_trees(marginals.best_label_posterior, lengths, branching)


DECODERS = {"mbr": mbr, "mbr-labelled": mbr_labelled}
