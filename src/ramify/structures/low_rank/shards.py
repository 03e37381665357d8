"""A batch in pieces of a few sentences: small enough for the cache, large enough for matrix products."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ramify.runtime import threads
from ramify.structures.low_rank import kernels
from ramify.structures.low_rank.distribution import LowRankPCFG

CACHE_BYTES = 16 * 2**20
"""About how much of the charts one core works on at a time."""


@dataclass(frozen=True)
class Shard:
    """Some neighbouring sentences of a batch, and where their spans stand in a chart."""

    sentences: slice
    lengths: NDArray[np.int64]

    @cached_property
    def longest(self) -> int:
        """N, the number of words of the longest of these sentences."""
        return int(self.lengths.max())

    @property
    def shape(self) -> tuple[int, int]:
        """(B, N)"""
        return len(self.lengths), self.longest

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """(N + 2,) the first row of each width, from 1 on."""
        B, N = self.shape
        result = np.zeros(N + 2, np.int64)
        result[2:] = np.cumsum(B * np.arange(N, 0, -1))
        return result

    @property
    def rows(self) -> int:
        """How many spans there are."""
        return int(self.first[-1])

    def by_width(self, rows: Tensor) -> tuple[Tensor, ...]:
        """The rows of each width."""
        parts: tuple[Tensor, ...] = rows.split(np.diff(self.first)[1:].tolist())
        return parts

    def whole(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The sentences of two words or more, and the row of the span over each."""
        sentences = np.flatnonzero(self.lengths > 1)
        widths = self.lengths[sentences]
        return sentences, self.first[widths] + sentences * (self.longest - widths + 1)

    def table(self, rows: Tensor) -> Tensor:
        """A number a span as a table over fence posts (B, N+1, N+1)."""
        B, N = self.shape
        table = rows.new_zeros(B, N + 1, N + 1)
        kernels.table_of_rows(N, self.first, rows.numpy(), table.numpy())
        return table

    def of_words(self, batch: Tensor) -> Tensor:
        """The part of (B, N, ...) that belongs to these sentences."""
        return batch[self.sentences, : self.longest]

    def of_table(self, batch: Tensor) -> Tensor:
        """The part of (B, N+1, N+1) that belongs to these sentences."""
        return batch[self.sentences, : self.longest + 1, : self.longest + 1]


def shards(pcfg: LowRankPCFG) -> list[Shard]:
    """The batch in pieces of equal numbers of sentences, by the sizes alone and the number of threads.

    Of one sentence each, where they have separate rules.
    """
    B, N, p = pcfg.words.shape
    n, d = pcfg.nonterminals, pcfg.rank
    spans = N * (N + 1) // 2
    work = B * (spans * d * min(6 * n, 4 * d) + 4 * N * p * d)
    count = min(B, -(-B * spans * (3 * d + n) * pcfg.words.element_size() // CACHE_BYTES))
    cores = threads.worth(work)
    count = B if pcfg.per_sentence else min(B, -(-count // cores) * cores)
    lengths = pcfg.lengths.numpy().astype(np.int64, copy=False)
    bounds = np.linspace(0, B, count + 1).astype(int).tolist()
    return [Shard(slice(a, b), lengths[a:b]) for a, b in pairwise(bounds)]
