"""The CPU path: matrix products by torch, everything between them in compiled loops.

The same algorithm and numerics as scaled.py (derivation: README.md beside this file), with the charts laid out as
kernels.py describes, so that one width is one matrix and no work is spent on pairs of spans that do not meet.
A batch is cut into a few sentences at a time, whose charts stay in the cache; the cores take turns at them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ramify.runtime import threads
from ramify.runtime.fast_exp import exp
from ramify.structures.low_rank import kernels
from ramify.structures.low_rank.distribution import LowRankPCFG
from ramify.structures.low_rank.passes import Sums, Tables
from ramify.structures.low_rank.shards import Shard, shards

Scales = NDArray[np.float64]


@dataclass
class _Chart:
    """What the inside pass leaves behind of some sentences; matrices have one row a span."""

    tables: Tables
    shard: Shard
    scores: Scales
    """(rows,) span scores"""
    leaves: Tensor
    """(rows of width 1, p)"""
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


def _inside_of(tables: Tables, shard: Shard, words: Tensor, span_scores: Tensor) -> _Chart:
    """All inside vectors, from the words to the whole sentences."""
    head, d, B, N = tables.through, tables.rank, len(shard.lengths), shard.longest
    first, rows, wordy = shard.first, shard.rows, B * N
    words = words.reshape(wordy, -1)
    peak = words.amax(-1)
    leaves = exp(words - torch.where(peak == -torch.inf, 0, peak)[:, None])
    scores = np.empty(rows)
    kernels.rows_of_table(N, first, span_scores.numpy(), scores)
    rank, children = words.new_empty(rows, d), words.new_empty(rows, 2 * d)
    symbols = rank if head is None else words.new_empty(rows, len(head))
    rank_scale, left_scale, right_scale = (np.full(rows, -np.inf) for _ in range(3))
    symbol_scale = rank_scale if head is None else np.full(rows, -np.inf)
    chart = _Chart(
        tables, shard, scores, leaves, rank, symbols, children, rank_scale, symbol_scale, left_scale, right_scale,
        np.full(B, -np.inf),
    )  # fmt: skip
    symbol_scale[:wordy] = peak.double().numpy() + scores[:wordy]
    of_rank, of_symbols, of_children = (shard.by_width(x) for x in (rank, symbols, children))
    torch.mm(leaves, tables.leaf_children, out=of_children[0])
    arrays = (children.numpy(), symbol_scale, left_scale, right_scale, scores, rank.numpy(), rank_scale)
    for width in range(2, N + 1):
        kernels.sum_splits(width, N, first, *arrays)
        if head is not None:
            torch.mm(of_rank[width - 1], head.T, out=of_symbols[width - 1])
            kernels.normalise_rows(first[width], first[width + 1], symbols.numpy(), rank_scale, symbol_scale)
        if width < N:  # nothing has the widest span as its child
            torch.mm(of_symbols[width - 1], tables.children, out=of_children[width - 1])
    sentences, whole = shard.whole()
    if len(sentences):
        mass = (symbols[whole] @ tables.root).double().numpy()
        with np.errstate(divide="ignore"):
            chart.log_z[sentences] = symbol_scale[whole] + np.log(mass)
    return chart


def _outside_of(chart: _Chart) -> _Outside:
    tables, shard, head = chart.tables, chart.shard, chart.tables.through
    first, rows, N = shard.first, shard.rows, shard.longest
    g_rank, g_children = torch.empty_like(chart.rank), torch.empty_like(chart.children)
    g_symbols = g_rank if head is None else torch.empty_like(chart.symbols)
    g_rank_scale, g_x_scale, g_symbol_scale, g_children_scale = (np.full(rows, -np.inf) for _ in range(4))
    total = float(tables.root.sum())
    root, root_scale = (tables.root / total).numpy(), math.log(total)
    result = _Outside(torch.empty_like(chart.leaves), g_symbols, g_children, g_symbol_scale, g_children_scale)
    of_rank, of_symbols, of_children = (shard.by_width(x) for x in (g_rank, g_symbols, g_children))
    arrays = (
        chart.children.numpy(), chart.left_scale, chart.right_scale, g_rank.numpy(), g_x_scale, g_rank_scale,
        head is None, g_children.numpy(), g_children_scale,
    )  # fmt: skip
    for width in range(N, 0, -1):
        kernels.pull_from_parents(width, N, first, *arrays)
        if width == 1:
            break
        if width < N:
            torch.mm(of_children[width - 1], tables.children.T, out=of_symbols[width - 1])
        else:
            of_symbols[width - 1].zero_()
        kernels.scale_outside(
            width, N, first, shard.lengths, root, root_scale, chart.scores, g_children_scale, g_symbols.numpy(),
            g_symbol_scale, g_x_scale,
        )  # fmt: skip
        if head is not None:
            torch.mm(of_symbols[width - 1], head, out=of_rank[width - 1])
    torch.mm(of_children[0], tables.leaf_children.T, out=result.leaves)
    kernels.normalise_rows(0, len(result.leaves), result.leaves.numpy(), g_children_scale, g_symbol_scale)
    return result


def _weights(chart: _Chart, factor: Scales, inside: Scales, outside: Scales) -> Tensor:
    """exp(inside + outside - log p(w)) by row, times a factor a sentence."""
    weights = chart.rank.new_empty(chart.shard.rows)
    bound = math.log(torch.finfo(weights.dtype).max) - 10
    kernels.row_weights(
        chart.shard.longest, chart.shard.first, chart.log_z, factor, bound, inside, outside, weights.numpy()
    )
    return weights


def _gradients_of(chart: _Chart, upstream: Scales) -> Sums:
    """One outside pass and three large products."""
    outside, shard = _outside_of(chart), chart.shard
    wordy = len(chart.leaves)
    posterior = _weights(chart, upstream, chart.symbol_scale, outside.symbol_scale)
    spans = torch.empty_like(posterior)
    pairs = ((0, chart.leaves, outside.leaves), (wordy, chart.symbols[wordy:], outside.symbols[wordy:]))
    for begin, inner, outer in pairs:
        kernels.weighted_products(begin, inner.numpy(), outer.numpy(), posterior.numpy(), spans.numpy())
    g_words = outside.leaves.mul_(chart.leaves).mul_(posterior[:wordy, None])
    _, whole = shard.whole()
    g_root = (chart.symbols[whole] * outside.symbols[whole] * posterior[whole, None]).sum(0)
    weights = _weights(chart, upstream, chart.symbol_scale, outside.children_scale)
    kernels.weigh_rows(outside.children.numpy(), weights.numpy())
    # Each side in one piece, as the softmax behind it would copy it otherwise.
    g_left, g_right = (
        _counts_of(chart.symbols[wordy:], chart.leaves, side) for side in outside.children.split(chart.tables.rank, 1)
    )
    g_head = None
    if chart.tables.through is not None:
        weights = _weights(chart, upstream, chart.rank_scale, outside.symbol_scale)
        kernels.weigh_rows(outside.symbols[wordy:].numpy(), weights[wordy:].numpy())
        g_head = outside.symbols[wordy:].T @ chart.rank[wordy:]
    return Sums(g_left, g_right, g_head, g_root, g_words.view(*shard.shape, -1), shard.table(spans))


def _counts_of(symbols: Tensor, leaves: Tensor, outside: Tensor) -> Tensor:
    """(n or d, then p, d) of phrases and of words, from inside vectors and weighted outside vectors of one side."""
    phrases, wordy = symbols.shape[1], len(leaves)
    table = outside.new_empty(phrases + leaves.shape[1], outside.shape[1])
    torch.mm(symbols.T, outside[wordy:], out=table[:phrases])
    torch.mm(leaves.T, outside[:wordy], out=table[phrases:])
    return table


class Charts:
    """The charts of a whole batch."""

    def __init__(self, charts: list[_Chart], like: Tensor) -> None:
        self.charts, self.like = charts, like
        self.log_z = np.concatenate([chart.log_z for chart in charts])


def inside_pass(tables: Tables, pcfg: LowRankPCFG) -> Charts:
    """All inside vectors, from the words to the whole sentences."""
    words, span_scores = pcfg.masked_words(), pcfg.scores()

    def run(shard: Shard) -> _Chart:
        return _inside_of(tables, shard, shard.of_words(words), span_scores[shard.sentences])

    return Charts(threads.in_pieces(run, shards(pcfg)), words)


def gradient_sums(charts: Charts, upstream: Tensor) -> Sums:
    """The gradient of the sum of upstream * log p(w): one outside pass, and sums over the shards in their order."""
    factors = upstream.double().numpy()

    def run(chart: _Chart) -> Sums:
        return _gradients_of(chart, factors[chart.shard.sentences])

    found = threads.in_pieces(run, charts.charts)
    first, *others = found
    for other in others:
        for name in ("left", "right", "root", *(("head",) if first.head is not None else ())):
            getattr(first, name).add_(getattr(other, name))
    B, N, p = charts.like.shape
    words, scores = charts.like.new_zeros(B, N, p), charts.like.new_zeros(B, N + 1, N + 1)
    for chart, sums in zip(charts.charts, found, strict=True):
        chart.shard.of_words(words).copy_(sums.words)
        chart.shard.of_table(scores).copy_(sums.span_scores)
    return Sums(first.left, first.right, first.head, first.root, words, scores)
