"""The CPU path: each pass over the charts of some sentences is one call of a compiled loop.

The same algorithm and numerics as scaled.py (derivation: README.md beside this file), with the charts laid out as
kernels.py describes, so that one width is one matrix and no work is spent on pairs of spans that do not meet.
A batch is cut into a few sentences at a time, whose charts stay in the cache; the cores take turns at them. Where
every sentence has separate rules, each is one piece.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ramify.runtime import threads
from ramify.runtime.fast_exp import exp
from ramify.runtime.padding import NARROW_BYTES, narrow_rows, padded_size
from ramify.structures.distribution import Marginals
from ramify.structures.low_rank import kernels, loops
from ramify.structures.low_rank.distribution import LowRankPCFG
from ramify.structures.low_rank.passes import Sums, Tables
from ramify.structures.low_rank.shards import Shard, shards

Scales = NDArray[np.float64]


@dataclass(frozen=True)
class _Matrices:
    """The tables of one set of rules as the loops multiply with them."""

    tables: Tables
    head: NDArray[Any]
    """(n, D), or nothing where no head is needed"""
    head_transposed: NDArray[Any]
    """(d, S)"""
    children: NDArray[Any]
    """(s, 2D)"""
    children_transposed: NDArray[Any]
    """(2D, S)"""
    leaf_children: NDArray[Any]
    """(p, 2D)"""
    leaf_transposed: NDArray[Any]
    """(2D, P)"""
    root: NDArray[Any]
    """(S,)"""

    @classmethod
    def of(cls, tables: Tables) -> list[_Matrices]:
        """One for all sentences, or one for each."""
        none = tables.both.new_zeros(*tables.both.shape[:-2], 0, 0)
        head = none if tables.through is None else tables.through
        matrices = (head, tables.children, tables.leaf_children)
        made = [narrow_rows(x) for matrix in matrices for x in (matrix, matrix.mT)] + [narrow_rows(tables.root)]
        if tables.start.dim() == 1:
            return [cls(tables, *(x.numpy() for x in made))]
        return [cls(tables, *(x[b].numpy() for x in made)) for b in range(len(tables.start))]

    @property
    def has_head(self) -> bool:
        """Whether there is a head between rank and symbols."""
        return len(self.head) > 0


@dataclass
class _Chart:
    """What the inside pass leaves behind of some sentences; matrices have one row a span."""

    matrices: _Matrices
    shard: Shard
    scores: Scales
    """(rows,) span scores"""
    leaves: Tensor
    """(rows of width 1, P)"""
    rank: Tensor
    symbols: Tensor
    children: Tensor
    rank_scale: Scales
    symbol_scale: Scales
    left_scale: Scales
    right_scale: Scales
    log_z: Scales


@dataclass
class _Outside:
    """Outside vectors in the chart's rows; of words, `symbols` is apart because there are p of them."""

    leaves: Tensor
    symbols: Tensor
    children: Tensor
    symbol_scale: Scales
    children_scale: Scales


def _inside_of(matrices: _Matrices, shard: Shard, words: Tensor, span_scores: Tensor) -> _Chart:
    """All inside vectors, from the words to the whole sentences."""
    B, N = shard.shape
    first, rows, wordy, has_head = shard.first, shard.rows, B * N, matrices.has_head
    D, S = matrices.children.shape[1] // 2, len(matrices.root)
    words = words.reshape(wordy, -1)
    peak = words.amax(-1)
    leaves = narrow_rows(exp(words - torch.where(peak == -torch.inf, 0, peak)[:, None]))
    scores = np.empty(rows)
    kernels.rows_of_table(N, first, span_scores.numpy(), scores)
    rank, children = words.new_empty(rows, D), words.new_empty(rows, 2 * D)
    symbols = words.new_empty(rows, S) if has_head else rank
    rank_scale, left_scale, right_scale = (np.full(rows, -np.inf) for _ in range(3))
    symbol_scale = np.full(rows, -np.inf) if has_head else rank_scale
    symbol_scale[:wordy] = peak.double().numpy() + scores[:wordy]
    log_z = np.full(B, -np.inf)
    loops.inside(
        N, first, leaves.numpy(), scores, matrices.leaf_children, matrices.children, has_head, matrices.head_transposed,
        rank.numpy(), symbols.numpy(), children.numpy(), rank_scale, symbol_scale, left_scale, right_scale,
    )  # fmt: skip
    sentences, whole = shard.whole()
    if len(sentences):
        mass = (symbols.numpy()[whole] @ matrices.root).astype(np.float64)
        with np.errstate(divide="ignore"):
            log_z[sentences] = symbol_scale[whole] + np.log(mass)
    return _Chart(
        matrices, shard, scores, leaves, rank, symbols, children, rank_scale, symbol_scale, left_scale, right_scale,
        log_z,
    )  # fmt: skip


def _outside_of(chart: _Chart) -> _Outside:
    matrices, shard = chart.matrices, chart.shard
    g_rank, g_children, g_leaves = (torch.empty_like(x) for x in (chart.rank, chart.children, chart.leaves))
    g_symbols = torch.empty_like(chart.symbols) if matrices.has_head else g_rank
    g_rank_scale, g_x_scale, g_symbol_scale, g_children_scale = (np.full(shard.rows, -np.inf) for _ in range(4))
    total = matrices.root.sum()
    loops.outside(
        shard.longest, shard.first, shard.lengths, matrices.root / total, math.log(total), chart.scores,
        chart.children.numpy(), chart.left_scale, chart.right_scale, matrices.children_transposed, matrices.has_head,
        matrices.head, matrices.leaf_transposed, g_leaves.numpy(), g_rank.numpy(), g_symbols.numpy(),
        g_children.numpy(), g_x_scale, g_rank_scale, g_symbol_scale, g_children_scale,
    )  # fmt: skip
    return _Outside(g_leaves, g_symbols, g_children, g_symbol_scale, g_children_scale)


def _bound(dtype: torch.dtype) -> float:
    return math.log(torch.finfo(dtype).max) - 10


def _gradients_of(chart: _Chart, upstream: Scales) -> Sums:
    """One outside pass and three large products."""
    outside, shard, matrices = _outside_of(chart), chart.shard, chart.matrices
    d, n, p = matrices.tables.rank, *(len(table) for table in (matrices.children, matrices.leaf_children))
    new, D = chart.rank.new_zeros, chart.rank.shape[1]
    weights, spans = new(2, shard.rows)
    g_root, g_left, g_right, g_head = new(n), new(n + p, D), new(n + p, D), new(len(matrices.head), D)
    loops.gradients(
        shard.longest, shard.first, shard.lengths, chart.log_z, upstream, _bound(weights.dtype), chart.leaves.numpy(),
        chart.rank.numpy(), chart.symbols.numpy(), chart.rank_scale, chart.symbol_scale, matrices.has_head,
        outside.leaves.numpy(), outside.symbols.numpy(), outside.children.numpy(), outside.symbol_scale,
        outside.children_scale, *(x.numpy() for x in (weights, spans, g_root, g_left, g_right, g_head)),
    )  # fmt: skip
    head = g_head[:, :d] if matrices.has_head else None
    words = outside.leaves[:, :p].view(*shard.shape, -1)
    return Sums(g_left[:, :d], g_right[:, :d], head, g_root, words, shard.table(spans))


class Charts:
    """The charts of a whole batch."""

    def __init__(self, charts: list[_Chart], pcfg: LowRankPCFG) -> None:
        self.charts, self.shape, self.like = charts, tuple(pcfg.words.shape), pcfg.words.detach()
        self.per_sentence = pcfg.per_sentence
        self.log_z = np.concatenate([chart.log_z for chart in charts])


def tables(pcfg: LowRankPCFG, skip_symbols: bool) -> Tables:
    """With columns of whole narrow blocks."""
    return Tables.of(pcfg, skip_symbols, padded_size(pcfg.rank, pcfg.left.dtype, NARROW_BYTES))


def _work(tables: Tables, pcfg: LowRankPCFG) -> list[tuple[_Matrices, Shard]]:
    """The batch in pieces, each with its rules."""
    matrices, pieces = _Matrices.of(tables), shards(pcfg)
    return list(zip(matrices if pcfg.per_sentence else matrices * len(pieces), pieces, strict=True))


def inside_pass(tables: Tables, pcfg: LowRankPCFG) -> Charts:
    """All inside vectors, from the words to the whole sentences."""
    words, span_scores = pcfg.masked_words(), pcfg.scores()

    def run(piece: tuple[_Matrices, Shard]) -> _Chart:
        matrices, shard = piece
        return _inside_of(matrices, shard, shard.of_words(words), span_scores[shard.sentences])

    return Charts(threads.in_pieces(run, _work(tables, pcfg)), pcfg)


def gradient_sums(charts: Charts, upstream: Tensor) -> Sums:
    """The gradient of the sum of upstream * log p(w): one outside pass, and sums over the shards in their order."""
    factors = upstream.double().numpy()

    def run(chart: _Chart) -> Sums:
        return _gradients_of(chart, factors[chart.shard.sentences])

    found = threads.in_pieces(run, charts.charts)
    rules: dict[str, Any] = {
        name: [getattr(sums, name) for sums in found] for name in ("left", "right", "head", "root")
    }
    for name, values in rules.items():
        if values[0] is None:
            rules[name] = None
        elif charts.per_sentence:
            rules[name] = torch.stack(values)
        else:
            rules[name] = values[0]
            for other in values[1:]:
                rules[name].add_(other)
    B, N, p = charts.shape
    words, scores = charts.like.new_zeros(B, N, p), charts.like.new_zeros(B, N + 1, N + 1)
    for chart, sums in zip(charts.charts, found, strict=True):
        chart.shard.of_words(words).copy_(sums.words)
        chart.shard.of_table(scores).copy_(sums.span_scores)
    return Sums(**rules, words=words, span_scores=scores)


@torch.no_grad()
def marginals(pcfg: LowRankPCFG) -> Marginals:
    """Posteriors of spans, labels and tags from one inside and one outside pass."""
    words, span_scores = pcfg.masked_words(), pcfg.scores()
    B, N, _ = words.shape
    spans, tags = words.new_zeros(B, N + 1, N + 1), words.new_zeros(B, N)
    result = Marginals(
        words.new_full((B,), -torch.inf), spans, torch.zeros_like(spans, dtype=torch.long), torch.zeros_like(spans),
        torch.zeros_like(tags, dtype=torch.long), tags,
    )  # fmt: skip

    def run(piece: tuple[_Matrices, Shard]) -> None:
        matrices, shard = piece
        chart = _inside_of(matrices, shard, shard.of_words(words), span_scores[shard.sentences])
        for name, value in _marginals_of(chart).items():
            whole = getattr(result, name)
            (whole[shard.sentences] if whole.ndim == 1 else shard.of_words(whole) if whole.ndim == 2
             else shard.of_table(whole)).copy_(value)  # fmt: skip

    threads.in_pieces(run, _work(tables(pcfg, skip_symbols=False), pcfg))
    return result


def _marginals_of(chart: _Chart) -> dict[str, Any]:
    """The fields of `Marginals` for the sentences of one shard."""
    outside, shard, wordy = _outside_of(chart), chart.shard, len(chart.leaves)
    weight = chart.rank.new_empty(shard.rows)
    kernels.row_weights(
        shard.longest, shard.first, chart.log_z, np.ones(len(shard.lengths)), _bound(weight.dtype), chart.symbol_scale,
        outside.symbol_scale, weight.numpy(),
    )  # fmt: skip
    tags = outside.leaves.mul_(chart.leaves).max(-1)
    products = outside.symbols[wordy:].mul_(chart.symbols[wordy:])
    labels = products.max(-1)
    spans, label_posterior = weight.clone(), torch.zeros_like(weight)
    best_label = torch.zeros(shard.rows, dtype=torch.long)
    spans[:wordy] *= outside.leaves.sum(-1)
    spans[wordy:] *= products.sum(-1)
    label_posterior[wordy:] = labels.values * weight[wordy:]
    best_label[wordy:] = torch.where(label_posterior[wordy:] > 0, labels.indices, 0)
    tag_posterior = tags.values * weight[:wordy]
    return {
        "log_partition": torch.from_numpy(chart.log_z),
        "spans": shard.table(spans),
        "best_label": shard.table(best_label),
        "best_label_posterior": shard.table(label_posterior),
        "best_tag": torch.where(tag_posterior > 0, tags.indices, 0).view(shard.shape),
        "best_tag_posterior": tag_posterior.view(shard.shape),
    }
