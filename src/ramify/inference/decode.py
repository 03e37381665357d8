"""From posteriors to trees."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ramify.inference.rules import Marginals

Spans = NDArray[np.int32]


def best_trees(scores: Tensor, lengths: Tensor) -> list[Spans]:
    """For each sentence the binary tree with the largest sum of scores[b, i, j] (B, N+1, N+1) over its spans.

    The result lists the length-1 spans of two words or more in preorder. Ties go to the lowest split.
    """
    best = scores.detach().cpu().double().numpy().copy()
    B, posts, _ = best.shape
    split = np.zeros((B, posts, posts), dtype=np.int32)
    for width in range(2, posts):
        starts = np.arange(posts - width)[:, None]
        ends = starts + width
        middles = starts + np.arange(1, width)
        halves = best[:, starts, middles] + best[:, middles, ends]
        choice = halves.argmax(-1)  # numpy promises the first of equals
        rows, columns = starts[:, 0], ends[:, 0]
        best[:, rows, columns] += np.take_along_axis(halves, choice[..., None], -1)[..., 0]
        split[:, rows, columns] = rows + 1 + choice
    return [_follow(split[b], int(length)) for b, length in enumerate(lengths)]


def _follow(split: NDArray[np.int32], length: int) -> Spans:
    spans, waiting = [], [(0, length)]
    while waiting:
        i, j = waiting.pop()
        if j - i > 1:
            spans.append((i, j))
            k = int(split[i, j])
            waiting += [(k, j), (i, k)]
    return np.array(spans, dtype=np.int32).reshape(-1, 2)


def mbr(marginals: Marginals, lengths: Tensor) -> list[Spans]:
    """Minimum Bayes risk: the tree with the most expected correct brackets (Yang et al. 2021, sec. 6)."""
    return best_trees(marginals.spans, lengths)


def mbr_labelled(marginals: Marginals, lengths: Tensor) -> list[Spans]:
    """The tree with the most expected correct labelled brackets (labelled recall of Goodman 1996)."""
    return best_trees(marginals.best_label_posterior, lengths)


DECODERS = {"mbr": mbr, "mbr-labelled": mbr_labelled}
