"""Inside, outside and posteriors of some sentences in one compiled call, matrix products included.

The algorithm and the layout of the charts are those of kernels.py. What differs: rows are padded with zeros to whole
lines of the cache, the two halves of the children separately, and no result depends on the other sentences.
"""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

import math

import numpy as np

from ramify.runtime.compilation import compiled
from ramify.runtime.matrix_tiles import multiply_rows, sum_of_products
from ramify.structures.compiled_sums import normalise_row

_LOG2_E, _LN_2 = 1 / math.log(2), math.log(2)
_LEAST = -1022.0
"""The smallest power of two that is a normal float64"""
_VANISHES = 3e-308
"""Weights up to this are those of terms at or below the smallest power"""


@compiled
def _exponentials(terms, count, bits):
    """exp(terms) in place, for terms of at most zero: simple operations, which the compiler does for many at a time.

    2^x is the power of its whole part, written into the exponent of a number, times e to the power of the rest, which
    is below 0.35: the twelve terms of its series leave 6e-15.
    """
    for t in range(count):
        x = max(terms[t] * _LOG2_E, _LEAST)
        whole = math.floor(x + 0.5)
        r = (x - whole) * _LN_2
        # From here on the coefficients are constants: a loop over them would divide.
        series = 1 + r * (1 / 10) * (1 + r * (1 / 11))
        series = 1 + r * (1 / 8) * (1 + r * (1 / 9) * series)
        series = 1 + r * (1 / 6) * (1 + r * (1 / 7) * series)
        series = 1 + r * (1 / 4) * (1 + r * (1 / 5) * series)
        series = 1 + r * (1 / 2) * (1 + r * (1 / 3) * series)
        series = 1 + r * series
        bits[t] = (np.int64(whole) + 1023) << 52
        terms[t] = series
    powers = bits.view(np.float64)
    for t in range(count):
        terms[t] *= powers[t]


@compiled
def _relative(terms, count, weights, bits, a_places, b_places):
    """Weights relative to the largest term, those that vanish left out; their number and the largest term."""
    peak = -np.inf
    for t in range(count):
        peak = max(peak, terms[t])
    kept = 0
    if peak == -np.inf:
        return kept, peak
    for t in range(count):
        terms[t] -= peak
    _exponentials(terms, count, bits)
    number = weights.dtype.type
    for t in range(count):
        weight = number(terms[t])
        if weight > _VANISHES:
            weights[kept], a_places[kept], b_places[kept] = weight, a_places[t], b_places[t]
            kept += 1
    return kept, peak


@compiled
def _scaled_sum(terms, count, weights, bits, a, a_places, b, b_places, c, c_at, columns):
    """As `sum_of_products` with log-weights; gives the logarithm that the sum is to be scaled by."""
    kept, peak = _relative(terms, count, weights, bits, a_places, b_places)
    if kept:
        sum_of_products(weights, kept, a, a_places, b, b_places, c, c_at, columns)
    return kept, peak


@compiled
def inside(N, first, scores, head, children_of, leaf_children, n, p, leaves, rank, symbols, children, scales):
    """Fill rank, symbols and children from the words up; `scales` are those of the four, leaves already there."""
    rank_scale, symbol_scale, left_scale, right_scale = scales
    d = rank.shape[1]
    weights, bits = np.empty(N, rank.dtype), np.empty(N, np.int64)
    terms, lefts, rights = np.empty(N), np.empty(N, np.int64), np.empty(N, np.int64)
    multiply_rows(leaves, 0, first[2], leaf_children, p, children)
    for width in range(2, N + 1):
        for row in range(first[width - 1], first[width]):
            left_scale[row] = symbol_scale[row] + normalise_row(children[row, :d])
            right_scale[row] = symbol_scale[row] + normalise_row(children[row, d:])
        starts = N - width + 1
        for cell in range(first[width + 1] - first[width]):
            b, i = cell // starts, cell % starts
            row = first[width] + cell
            for s in range(1, width):
                left, right = first[s] + b * (N - s + 1) + i, first[width - s] + b * (starts + s) + i + s
                terms[s - 1] = left_scale[left] + right_scale[right]
                lefts[s - 1], rights[s - 1] = 2 * d * left, 2 * d * right + d
            kept, peak = _scaled_sum(
                terms, width - 1, weights, bits, children, lefts, children, rights, rank, row * d, d
            )
            if kept == 0:
                rank[row] = 0
            rank_scale[row] = scores[row] + peak + normalise_row(rank[row])
        begin, end = first[width], first[width + 1]
        if len(head):
            multiply_rows(rank, begin, end, head, rank_depth(head, symbols), symbols)
            for row in range(begin, end):
                symbol_scale[row] = rank_scale[row] + normalise_row(symbols[row])
        if width < N:  # nothing has the widest span as its child
            multiply_rows(symbols, begin, end, children_of, n, children)


@compiled
def rank_depth(packed, c):
    """The depth of a packed matrix with the columns of c."""
    return len(packed) // c.shape[1]


@compiled
def outside(
    N, first, lengths, scores, root, root_scale, up_head, up_children, up_leaves, rank, children, left_scale,
    right_scale, g_leaves, g_rank, g_symbols, g_children, g_symbol_scale, g_children_scale,
):  # fmt: skip
    """Fill the outside vectors from whole sentences down."""
    d = rank.shape[1]
    rows = first[N + 1]
    weights, bits, terms = np.empty(N, rank.dtype), np.empty(N, np.int64), np.empty(N)
    parents, siblings = np.empty(N, np.int64), np.empty(N, np.int64)
    g_rank_scale = np.empty(rows)
    for width in range(N, 0, -1):
        starts = N - width + 1
        begin, end = first[width], first[width + 1]
        for cell in range(end - begin):
            b, i = cell // starts, cell % starts
            row = begin + cell
            count = N - i - width
            for t in range(1, count + 1):  # as left child: the right sibling has t words
                parent, sibling = first[width + t] + b * (starts - t) + i, first[t] + b * (N - t + 1) + i + width
                terms[t - 1] = g_rank_scale[parent] + right_scale[sibling]
                parents[t - 1], siblings[t - 1] = parent * d, sibling * 2 * d + d
            at = row * 2 * d
            kept, left = _scaled_sum(
                terms, count, weights, bits, g_rank, parents, children, siblings, g_children, at, d
            )
            if kept == 0:
                g_children[row, :d] = 0
            for t in range(1, i + 1):  # as right child: the left sibling has t words
                parent, sibling = first[width + t] + b * (starts - t) + i - t, first[t] + b * (N - t + 1) + i - t
                terms[t - 1] = g_rank_scale[parent] + left_scale[sibling]
                parents[t - 1], siblings[t - 1] = parent * d, sibling * 2 * d
            kept, right = _scaled_sum(
                terms, i, weights, bits, g_rank, parents, children, siblings, g_children, at + d, d
            )
            if kept == 0:
                g_children[row, d:] = 0
            left += normalise_row(g_children[row, :d])
            right += normalise_row(g_children[row, d:])
            common = max(left, right)
            g_children_scale[row] = common
            if common > -np.inf:
                g_children[row, :d] *= g_rank.dtype.type(math.exp(left - common))
                g_children[row, d:] *= g_rank.dtype.type(math.exp(right - common))
        if width == 1:
            break
        if width < N:
            multiply_rows(g_children, begin, end, up_children, 2 * d, g_symbols)
        else:
            g_symbols[begin:end] = 0
        for row in range(begin, end):
            cell = row - begin
            if cell % starts == 0 and lengths[cell // starts] == width:
                g_symbols[row] = root
                g_symbol_scale[row] = root_scale
            else:
                g_symbol_scale[row] = g_children_scale[row] + normalise_row(g_symbols[row])
            g_rank_scale[row] = g_symbol_scale[row] + scores[row]
        if len(up_head):
            multiply_rows(g_symbols, begin, end, up_head, rank_depth(up_head, g_rank), g_rank)
            for row in range(begin, end):
                g_rank_scale[row] += normalise_row(g_rank[row])
    multiply_rows(g_children, 0, first[2], up_leaves, 2 * d, g_leaves)
    for row in range(first[2]):
        g_symbol_scale[row] = g_children_scale[row] + normalise_row(g_leaves[row])


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
def posteriors(
    N, first, lengths, leaves, leaf_scale, span_scores, n, p, start, tables, log_z, spans, best_label, label_posterior,
    best_tag, tag_posterior,
):  # fmt: skip
    """Everything that `Marginals` has for some sentences, the results written into tables of the batch (B, N+1, N+1).

    `tables` are the packed products up and down: head, children, children of words. Without a head the first are
    empty.
    """
    head, up_head, children_of, up_children, leaf_children, up_leaves = tables
    B, rows, dtype = len(lengths), first[N + 1], leaves.dtype
    d = len(leaf_children) // p // 2
    scores = np.zeros(rows)
    if span_scores.shape[0]:
        for width in range(1, N + 1):
            for row in range(first[width], first[width + 1]):
                b, i = (row - first[width]) // (N - width + 1), (row - first[width]) % (N - width + 1)
                scores[row] = span_scores[b, i, i + width]
    rank, children = np.empty((rows, d), dtype), np.empty((rows, 2 * d), dtype)
    g_rank, g_children = np.empty((rows, d), dtype), np.empty((rows, 2 * d), dtype)
    symbols, g_symbols, g_leaves = rank, g_rank, np.empty_like(leaves)
    rank_scale, left_scale, right_scale = np.empty(rows), np.empty(rows), np.empty(rows)
    symbol_scale, g_symbol_scale, g_children_scale = rank_scale, np.empty(rows), np.empty(rows)
    if len(head):
        symbols, g_symbols = np.empty((rows, len(start)), dtype), np.empty((rows, len(start)), dtype)
        symbol_scale = np.empty(rows)
    for row in range(first[2]):
        symbol_scale[row] = leaf_scale[row] + scores[row]
    scales = rank_scale, symbol_scale, left_scale, right_scale
    inside(N, first, scores, head, children_of, leaf_children, n, p, leaves, rank, symbols, children, scales)
    for b in range(B):
        log_z[b] = -np.inf
        if lengths[b] > 1:
            whole = first[lengths[b]] + b * (N - lengths[b] + 1)
            mass = 0.0
            for k in range(n):
                mass += symbols[whole, k] * start[k]
            if mass > 0:
                log_z[b] = symbol_scale[whole] + math.log(mass)
    root = start.copy()
    root_scale = normalise_row(root)
    outside(
        N, first, lengths, scores, root, root_scale, up_head, up_children, up_leaves, rank, children, left_scale,
        right_scale, g_leaves, g_rank, g_symbols, g_children, g_symbol_scale, g_children_scale,
    )  # fmt: skip
    # A weight beyond the bound belongs to products that underflowed; bounding it keeps them zero, not 0 * inf.
    bound = math.log(np.finfo(dtype).max) - 10
    for width in range(1, N + 1):
        starts = N - width + 1
        for row in range(first[width], first[width + 1]):
            b, i = (row - first[width]) // starts, (row - first[width]) % starts
            if i + width > lengths[b] or log_z[b] == -np.inf:
                continue
            weight = dtype.type(math.exp(min(symbol_scale[row] + g_symbol_scale[row] - log_z[b], bound)))
            if width == 1:
                total, largest, place = _best(leaves[row], g_leaves[row], p)
                tag_posterior[b, i] = largest * weight
                best_tag[b, i] = place if largest * weight > 0 else 0
            else:
                total, largest, place = _best(symbols[row], g_symbols[row], n)
                label_posterior[b, i, i + width] = largest * weight
                best_label[b, i, i + width] = place if largest * weight > 0 else 0
            spans[b, i, i + width] = total * weight
