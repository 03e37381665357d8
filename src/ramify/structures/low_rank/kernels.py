"""The compiled loops of the CPU path: everything between two matrix products, for all spans of one width.

A chart is a matrix with one row a span: the spans of one width stand together, sentence by sentence, so that
`first[width] + b * (N - width + 1) + start` is a span's row and each width is one contiguous block that a matrix
product can take whole. A row holds non-negative numbers that sum to one; `scale` holds the logarithm of what it was
divided by, minus infinity for an impossible span. Threads run these loops on sentences of their own, so the loops
themselves are serial.
"""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

import math

import numpy as np

from ramify.runtime.compilation import compiled

# One over anything below would overflow a float32.
_SMALLEST = float(np.finfo(np.float32).tiny)


@compiled
def _add_product(total, weight, a, b):
    for k in range(total.shape[0]):
        total[k] += weight * a[k] * b[k]


@compiled
def _add_products(total, weights, a0, b0, a1, b1, a2, b2, a3, b3):
    # Four at a time: the sums are loaded and stored less often, and more loads are under way at once.
    w0, w1, w2, w3 = weights
    for k in range(total.shape[0]):
        total[k] += (w0 * a0[k] * b0[k] + w1 * a1[k] * b1[k]) + (w2 * a2[k] * b2[k] + w3 * a3[k] * b3[k])


@compiled
def _normalise(row):
    """Divide a row by its sum; gives the sum's logarithm. A sum too small to divide by is as good as zero."""
    total = row.dtype.type(0)
    for k in range(row.shape[0]):
        total += row[k]
    if total > _SMALLEST:
        inverse = 1 / total
        for k in range(row.shape[0]):
            row[k] *= inverse
        return math.log(total)
    row[:] = 0
    return -np.inf


@compiled
def normalise_rows(begin, end, rows, scale_before, scale_after):
    """Scale the rows from `begin` to `end` in place."""
    for row in range(begin, end):
        scale_after[row] = scale_before[row] + _normalise(rows[row])


@compiled
def sum_splits(width, N, first, children, symbol_scale, left_scale, right_scale, scores, rank, rank_scale):
    """x of every span of one width, scaled: sum over the splits of left part times right part.

    Before that, the children of the spans one word narrower, which were just multiplied out, are scaled.
    """
    d = rank.shape[1]
    for row in range(first[width - 1], first[width]):
        left_scale[row] = symbol_scale[row] + _normalise(children[row, :d])
        right_scale[row] = symbol_scale[row] + _normalise(children[row, d:])
    starts = N - width + 1
    terms = np.empty(width)
    lefts, rights = np.empty(width, np.int64), np.empty(width, np.int64)
    for cell in range(first[width + 1] - first[width]):
        b, i = cell // starts, cell % starts
        row = first[width] + cell
        for s in range(1, width):
            lefts[s - 1] = first[s] + b * (N - s + 1) + i
            rights[s - 1] = first[width - s] + b * (starts + s) + i + s
            terms[s - 1] = left_scale[lefts[s - 1]] + right_scale[rights[s - 1]]
        rank_scale[row] = scores[row] + _weighted_sum(
            rank[row], width - 1, terms, children, lefts, 0, children, rights, d
        )


@compiled
def _weighted_sum(total, count, terms, a, a_rows, a_column, b, b_rows, b_column):
    """total = sum over `count` terms of exp(terms[t]) a[a_rows[t]] * b[b_rows[t]], scaled; gives its log scale.

    Of a and b as many columns are taken as `total` has, from `a_column` and `b_column` on. Overwrites the terms.
    """
    total[:] = 0
    peak = -np.inf
    for t in range(count):
        peak = max(peak, terms[t])
    if peak == -np.inf:
        return -np.inf
    number = total.dtype.type
    kept = 0  # terms that underflow are left out
    for t in range(count):
        weight = number(math.exp(terms[t] - peak))
        if weight > 0:
            terms[kept], a_rows[kept], b_rows[kept] = weight, a_rows[t], b_rows[t]
            kept += 1
    a_end, b_end = a_column + total.shape[0], b_column + total.shape[0]
    fours = kept - kept % 4
    for t in range(0, fours, 4):
        _add_products(
            total, (number(terms[t]), number(terms[t + 1]), number(terms[t + 2]), number(terms[t + 3])),
            a[a_rows[t], a_column:a_end], b[b_rows[t], b_column:b_end],
            a[a_rows[t + 1], a_column:a_end], b[b_rows[t + 1], b_column:b_end],
            a[a_rows[t + 2], a_column:a_end], b[b_rows[t + 2], b_column:b_end],
            a[a_rows[t + 3], a_column:a_end], b[b_rows[t + 3], b_column:b_end],
        )  # fmt: skip
    for t in range(fours, kept):
        _add_product(total, number(terms[t]), a[a_rows[t], a_column:a_end], b[b_rows[t], b_column:b_end])
    return peak + _normalise(total)


@compiled
def pull_from_parents(
    width, N, first, children, left_scale, right_scale, g_rank, g_x_scale, g_rank_scale, is_scaled, g_children, g_scale
):
    """Outside of [left | right] of every span of one width, from all its parents, both halves in one scale.

    Before that, the outside vectors of the spans one word wider, if they were just multiplied out, are scaled.
    """
    if width < N:
        for row in range(first[width + 1], first[width + 2]):
            g_rank_scale[row] = g_x_scale[row] + (0.0 if is_scaled else _normalise(g_rank[row]))
    starts = N - width + 1
    d = g_rank.shape[1]
    terms = np.empty(N)
    parents, siblings = np.empty(N, np.int64), np.empty(N, np.int64)
    for cell in range(first[width + 1] - first[width]):
        b, i = cell // starts, cell % starts
        row = first[width] + cell
        g_left, g_right = g_children[row, :d], g_children[row, d:]
        for t in range(1, N - i - width + 1):  # as left child: the right sibling has t words
            parents[t - 1] = first[width + t] + b * (starts - t) + i
            siblings[t - 1] = first[t] + b * (N - t + 1) + i + width
            terms[t - 1] = g_rank_scale[parents[t - 1]] + right_scale[siblings[t - 1]]
        left = _weighted_sum(g_left, N - i - width, terms, g_rank, parents, 0, children, siblings, d)
        for t in range(1, i + 1):  # as right child: the left sibling has t words
            parents[t - 1] = first[width + t] + b * (starts - t) + i - t
            siblings[t - 1] = first[t] + b * (N - t + 1) + i - t
            terms[t - 1] = g_rank_scale[parents[t - 1]] + left_scale[siblings[t - 1]]
        right = _weighted_sum(g_right, i, terms, g_rank, parents, 0, children, siblings, 0)
        common = max(left, right)
        g_scale[row] = common
        if common > -np.inf:
            g_left *= g_rank.dtype.type(math.exp(left - common))
            g_right *= g_rank.dtype.type(math.exp(right - common))


@compiled
def scale_outside(
    width, N, first, lengths, root, root_scale, scores, g_children_scale, g_symbols, g_symbol_scale, g_x_scale
):
    """Scale the outside vectors of the symbols of one width; a whole sentence stands below a start rule instead."""
    starts = N - width + 1
    for row in range(first[width], first[width + 1]):
        cell = row - first[width]
        if cell % starts == 0 and lengths[cell // starts] == width:
            g_symbols[row] = root
            g_symbol_scale[row] = root_scale
        else:
            g_symbol_scale[row] = g_children_scale[row] + _normalise(g_symbols[row])
        g_x_scale[row] = g_symbol_scale[row] + scores[row]


@compiled
def row_weights(N, first, log_z, factor, bound, inside, outside, weights):
    """exp(inside + outside - log p(w)) by row; bounded, zero where p(w) = 0, times a factor a sentence.

    A weight beyond the bound belongs to products that underflowed; bounding it keeps them zero, not 0 * inf.
    """
    for width in range(1, N + 1):
        starts = N - width + 1
        for row in range(first[width], first[width + 1]):
            b = (row - first[width]) // starts
            weights[row] = 0
            if log_z[b] > -np.inf:
                weights[row] = math.exp(min(inside[row] + outside[row] - log_z[b], bound)) * factor[b]


@compiled
def weighted_products(begin, a, b, weights, result):
    """result[begin + r] = weights[begin + r] a[r] . b[r]"""
    for row in range(a.shape[0]):
        total = a.dtype.type(0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[row, k]
        result[begin + row] = total * weights[begin + row]


@compiled
def weigh_rows(rows, weights):
    """rows[r] *= weights[r]"""
    for row in range(rows.shape[0]):
        rows[row] *= weights[row]


@compiled
def rows_of_table(N, first, table, rows):
    """A table over fence posts (B, N+1, N+1) in the order of the chart's rows."""
    for width in range(1, N + 1):
        starts = N - width + 1
        for row in range(first[width], first[width + 1]):
            b, i = (row - first[width]) // starts, (row - first[width]) % starts
            rows[row] = table[b, i, i + width]


@compiled
def table_of_rows(N, first, rows, table):
    """The chart's rows as a table over fence posts (B, N+1, N+1)."""
    for width in range(1, N + 1):
        starts = N - width + 1
        for row in range(first[width], first[width + 1]):
            b, i = (row - first[width]) // starts, (row - first[width]) % starts
            table[b, i, i + width] = rows[row]
