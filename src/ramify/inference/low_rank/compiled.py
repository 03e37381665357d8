"""The CPU path: matrix products by torch, everything between them in compiled loops.

The same algorithm and numerics as scaled.py (derivation: README.md beside this file), with the charts laid out as
kernels.py describes, so that one width is one matrix and no work is spent on pairs of spans that do not meet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ramify.inference.low_rank import kernels
from ramify.inference.low_rank.passes import Sums
from ramify.inference.rules import LowRankRules, Marginals

Scales = NDArray[np.float64]


@dataclass
class Chart:
    """What the inside pass leaves behind; matrices have one row a span."""

    head: Tensor | None
    """(n, d) U, or None where `children_of` already is the product U^T [V | W] and the symbols are skipped"""
    children_of: Tensor
    """(n or d, 2d) [V | W] below spans of two words or more"""
    leaf_children_of: Tensor
    """(p, 2d) [V | W] below words"""
    root: Tensor
    """(n or d,)"""
    first: NDArray[np.int64]
    """(N + 2,) the first row of each width"""
    lengths: NDArray[np.int64]
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
    """(B,)"""

    @property
    def longest(self) -> int:
        """N, the number of words of the longest sentence."""
        return len(self.first) - 2

    def block(self, width: int) -> slice:
        """The rows of one width."""
        return slice(int(self.first[width]), int(self.first[width + 1]))

    def whole(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The sentences of two words or more, and the row of the span over each."""
        sentences = np.flatnonzero(self.lengths > 1)
        widths = self.lengths[sentences]
        return sentences, self.first[widths] + sentences * (self.longest - widths + 1)

    def sentence_of_rows(self) -> NDArray[np.int64]:
        """(rows,)"""
        B, N = len(self.lengths), self.longest
        return np.concatenate([np.repeat(np.arange(B), N - width + 1) for width in range(1, N + 1)])


def _rows(per_width: list[Tensor]) -> Tensor:
    """Values (B, starts) of each width, in the order of the chart's rows."""
    return torch.cat([values.reshape(-1) for values in per_width])


def _diagonals(table: Tensor) -> Tensor:
    """(B, N+1, N+1) over fence posts, in the order of the chart's rows."""
    return _rows([table.diagonal(width, 1, 2) for width in range(1, table.shape[1])])


def _to_table(rows: Tensor, chart: Chart) -> Tensor:
    """The chart's rows as a table over fence posts (B, N+1, N+1)."""
    B, N = len(chart.lengths), chart.longest
    table = rows.new_zeros(B, N + 1, N + 1)
    for width in range(1, N + 1):
        table.diagonal(width, 1, 2).copy_(rows[chart.block(width)].view(B, -1))
    return table


def inside_pass(rules: LowRankRules, span_scores: Tensor, skip_symbols: bool) -> Chart:
    """All inside vectors, from the words to the whole sentences."""
    n, d = rules.head.shape
    B, N, p = rules.words.shape
    head, root = rules.head.exp(), rules.root.exp()
    both = torch.cat([rules.left, rules.right], 1).exp()
    children_of = both[:n]
    if skip_symbols:
        children_of, root = head.T @ children_of, head.T @ root
    first = np.concatenate([[0], np.cumsum([0, *(B * (N - width + 1) for width in range(1, N + 1))])])
    rows = int(first[-1])

    words = rules.masked_words().reshape(B * N, p)
    peak = words.amax(-1)
    leaves = (words - torch.where(peak == -torch.inf, 0, peak)[:, None]).exp()
    scores = _diagonals(span_scores).double().numpy()
    rank_scale, symbol_scale, left_scale, right_scale = (np.full(rows, -np.inf) for _ in range(4))
    rank, children = words.new_empty(rows, d), words.new_empty(rows, 2 * d)
    symbols = rank if skip_symbols else words.new_empty(rows, n)
    chart = Chart(
        None if skip_symbols else head, children_of, both[n:], root, first, rules.lengths.numpy(), scores, leaves,
        rank, symbols, children, rank_scale, symbol_scale, left_scale, right_scale, np.full(B, -np.inf),
    )  # fmt: skip
    chart.symbol_scale[: B * N] = peak.double().numpy() + scores[: B * N]
    for width in range(1, N + 1):
        block = chart.block(width)
        if width > 1:
            kernels.sum_splits(
                width, N, first, children.numpy(), chart.left_scale, chart.right_scale, scores,
                rank.numpy(), chart.rank_scale,
            )  # fmt: skip
            if skip_symbols:
                chart.symbol_scale[block] = chart.rank_scale[block]
            else:
                torch.mm(rank[block], head.T, out=symbols[block])
                kernels.normalise_rows(symbols[block].numpy(), chart.rank_scale[block], chart.symbol_scale[block])
        below = leaves if width == 1 else symbols[block]
        torch.mm(below, chart.leaf_children_of if width == 1 else children_of, out=children[block])
        kernels.normalise_children(
            children[block].numpy(), chart.symbol_scale[block], chart.left_scale[block], chart.right_scale[block]
        )
    sentences, whole = chart.whole()
    if len(sentences):
        mass = (symbols[whole] @ root).double().numpy()
        with np.errstate(divide="ignore"):
            chart.log_z[sentences] = chart.symbol_scale[whole] + np.log(mass)
    return chart


@dataclass
class _Outside:
    """Outside vectors in the chart's rows; of words, `symbols` is apart because there are p of them."""

    leaves: Tensor
    symbols: Tensor
    children: Tensor
    symbol_scale: Scales
    children_scale: Scales


def _outside_pass(chart: Chart) -> _Outside:
    rows, N = len(chart.scores), chart.longest
    g_rank, g_children = torch.empty_like(chart.rank), torch.empty_like(chart.children)
    g_symbols = g_rank if chart.head is None else torch.empty_like(chart.symbols)
    g_rank_scale, g_symbol_scale, g_children_scale = (np.full(rows, -np.inf) for _ in range(3))
    sentences, whole = chart.whole()
    root = chart.root / chart.root.sum()
    root_scale = math.log(float(chart.root.sum()))
    result = _Outside(torch.empty_like(chart.leaves), g_symbols, g_children, g_symbol_scale, g_children_scale)
    for width in range(N, 0, -1):
        block = chart.block(width)
        kernels.pull_from_parents(
            width, N, chart.first, chart.children.numpy(), chart.left_scale, chart.right_scale,
            g_rank.numpy(), g_rank_scale, g_children.numpy(), g_children_scale,
        )  # fmt: skip
        target = result.leaves if width == 1 else g_symbols[block]
        torch.mm(g_children[block], (chart.leaf_children_of if width == 1 else chart.children_of).T, out=target)
        kernels.normalise_rows(target.numpy(), g_children_scale[block], g_symbol_scale[block])
        if width == 1:
            break
        complete = whole[chart.lengths[sentences] == width]  # below a start rule instead
        g_symbols[complete] = root
        g_symbol_scale[complete] = root_scale
        outer_scale = g_symbol_scale[block] + chart.scores[block]
        if chart.head is None:
            g_rank_scale[block] = outer_scale
        else:
            torch.mm(g_symbols[block], chart.head, out=g_rank[block])
            kernels.normalise_rows(g_rank[block].numpy(), outer_scale, g_rank_scale[block])
    return result


class _Weights:
    """exp(inside + outside - log p(w)) by row; bounded, zero where p(w) = 0, times a factor a sentence."""

    def __init__(self, chart: Chart, factor: NDArray[Any]) -> None:
        sentence = chart.sentence_of_rows()
        self.possible = chart.log_z[sentence] > -np.inf
        self.log_z = np.where(self.possible, chart.log_z[sentence], 0)
        self.factor = factor[sentence]
        dtype = chart.rank.dtype
        self.bound, self.dtype = math.log(torch.finfo(dtype).max) - 10, dtype

    def __call__(self, inside: Scales, outside: Scales, block: slice) -> Tensor:
        exponent = np.minimum(inside[block] + outside[block] - self.log_z[block], self.bound)
        weights = np.where(self.possible[block], np.exp(exponent), 0) * self.factor[block]
        return torch.from_numpy(weights).to(self.dtype)


def gradient_sums(chart: Chart, upstream: Tensor) -> Sums:
    """The gradient of the sum of upstream * log p(w): one outside pass and three large products."""
    outside = _outside_pass(chart)
    B, rows = len(chart.lengths), len(chart.scores)
    words, phrases = slice(0, B * chart.longest), slice(B * chart.longest, rows)
    weights = _Weights(chart, upstream.double().numpy())
    posterior = weights(chart.symbol_scale, outside.symbol_scale, slice(0, rows))
    spans = torch.empty(rows, dtype=chart.rank.dtype)
    kernels.products(chart.leaves.numpy(), outside.leaves.numpy(), spans[words].numpy())
    kernels.products(chart.symbols[phrases].numpy(), outside.symbols[phrases].numpy(), spans[phrases].numpy())
    spans *= posterior
    g_words = chart.leaves * outside.leaves * posterior[words, None]
    _, whole = chart.whole()
    g_root = (chart.symbols[whole] * outside.symbols[whole] * posterior[whole, None]).sum(0)
    outside.children *= weights(chart.symbol_scale, outside.children_scale, slice(0, rows))[:, None]
    g_leaf = chart.leaves.T @ outside.children[words]
    g_children = chart.symbols[phrases].T @ outside.children[phrases]
    g_head = None
    if chart.head is not None:
        outer = outside.symbols[phrases]
        outer *= weights(chart.rank_scale, outside.symbol_scale, phrases)[:, None]
        g_head = outer.T @ chart.rank[phrases]
    return Sums(g_children, g_leaf, g_head, g_root, g_words.view(B, chart.longest, -1), _to_table(spans, chart))


@torch.no_grad()
def marginals(rules: LowRankRules, span_scores: Tensor) -> Marginals:
    """Posteriors of spans, labels and tags from one inside and one outside pass."""
    chart = inside_pass(rules, span_scores, skip_symbols=False)
    outside = _outside_pass(chart)
    B, rows = len(chart.lengths), len(chart.scores)
    words, phrases = slice(0, B * chart.longest), slice(B * chart.longest, rows)
    weight = _Weights(chart, np.ones(B))(chart.symbol_scale, outside.symbol_scale, slice(0, rows))
    tags = outside.leaves.mul_(chart.leaves).max(-1)
    products = outside.symbols[phrases].mul_(chart.symbols[phrases])
    labels = products.max(-1)
    spans, label_posterior = weight.clone(), torch.zeros_like(weight)
    best_label = torch.zeros(rows, dtype=torch.long)
    spans[words] *= outside.leaves.sum(-1)
    spans[phrases] *= products.sum(-1)
    label_posterior[phrases] = labels.values * weight[phrases]
    best_label[phrases] = torch.where(label_posterior[phrases] > 0, labels.indices, 0)
    tag_posterior = tags.values * weight[words]
    return Marginals(
        torch.from_numpy(chart.log_z).to(weight.dtype),
        _to_table(spans, chart),
        _to_table(best_label, chart),
        _to_table(label_posterior, chart),
        torch.where(tag_posterior > 0, tags.indices, 0).view(B, -1),
        tag_posterior.view(B, -1),
    )
