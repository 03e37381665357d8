"""A batch in pieces: shards of some sentences for one thread each, and groups of them whose charts fit the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from ramify.runtime import threads
from ramify.runtime.padding import NARROW_BYTES, padded_size
from ramify.structures.low_rank.distribution import LowRankPCFG

SHARD_BYTES = 16 * 2**20
"""Approximate maximum size of the charts of a shard; training keeps them until the backward pass"""
GROUP_BYTES = 3 * 2**19
"""Approximate size of the charts of a group, unless the rules are large: most of it stays in the cache of a core"""
_RESULT_BYTES = 4 + 8 + 4 + 8 + 8
"""For each pair of fence posts: posterior, label, its posterior, a copy to check the sums, one to find the tree in"""


@dataclass(frozen=True)
class Shard:
    """Some neighbouring sentences of a batch."""

    sentences: slice
    lengths: NDArray[np.int64]
    group: int
    """Number of sentences whose charts are in the cache at a time"""

    @property
    def words(self) -> int:
        """Number of rows of all groups for words, given by the longest sentence of each group."""
        return sum(len(group) * int(group.max()) for group in self._groups())

    @property
    def rows(self) -> int:
        """Number of rows of all groups for spans."""
        return sum(len(group) * int(group.max()) * (int(group.max()) + 1) // 2 for group in self._groups())

    def _groups(self) -> list[NDArray[np.int64]]:
        return [self.lengths[begin : begin + self.group] for begin in range(0, len(self.lengths), self.group)]


def sentence_bytes(n: int, p: int, d: int, length: int, dtype: torch.dtype = torch.float32) -> int:
    """Bytes of the charts of one sentence, inside and outside, with the log scales of their rows."""
    d, n, p = (padded_size(size, dtype, NARROW_BYTES) for size in (d, n, p))
    return length * (length + 1) // 2 * (dtype.itemsize * 2 * (3 * d + n) + 8 * 8) + 2 * dtype.itemsize * length * p


def _group(n: int, p: int, d: int, length: int, dtype: torch.dtype = torch.float32) -> int:
    """Sentences per group: sums over splits are fastest for few, matrix products with large rules for many."""
    rules = 2 * dtype.itemsize * d * (3 * n + 2 * p)  # up and down
    return max(1, max(GROUP_BYTES, min(rules, SHARD_BYTES)) // sentence_bytes(n, p, d, length, dtype))


def working_bytes(n: int, p: int, d: int, lengths: Sequence[int]) -> int:
    """Peak memory of the posteriors of a batch on one core: the charts of the largest group, and all results."""
    longest = max(lengths)
    sentences = min(len(lengths), _group(n, p, d, longest))
    return sentences * sentence_bytes(n, p, d, longest) + len(lengths) * (longest + 1) ** 2 * _RESULT_BYTES


def shards(pcfg: LowRankPCFG) -> list[Shard]:
    """The batch in pieces of equal numbers of sentences, by the sizes alone and the number of threads.

    If sentences have separate rules, each shard has one sentence.
    """
    B, N, p = pcfg.words.shape
    n, d = pcfg.nonterminals, pcfg.rank
    spans = N * (N + 1) // 2
    work = B * (spans * d * min(6 * n, 4 * d) + 4 * N * p * d)
    count = min(B, -(-B * spans * (3 * d + n) * pcfg.words.element_size() // SHARD_BYTES))
    cores = threads.worth(work)
    count = B if pcfg.per_sentence else min(B, -(-count // cores) * cores)
    lengths = pcfg.lengths.numpy().astype(np.int64, copy=False)
    bounds = np.linspace(0, B, count + 1).astype(int).tolist()
    group = _group(n, p, d, N, pcfg.words.dtype)
    return [Shard(slice(a, b), lengths[a:b], group) for a, b in pairwise(bounds)]
