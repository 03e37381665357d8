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
from ramify.structures.compiled_sums import normalise_row, weighted_sum


@compiled
def normalise_rows(begin, end, rows, scale_before, scale_after):
    """Scale the rows from `begin` to `end` in place."""
    for row in range(begin, end):
        scale_after[row] = scale_before[row] + normalise_row(rows[row])


@compiled
def sum_splits(width, N, first, children, symbol_scale, left_scale, right_scale, scores, rank, rank_scale):
    """x of every span of one width, scaled: sum over the splits of left part times right part.

    Before that, the children of the spans one word narrower, which were just multiplied out, are scaled.
    """
    d = rank.shape[1]
    for row in range(first[width - 1], first[width]):
        left_scale[row] = symbol_scale[row] + normalise_row(children[row, :d])
        right_scale[row] = symbol_scale[row] + normalise_row(children[row, d:])
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
        rank_scale[row] = scores[row] + weighted_sum(
            rank[row], width - 1, terms, children, lefts, 0, children, rights, d
        )


@compiled
def pull_from_parents(
    width, N, first, children, left_scale, right_scale, g_rank, g_x_scale, g_rank_scale, is_scaled, g_children, g_scale
):
    """Outside of [left | right] of every span of one width, from all its parents, both halves in one scale.

    Before that, the outside vectors of the spans one word wider, if they were just multiplied out, are scaled.
    """
    if width < N:
        for row in range(first[width + 1], first[width + 2]):
            g_rank_scale[row] = g_x_scale[row] + (0.0 if is_scaled else normalise_row(g_rank[row]))
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
        left = weighted_sum(g_left, N - i - width, terms, g_rank, parents, 0, children, siblings, d)
        for t in range(1, i + 1):  # as right child: the left sibling has t words
            parents[t - 1] = first[width + t] + b * (starts - t) + i - t
            siblings[t - 1] = first[t] + b * (N - t + 1) + i - t
            terms[t - 1] = g_rank_scale[parents[t - 1]] + left_scale[siblings[t - 1]]
        right = weighted_sum(g_right, i, terms, g_rank, parents, 0, children, siblings, 0)
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
            g_symbol_scale[row] = g_children_scale[row] + normalise_row(g_symbols[row])
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
