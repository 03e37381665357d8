"""Inside and outside for low-rank rules in linear space, every span's vector scaled by its maximum.

Plain torch on any device, vectorised over the batch and over all spans of one width. Derivation and notation:
README.md in this folder; how numbers are scaled and charts are laid out: `structures/scaling.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ramify.structures.distribution import Marginals
from ramify.structures.low_rank.distribution import LowRankPCFG
from ramify.structures.low_rank.passes import Sums, Tables
from ramify.structures.scaling import (
    Scaled,
    at_width,
    empty_chart,
    normalise,
    posterior_weights,
    relative,
    scale_dtype,
    span_family,
    store,
)


@dataclass
class _Chart:
    """All results of the inside pass; `rank`, `symbols`, `left` and `right` in scaled form."""

    head: Tensor | None
    """(n, d) U; None where U is the identity, or part of `children`, the product U^T [V | W]"""
    children: Tensor
    """(n or d, 2d) [V | W] below spans of two words or more"""
    leaf_children: Tensor
    """(p, 2d) [V | W] below words"""
    root: Tensor
    """(n or d,) start probabilities, times U where the symbols are skipped"""
    leaves: Scaled
    """(B, N, p)"""
    rank: Scaled
    """(B, N, N, d) x of the design notes"""
    symbols: Scaled
    """(B, N, N, n or d) U x, span scores included"""
    left: Scaled
    right: Scaled
    span_scores: Tensor
    """(B, N+1, N+1)"""
    lengths: Tensor
    log_z: Tensor
    """(B,)"""


def _weighted_sum(a: Scaled, b: Scaled, mask: Tensor | None = None) -> Scaled:
    """sum_s a_s * b_s over the second-last dimension, scaled; terms under `mask` do not count."""
    scales = a[1] + b[1]
    if mask is not None:
        scales = scales.masked_fill(mask, -torch.inf)
    weights, peak = relative(scales, a[0].dtype)
    return normalise((weights[..., None, :] @ (a[0] * b[0])).squeeze(-2), peak)


def tables(pcfg: LowRankPCFG, skip_symbols: bool) -> Tables:
    """Without padding."""
    return Tables.of(pcfg, skip_symbols)


def inside_pass(tables: Tables, pcfg: LowRankPCFG) -> _Chart:
    """All inside vectors, from the words to the whole sentences."""
    head, children, root = tables.through, tables.children, tables.root
    n, d = pcfg.nonterminals, pcfg.rank
    B, N, _ = pcfg.words.shape
    device = pcfg.words.device
    scores = pcfg.scores().to(scale_dtype(device))

    words = pcfg.masked_words()
    peak = words.amax(-1, keepdim=True)
    emission = (words - torch.where(peak == -torch.inf, 0, peak)).exp()
    leaves = emission, peak[..., 0].to(scores.dtype) + scores.diagonal(1, 1, 2)

    rank = empty_chart(B, N, d, words, scores)
    symbols = rank if head is None else empty_chart(B, N, n, words, scores)
    left, right = empty_chart(B, N, d, words, scores), empty_chart(B, N, d, words, scores)
    chart = _Chart(
        head, children, tables.leaf_children, root, leaves, rank, symbols, left, right, scores,
        pcfg.lengths.to(device), scores.new_full((B,), -torch.inf),
    )  # fmt: skip
    for width in range(1, N + 1):
        if width > 1:
            starts = N - width + 1
            # Splits after s = 1 .. width-1 words: left child (i, s), right child (i+s, width-s).
            x, scale = _weighted_sum(
                span_family(left, (starts, width - 1), (N, 1), 0),
                span_family(right, (starts, width - 1), (N, N - 1), N + width - 2),
            )
            scale = scale + scores.diagonal(width, 1, 2)
            store(rank, width, (x, scale))
            if head is not None:
                store(symbols, width, normalise(x @ head.T, scale))
        below, scale = leaves if width == 1 else at_width(symbols, width)
        halves = (below @ (chart.leaf_children if width == 1 else children)).split(d, -1)
        store(left, width, normalise(halves[0], scale))
        store(right, width, normalise(halves[1], scale))

    whole = torch.arange(B, device=device), torch.zeros_like(chart.lengths), chart.lengths - 1
    log_z = symbols[1][whole] + (symbols[0][whole] @ root).to(scores.dtype).log()
    # A sentence of one word has no derivation: every start rule leads to a binary rule.
    chart.log_z = torch.where(chart.lengths > 1, log_z, -torch.inf)
    return chart


def _outside(chart: _Chart) -> Iterator[tuple[int, Scaled, Scaled, Scaled]]:
    """From the widest spans to the words: (width, symbols, their outside, outside of [left | right])."""
    scores, (vectors, scales) = chart.span_scores, chart.rank
    B, N, _, d = vectors.shape
    g_rank = empty_chart(B, N, d, vectors, scales)
    for width in range(N, 0, -1):
        g_left = vectors.new_zeros(B, N - width + 1, d), scales.new_full((B, N - width + 1), -torch.inf)
        g_right = g_left[0].clone(), g_left[1].clone()
        pairs = N - width  # starts that have a right neighbour, and as many that have a left one
        if pairs:
            # As left child (i, width): parents (i, width+t), right siblings (i+width, t), t = 1 ...
            parents = span_family(g_rank, (pairs, pairs), (N, 1), width)
            siblings = span_family(chart.right, (pairs, pairs), (N, 1), width * N)
            total = _weighted_sum(parents, siblings)
            g_left[0][:, :-1], g_left[1][:, :-1] = total
            # As right child (k, width): parents (i, width+k-i), left siblings (i, k-i), i = 0 .. k-1.
            parents = span_family(g_rank, (pairs, pairs), (1, N - 1), width)
            siblings = span_family(chart.left, (pairs, pairs), (1, N - 1), 0)
            not_before = torch.ones(pairs, pairs, dtype=torch.bool, device=vectors.device).triu(1)
            total = _weighted_sum(parents, siblings, not_before)
            g_right[0][:, 1:], g_right[1][:, 1:] = total
        scale = torch.maximum(g_left[1], g_right[1])
        finite = torch.where(scale == -torch.inf, 0, scale)
        g_children = torch.cat([g * (s - finite).exp().to(g.dtype)[..., None] for g, s in (g_left, g_right)], -1)
        below = chart.leaf_children if width == 1 else chart.children
        g_symbols, g_scale = normalise(g_children @ below.T, scale)
        if width > 1:
            complete = chart.lengths == width  # the whole sentence is below a start rule
            g_symbols[complete, 0], g_scale[complete, 0] = normalise(chart.root, scale.new_zeros(()))
            g_x = (g_symbols, g_scale)
            if chart.head is not None:
                g_x = normalise(g_symbols @ chart.head, g_scale)
            store(g_rank, width, (g_x[0], g_x[1] + scores.diagonal(width, 1, 2)))
        inner = chart.leaves if width == 1 else at_width(chart.symbols, width)
        yield width, inner, (g_symbols, g_scale), (g_children, scale)


def gradient_sums(chart: _Chart, upstream: Tensor) -> Sums:
    """The gradient of the sum of upstream * log p(w), from one outside pass."""
    dtype = chart.root.dtype
    B, N, _ = chart.leaves[0].shape
    g_children, g_leaf = torch.zeros_like(chart.children), torch.zeros_like(chart.leaf_children)
    g_head = None if chart.head is None else torch.zeros_like(chart.head)
    g_root = torch.zeros_like(chart.root)
    g_words = torch.empty_like(chart.leaves[0])
    g_scores = g_words.new_zeros(B, N + 1, N + 1)
    for width, (inner, a), (outer, b), (g_below, g_scale) in _outside(chart):
        weight = posterior_weights(a + b, chart.log_z, dtype) * upstream[:, None]
        posterior = inner * outer * weight[..., None]
        g_scores.diagonal(width, 1, 2).copy_(posterior.sum(-1))
        weighted = inner * (posterior_weights(a + g_scale, chart.log_z, dtype) * upstream[:, None])[..., None]
        counts = weighted.flatten(0, 1).T @ g_below.flatten(0, 1)
        if width == 1:
            g_leaf += counts
            g_words = posterior
            continue
        g_children += counts
        g_root += posterior[chart.lengths == width, 0].sum(0)
        if g_head is not None:
            x, x_scale = at_width(chart.rank, width)
            weight = posterior_weights(x_scale + b, chart.log_z, dtype) * upstream[:, None]
            g_head += (outer * weight[..., None]).flatten(0, 1).T @ x.flatten(0, 1)
    left, right = torch.cat([g_children, g_leaf]).chunk(2, 1)
    return Sums(left, right, g_head, g_root, g_words, g_scores)


@torch.no_grad()
def marginals(pcfg: LowRankPCFG) -> Marginals:
    """Posteriors of spans, labels and tags from one inside and one outside pass."""
    chart = inside_pass(Tables.of(pcfg, skip_symbols=False), pcfg)
    B, N, _ = pcfg.words.shape
    spans = pcfg.words.new_zeros(B, N + 1, N + 1)
    best_label = torch.zeros_like(spans, dtype=torch.long)
    best_label_posterior = torch.zeros_like(spans)
    for width, (inner, a), (outer, b), _ in _outside(chart):
        posterior = inner * outer * posterior_weights(a + b, chart.log_z, inner.dtype)[..., None]
        spans.diagonal(width, 1, 2).copy_(posterior.sum(-1))
        top = posterior.max(-1)
        if width > 1:
            best_label.diagonal(width, 1, 2).copy_(top.indices)
            best_label_posterior.diagonal(width, 1, 2).copy_(top.values)
    return Marginals(chart.log_z.to(spans.dtype), spans, best_label, best_label_posterior, top.indices, top.values)
