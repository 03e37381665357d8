"""The CPU path: each pass over the charts of some sentences is one call of a compiled loop.

The same algorithm and numerics as scaled.py (derivation: README.md in this folder), without work on pairs of spans
that do not meet. The cores take turns at the shards of a batch. Where every sentence has separate rules, each is one
shard.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ramify.runtime import threads
from ramify.runtime.fast_exp import exp
from ramify.runtime.padding import NARROW_BYTES, padded_size
from ramify.runtime.products import pack
from ramify.structures.distribution import Marginals
from ramify.structures.low_rank import charts, expectations
from ramify.structures.low_rank.charts import Chart, Rules
from ramify.structures.low_rank.distribution import LowRankPCFG
from ramify.structures.low_rank.passes import Sums, Tables
from ramify.structures.low_rank.shards import Shard, shards

Array = NDArray[Any]


def tables(pcfg: LowRankPCFG, skip_symbols: bool) -> Tables:
    """With columns of whole lines of the cache."""
    return Tables.of(pcfg, skip_symbols, padded_size(pcfg.rank, pcfg.left.dtype, NARROW_BYTES))


def _packed(matrix: Tensor) -> Array:
    """A contiguous matrix, or the transpose of one, packed."""
    rows, columns = matrix.shape
    result = matrix.new_empty(rows, padded_size(columns, matrix.dtype, NARROW_BYTES)).numpy()
    transposed = matrix.stride(1) > 1
    if rows:
        pack((matrix.T if transposed else matrix).contiguous().numpy(), transposed, columns, result)
    return result


def _rules(tables: Tables) -> list[Rules]:
    """One for all sentences, or one for each."""

    def packed(root: Tensor, head: Tensor | None, children: Tensor, leaf_children: Tensor) -> Rules:
        head = root.new_zeros(0, 0) if head is None else head
        padded = root.new_zeros(padded_size(len(root), root.dtype, NARROW_BYTES))
        padded[: len(root)] = root
        return Rules(
            padded.numpy(), _packed(head.T), _packed(head), _packed(children), _packed(children.T),
            _packed(leaf_children), _packed(leaf_children.T),
        )  # fmt: skip

    root, head, children, leaf_children = tables.root, tables.through, tables.children, tables.leaf_children
    if root.dim() == 1:
        return [packed(root, head, children, leaf_children)]
    heads = [None] * len(root) if head is None else head
    return [packed(*each) for each in zip(root, heads, children, leaf_children, strict=True)]


def _leaves(pcfg: LowRankPCFG) -> tuple[Array, Array]:
    """(B, N, P) what the words have of each preterminal, scaled, and (B, N) the log scales."""
    words = pcfg.masked_words()
    B, N, p = words.shape
    peak = words.amax(-1)
    leaves = words.new_zeros(B, N, padded_size(p, words.dtype, NARROW_BYTES))
    exp(words - torch.where(peak == -torch.inf, 0, peak)[..., None], out=leaves[..., :p])
    return leaves.numpy(), peak.double().numpy()


def _work(rules: list[Rules], pcfg: LowRankPCFG) -> list[tuple[Rules, Shard]]:
    """The batch in pieces, each with its rules."""
    pieces = shards(pcfg)
    return list(zip(rules if pcfg.per_sentence else rules * len(pieces), pieces, strict=True))


@dataclass(frozen=True)
class Charts:
    """The charts of a whole batch, in its shards."""

    tables: Tables
    shards: list[tuple[Rules, Shard, Chart]]
    log_z: Array
    """(B,)"""
    like: Tensor
    """(B, N, p) the words"""


def inside_pass(tables: Tables, pcfg: LowRankPCFG) -> Charts:
    """All inside vectors, from the words to the whole sentences."""
    (leaves, scales), scores = _leaves(pcfg), pcfg.scores().detach().numpy()
    log_z = np.empty(len(leaves))

    def run(piece: tuple[Rules, Shard]) -> tuple[Rules, Shard, Chart]:
        rules, shard = piece
        chart, some = charts.empty_chart(shard.words, shard.rows, leaves, rules), shard.sentences
        charts.inside(
            shard.lengths, shard.group, leaves[some], scales[some], scores[some], rules, chart, log_z[some]
        )  # fmt: skip
        return rules, shard, chart

    return Charts(tables, threads.in_pieces(run, _work(_rules(tables), pcfg)), log_z, pcfg.words.detach())


def gradient_sums(found: Charts, upstream: Tensor) -> Sums:
    """The gradient of the sum of upstream * log p(w): one outside pass, and sums over the shards in their order."""
    factors, tables, new = upstream.double().contiguous().numpy(), found.tables, found.like.new_zeros
    B, N, p = found.like.shape
    words, spans = new(B, N, p), new(B, N + 1, N + 1)
    s, D = tables.root.shape[-1], tables.both.shape[-1] // 2
    n = 0 if tables.through is None else s

    def run(piece: tuple[Rules, Shard, Chart]) -> tuple[Tensor, ...]:
        rules, shard, chart = piece
        sums, some = (new(s), new(n, D), new(s + p, 2 * D)), shard.sentences
        each = (words[some], spans[some])
        expectations.gradients(
            shard.lengths, shard.group, factors[some], rules, chart, found.log_z[some],
            expectations.Sums(*(x.numpy() for x in (*sums, *each))),
        )  # fmt: skip
        return sums

    by_shard = zip(*threads.in_pieces(run, found.shards), strict=True)
    root, head, both = (torch.stack(x) if tables.start.dim() > 1 else _summed(x) for x in by_shard)
    left, right = both[..., : tables.rank], both[..., D : D + tables.rank]
    return Sums(left, right, head[..., : tables.rank] if n else None, root, words, spans)


def _summed(found: Sequence[Tensor]) -> Tensor:
    first, *others = found
    for other in others:
        first += other
    return first


@torch.no_grad()
def marginals(pcfg: LowRankPCFG) -> Marginals:
    """Posteriors of spans, labels and tags from one inside and one outside pass."""
    B, N, _ = pcfg.words.shape
    spans, tags = pcfg.words.new_zeros(B, N + 1, N + 1), pcfg.words.new_zeros(B, N)
    result = Marginals(
        torch.empty(B, dtype=torch.float64), spans, torch.zeros_like(spans, dtype=torch.long), torch.zeros_like(spans),
        torch.zeros_like(tags, dtype=torch.long), tags,
    )  # fmt: skip
    outputs = [tensor.numpy() for tensor in result.tensors().values()]
    leaves, scales = _leaves(pcfg)
    scores = np.zeros((0, 0, 0), leaves.dtype) if pcfg.span_scores is None else pcfg.span_scores.numpy()

    def run(piece: tuple[Rules, Shard]) -> None:
        rules, shard = piece
        some = shard.sentences
        expectations.posteriors(
            shard.lengths, shard.group, leaves[some], scales[some], scores[some], rules,
            *(each[some] for each in outputs),
        )  # fmt: skip

    rules = _rules(tables(pcfg, skip_symbols=False)) if pcfg.per_sentence else [_kept_rules(pcfg)]
    threads.in_pieces(run, _work(rules, pcfg))
    return Marginals(**{**result.tensors(), "log_partition": result.log_partition.to(spans.dtype)})


_kept: tuple[list[weakref.ref[Tensor]], list[int], Rules | None] = [], [], None


def _kept_rules(pcfg: LowRankPCFG) -> Rules:
    """Packed, and kept until other rules come, as a parser has the same for every batch."""
    global _kept
    given = tuple(pcfg.rule_tables().values())
    if any(table.is_inference() for table in given):  # changes of these cannot be detected
        return _rules(tables(pcfg, skip_symbols=False))[0]
    versions = [table._version for table in given]
    before, before_versions, rules = _kept
    if rules is None or versions != before_versions or not _are(before, given):
        (rules,) = _rules(tables(pcfg, skip_symbols=False))
        _kept = [weakref.ref(table) for table in given], versions, rules
    return rules


def _are(references: Sequence[weakref.ref[Tensor]], tensors: Sequence[Tensor]) -> bool:
    return len(references) == len(tensors) and all(a() is b for a, b in zip(references, tensors, strict=True))
