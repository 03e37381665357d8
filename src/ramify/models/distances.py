"""Models whose trees follow from distances between neighbouring words: the larger the distance, the higher the split.

Two read-outs turn distances into a tree. Splitting a span between the two words with the largest distance favours no
branching direction. The read-out published with PRPN and ON-LSTM turns a span whose largest distance is before word t
into [left, [w_t, right]], which is biased towards right branching (Dyer et al. 2019); it is the decoder `biased`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ramify.models.base import Model
from ramify.structures.distribution import Marginals

UNBIASED, BIASED = "unbiased", "biased"

Spans = list[tuple[int, int]]


class DistanceModel(Model):
    """A model with a distance before every word."""

    has_posteriors = False
    read_outs: ClassVar[tuple[str, ...]] = (UNBIASED,)
    """The read-outs that it supports"""

    @abstractmethod
    def distances(self, word_ids: Tensor, lengths: Tensor) -> Tensor:
        """(B, N) the distance between word t - 1 and word t of sentences (B, N).

        The one before the first word, if there is one, matters only for the biased read-out.
        """

    def distances_and_objective(self, word_ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """`distances`, and (B,) `objective` if it is a likelihood, else numbers without a meaning."""
        distances = self.distances(word_ids, lengths)
        if not self.has_likelihood:
            return distances, torch.full((len(word_ids),), torch.nan)
        return distances, self.objective(word_ids, lengths)

    @torch.no_grad()
    def marginals(self, word_ids: Tensor, lengths: Tensor, read_out: str = UNBIASED) -> Marginals:
        """1 for the spans of the tree, 0 for all others."""
        B, N = word_ids.shape
        found, log_p = self.distances_and_objective(word_ids, lengths)
        distances = found.cpu().numpy()
        read = split_between_words if read_out == UNBIASED else split_before_head
        spans = torch.zeros(B, N + 1, N + 1)
        for table, row, length in zip(spans, distances, lengths.tolist(), strict=True):
            for i, j in read(row[:length]):
                table[i, j] = 1
        return Marginals(log_p, spans.to(word_ids.device))


def split_between_words(distances: NDArray[np.float32]) -> Spans:
    """The spans of two words or more of the tree that splits every span where the distance is largest.

    `distances` (N,) are those before the words. Among equal distances, the one nearest to the middle of its span wins.
    """
    spans, pending = [], [(0, len(distances))]
    while pending:
        i, j = pending.pop()
        if j - i > 1:
            inside = distances[i + 1 : j]
            largest = i + 1 + np.flatnonzero(inside == inside.max())
            k = int(min(largest, key=lambda k: abs(2 * k - i - j)))
            spans.append((i, j))
            pending += [(i, k), (k, j)]
    return spans


def split_before_head(distances: NDArray[np.float32]) -> Spans:
    """The same with the published read-out: [left, [w_t, right]], where the largest distance is before word t.

    The distance before the first word of a span counts too; it gives [w_t, right]. Among equal ones, the first wins.
    """
    spans, todo = [], [(0, len(distances))]
    while todo:
        i, j = todo.pop()
        if j - i > 1:
            t = i + int(distances[i:j].argmax())
            spans.append((i, j))
            if i < t < j - 1:
                spans.append((t, j))
            todo += [(i, t), (t + 1, j)]
    return spans
