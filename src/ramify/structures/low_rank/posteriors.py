"""Posteriors of spans, labels and tags for parsing: one compiled call for some sentences, and the cores take turns."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ramify.runtime import threads
from ramify.runtime.fast_exp import exp
from ramify.runtime.padding import NARROW_BYTES, padded_size
from ramify.structures.distribution import Marginals
from ramify.structures.low_rank.distribution import LowRankPCFG

if TYPE_CHECKING:
    from ramify.structures.low_rank.shards import Shard  # which imports numba

CACHE_BYTES = 8 * 2**20
"""About how large the charts of the sentences are that one core works on at a time"""
_RESULT_BYTES = 4 + 8 + 4 + 8 + 8
"""For each pair of fence posts: posterior, label, its posterior, a copy to check the sums, one to find the tree in"""
Numbers = NDArray[np.floating]


@dataclass(frozen=True)
class PackedTables:
    """The rules as probabilities, laid out for products with rows."""

    start: Numbers
    """(n, padded)"""
    products: tuple[Numbers, ...]
    """Up and down: head, children of nonterminals, children of preterminals"""
    rank: int
    """d, padded"""

    @classmethod
    def of(cls, pcfg: LowRankPCFG) -> PackedTables:
        """From log-probabilities; kept until other rules come, as a parser has the same for every batch."""
        global _kept
        rules = tuple(pcfg.rule_tables().values())
        if any(table.is_inference() for table in rules):  # nobody can see whether these change
            return cls._made(pcfg)
        versions = [table._version for table in rules]
        before, before_versions, tables = _kept
        if tables is None or versions != before_versions or not _are(before, rules):
            tables = cls._made(pcfg)
            _kept = [weakref.ref(table) for table in rules], versions, tables
        return tables

    @classmethod
    def _made(cls, pcfg: LowRankPCFG) -> PackedTables:
        from ramify.runtime.matrix_tiles import pack

        n, dtype = pcfg.nonterminals, pcfg.left.dtype
        d, wide, tags = (padded_size(size, dtype, NARROW_BYTES) for size in (pcfg.rank, n, pcfg.preterminals))

        def packed(table: Tensor, columns: int) -> Numbers:
            matrix = table.new_zeros(len(table), columns)
            matrix[:, : table.shape[1]] = table
            result = np.empty(matrix.numel(), matrix.numpy().dtype)
            pack(matrix.numpy(), result)
            return result

        both = pcfg.left.new_zeros(pcfg.left.shape[0], 2 * d)
        exp(pcfg.left, out=both[:, : pcfg.rank])
        exp(pcfg.right, out=both[:, d : d + pcfg.rank])
        head = pcfg.left.new_zeros(0, 0) if pcfg.head is None else exp(pcfg.head)
        start = pcfg.root.new_zeros(wide)
        start[:n] = exp(pcfg.root)
        products = (
            packed(head.T, wide), packed(head, d), packed(both[:n], 2 * d), packed(both[:n].T, wide),
            packed(both[n:], 2 * d), packed(both[n:].T, tags),
        )  # fmt: skip
        return cls(start.numpy(), products, d)


_kept: tuple[list[weakref.ref[Tensor]], list[int], PackedTables | None] = [], [], None


def _are(references: Sequence[weakref.ref[Tensor]], tensors: Sequence[Tensor]) -> bool:
    return len(references) == len(tensors) and all(a() is b for a, b in zip(references, tensors, strict=True))


def sentence_bytes(n: int, p: int, d: int, length: int, dtype: torch.dtype = torch.float32) -> int:
    """What the charts of one sentence take, inside and outside, with the log scales of their rows."""
    d, n, p = (padded_size(size, dtype, NARROW_BYTES) for size in (d, n, p))
    return length * (length + 1) // 2 * (dtype.itemsize * 2 * (3 * d + n) + 8 * 8) + 2 * dtype.itemsize * length * p


def working_bytes(n: int, p: int, d: int, lengths: Sequence[int]) -> int:
    """What the posteriors of a batch take on one core at their peak: the largest piece's charts, and all results."""
    sizes = [sentence_bytes(n, p, d, length) for length in lengths]
    results = len(lengths) * (max(lengths) + 1) ** 2 * _RESULT_BYTES
    return max([*sizes, min(sum(sizes), CACHE_BYTES)]) + results


def pieces(pcfg: LowRankPCFG) -> list[Shard]:
    """The batch in pieces of neighbouring sentences whose charts stay in the cache, by the sizes alone."""
    from ramify.structures.low_rank.shards import Shard

    lengths = pcfg.lengths.numpy().astype(np.int64, copy=False)
    result, begin, size = [], 0, 0
    for b, length in enumerate(lengths.tolist()):
        size += sentence_bytes(pcfg.nonterminals, pcfg.preterminals, pcfg.rank, length, pcfg.words.dtype)
        if b > begin and size > CACHE_BYTES:
            result.append(Shard(slice(begin, b), lengths[begin:b]))
            begin, size = b, 0
    return [*result, Shard(slice(begin, len(lengths)), lengths[begin:])]


@torch.no_grad()
def marginals(pcfg: LowRankPCFG) -> Marginals:
    """Posteriors of spans, labels and tags from one inside and one outside pass."""
    from ramify.structures.low_rank import whole_charts

    tables = PackedTables.of(pcfg)
    B, N, p = pcfg.words.shape
    spans, tags = pcfg.words.new_zeros(B, N + 1, N + 1), pcfg.words.new_zeros(B, N)
    result = Marginals(
        torch.empty(B, dtype=torch.float64), spans, torch.zeros_like(spans, dtype=torch.long), torch.zeros_like(spans),
        torch.zeros_like(tags, dtype=torch.long), tags,
    )  # fmt: skip
    outputs = [tensor.numpy() for tensor in result.tensors().values()]
    no_scores = np.zeros((0, 0, 0), spans.numpy().dtype)

    words = pcfg.masked_words()
    peak = words.amax(-1)
    leaves = words.new_zeros(B, N, padded_size(p, words.dtype, NARROW_BYTES))
    exp(words - torch.where(peak == -torch.inf, 0, peak)[..., None], out=leaves[..., :p])
    scales = peak.double()

    def run(shard: Shard) -> None:
        scores = no_scores if pcfg.span_scores is None else pcfg.span_scores[shard.sentences].numpy()
        whole_charts.posteriors(
            shard.longest, shard.first, shard.lengths, shard.of_words(leaves).flatten(0, 1).numpy(),
            shard.of_words(scales).flatten().numpy(), scores, pcfg.nonterminals, p, tables.start,
            tables.products, *(each[shard.sentences] for each in outputs),
        )  # fmt: skip

    threads.in_pieces(run, pieces(pcfg))
    return Marginals(**{**result.tensors(), "log_partition": result.log_partition.to(spans.dtype)})
