"""Results of both passes over charts (charts.py): gradients for training, posteriors for parsing."""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ramify.runtime.compilation import compiled
from ramify.runtime.products import multiply
from ramify.structures.compiled_sums import VANISHES, exponentials
from ramify.structures.low_rank.charts import (
    Array,
    begin_chart,
    chart_part,
    empty_chart,
    empty_outside,
    fill_inside,
    fill_outside,
    first_rows,
    log_partition,
)


class Sums(NamedTuple):
    """Sums of the gradients of some sentences, and tables with separate entries for each sentence."""

    root: Array
    """(s,)"""
    head: Array
    """(n, D), or without rows"""
    children: Array
    """(s + p, 2D)"""
    words: Array
    """(B, N, p)"""
    spans: Array
    """(B, N+1, N+1)"""


@compiled
def _row_weights(N, first, log_z, factor, bound, inside, outside, weights):
    """exp(inside + outside - log p(w)) by row; bounded, zero where p(w) = 0, times a factor per sentence.

    A weight beyond the bound belongs to products that underflowed; bounding it keeps them zero, not 0 * inf.
    """
    for width in range(1, N + 1):
        for row in range(first[width], first[width + 1]):
            b = (row - first[width]) // (N - width + 1)
            weights[row] = min(inside[row] + outside[row] - log_z[b], bound) if log_z[b] > -np.inf else 0.0
    exponentials(weights, first[N + 1])
    for width in range(1, N + 1):
        for row in range(first[width], first[width + 1]):
            b = (row - first[width]) // (N - width + 1)
            possible = log_z[b] > -np.inf and weights[row] > VANISHES  # a forbidden span counts exactly zero
            weights[row] = weights[row] * factor[b] if possible else 0.0


@compiled
def _weigh_rows(rows, weights):
    for row in range(rows.shape[0]):
        rows[row] *= rows.dtype.type(weights[row])


@compiled
def _add_gradients(N, first, lengths, log_z, factor, chart, out, weights, sums):
    """Add those of a group to the sums; the outside vectors are overwritten."""
    leaves, rank, symbols, g_symbols, g_children = chart.leaves, chart.rank, chart.symbols, out.symbols, out.children
    P, D, S = leaves.shape[1], rank.shape[1], symbols.shape[1]
    words, rows, s, p = first[2], first[N + 1], len(sums.root), sums.words.shape[2]
    bound = math.log(np.finfo(rank.dtype).max) - 10
    _row_weights(N, first, log_z, factor, bound, chart.symbol_scale, out.symbol_scale, weights)
    for width in range(1, N + 1):
        for row in range(first[width], first[width + 1]):
            b, i = (row - first[width]) // (N - width + 1), (row - first[width]) % (N - width + 1)
            weight, total = rank.dtype.type(weights[row]), rank.dtype.type(0)
            if width == 1:
                for k in range(p):
                    count = leaves[row, k] * out.leaves[row, k] * weight
                    sums.words[b, i, k] = count
                    total += count
            else:
                for k in range(S):
                    total += symbols[row, k] * g_symbols[row, k]
                total *= weight
                if i == 0 and lengths[b] == width:
                    for k in range(s):
                        sums.root[k] += symbols[row, k] * g_symbols[row, k] * weight
            sums.spans[b, i, i + width] = total
    _row_weights(N, first, log_z, factor, bound, chart.symbol_scale, out.children_scale, weights)
    _weigh_rows(g_children[:rows], weights)
    both = 2 * D
    multiply(leaves, 0, 1, P, g_children, 0, both, p, words, both, sums.children, s * both, both, True)
    if N == 1:
        return
    multiply(
        symbols, words * S, 1, S, g_children, words * both, both, s, rows - words, both, sums.children, 0, both, True
    )  # fmt: skip
    if len(sums.head):
        _row_weights(N, first, log_z, factor, bound, chart.rank_scale, out.symbol_scale, weights)
        _weigh_rows(g_symbols[words:rows], weights[words:rows])
        n = len(sums.head)
        multiply(g_symbols, words * S, 1, S, rank, words * D, D, n, rows - words, D, sums.head, 0, D, True)


@compiled
def gradients(lengths, group, upstream, rules, chart, log_z, sums):
    """Add up the gradients of upstream (B,) times log p(w): expected counts and derivatives as `passes.Sums` has them.

    `sums` hold zeros.
    """
    N, most = lengths.max(), min(group, len(lengths))
    rows = most * N * (N + 1) // 2
    room = empty_outside(most * N, rows, chart, rules)
    weights = np.empty(rows)
    words = rows = 0
    for begin in range(0, len(lengths), group):
        some = lengths[begin : begin + group]
        N, end = some.max(), begin + len(some)
        first = first_rows(len(some), N)
        part = chart_part(chart, words, first[2], rows, first[N + 1])
        fill_outside(N, first, some, rules, part, room)
        of_group = Sums(sums.root, sums.head, sums.children, sums.words[begin:end], sums.spans[begin:end])
        _add_gradients(N, first, some, log_z[begin:end], upstream[begin:end], part, room, weights, of_group)
        words, rows = words + first[2], rows + first[N + 1]


@compiled
def _best(a, b, count):
    """The sum of the products of two rows, the largest of them, and its place."""
    total, largest, place = a.dtype.type(0), a.dtype.type(-1), 0
    for k in range(count):
        product = a[k] * b[k]
        total += product
        if product > largest:
            largest, place = product, k
    return total, largest, place


@compiled
def _find_best(N, first, lengths, log_z, chart, out, n, p, spans, labels, label_posteriors, tags, tag_posteriors):
    bound = math.log(np.finfo(spans.dtype).max) - 10  # as in _row_weights
    for width in range(1, N + 1):
        for row in range(first[width], first[width + 1]):
            b, i = (row - first[width]) // (N - width + 1), (row - first[width]) % (N - width + 1)
            if i + width > lengths[b] or log_z[b] == -np.inf:
                continue
            scale = chart.symbol_scale[row] + out.symbol_scale[row] - log_z[b]
            weight = spans.dtype.type(math.exp(min(scale, bound)))
            if width == 1:
                total, largest, place = _best(chart.leaves[row], out.leaves[row], p)
                tag_posteriors[b, i] = largest * weight
                tags[b, i] = place if largest * weight > 0 else 0
            else:
                total, largest, place = _best(chart.symbols[row], out.symbols[row], n)
                label_posteriors[b, i, i + width] = largest * weight
                labels[b, i, i + width] = place if largest * weight > 0 else 0
            spans[b, i, i + width] = total * weight


@compiled
def posteriors(
    lengths, group, leaves, leaf_scale, span_scores, rules, log_z, spans, labels, label_posteriors, tags, tag_posteriors
):
    """Everything that `Marginals` has, for some sentences; tables hold zeros before. Input as that of `inside`."""
    N, most = lengths.max(), min(group, len(lengths))
    words, rows = most * N, most * N * (N + 1) // 2
    n, p = rules.children.shape[0], rules.leaf_children.shape[0]
    chart = empty_chart(words, rows, leaves, rules)
    out = empty_outside(words, rows, chart, rules)
    for begin in range(0, len(lengths), group):
        some = lengths[begin : begin + group]
        N, end = some.max(), begin + len(some)
        first = first_rows(len(some), N)
        begin_chart(N, first, leaves[begin:end], leaf_scale[begin:end], span_scores[begin:end], chart)
        fill_inside(N, first, rules, chart)
        log_partition(N, first, some, rules.root, chart, log_z[begin:end])
        fill_outside(N, first, some, rules, chart, out)
        _find_best(
            N, first, some, log_z[begin:end], chart, out, n, p, spans[begin:end], labels[begin:end],
            label_posteriors[begin:end], tags[begin:end], tag_posteriors[begin:end],
        )  # fmt: skip
