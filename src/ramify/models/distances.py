"""Models whose trees follow from a distance between neighbouring words: the larger it is, the higher the tree splits.

Two read-outs turn distances into a tree. Splitting a span between the two words with the largest distance favours no
branching. The read-out published with PRPN and ON-LSTM makes [left, [w_t, right]] of a span whose largest distance
stands before word t, which leans to right branching (Dyer et al. 2019); it is the decoder `biased`.
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
    """The ways from distances to trees that it supports"""

    @abstractmethod
    def distances(self, word_ids: Tensor, lengths: Tensor) -> Tensor:
        """(B, N) the distance between word t - 1 and word t of sentences (B, N); the one before the first word, where
        there is any, counts for the biased read-out only."""

    def distances_and_objective(self, word_ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """`distances` and, where it is a likelihood, `objective`, else numbers without a meaning (B,)."""
        distances = self.distances(word_ids, lengths)
        if not self.has_likelihood:
            return distances, torch.full((len(word_ids),), torch.nan)
        return distances, self.objective(word_ids, lengths)

    @torch.no_grad()
    def marginals(self, word_ids: Tensor, lengths: Tensor, read_out: str = UNBIASED) -> Marginals:
        """One for every span of the tree, zero for all others."""
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

    `distances` (N,) stand before the words. Of equal ones, that nearest to the middle of its span wins.
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
    """The same by the published read-out: [left, [w_t, right]], t the word with the largest distance before it.

    That of the first word of a span counts too; it makes [w_t, right]. Of equal ones, the first wins.
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
