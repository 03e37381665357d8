"""The compiled passes over charts, inside and outside, for training and for parsing.

A chart is a matrix with one row per span. Sentences are processed in groups of a few, whose charts stay in the cache.
In a group the spans of one width stand together, sentence by sentence, so that `first[width] + b * (N - width + 1) +
start` is a span's row, N words being the longest sentence, and a matrix product takes all spans of one width. A row
holds non-negative numbers that sum to one; `scale` holds the logarithm of what it was divided by, minus infinity for an
impossible span. Rows are padded with zeros to whole lines of the cache (runtime/padding.py); D, S and P are the padded
sizes of rank, symbols and preterminals. The two halves of [left | right] children have separate scales. No sentence's
result depends on the others.
"""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ramify.runtime.compilation import compiled
from ramify.runtime.products import multiply_rows, sum_of_products
from ramify.structures.compiled_sums import normalise_row, relative_weights

Array = NDArray[Any]


class Rules(NamedTuple):
    """Probabilities, as packed matrices (runtime/products.py) that lead from the words up and back down."""

    root: Array
    """(S,)"""
    head: Array
    """(d, S) from components to symbols, without rows where these are the same"""
    head_down: Array
    """(n, D)"""
    children: Array
    """(s, 2D) from symbols to [left | right]"""
    children_down: Array
    """(2D, S)"""
    leaf_children: Array
    """(p, 2D)"""
    leaf_children_down: Array
    """(2D, P)"""


class Chart(NamedTuple):
    """Inside vectors."""

    leaves: Array
    """(words, P) of the words"""
    rank: Array
    """(rows, D)"""
    symbols: Array
    """(rows, S); without a head, `rank` itself"""
    children: Array
    """(rows, 2D)"""
    scores: Array
    """(rows,) of spans"""
    rank_scale: Array
    symbol_scale: Array
    left_scale: Array
    right_scale: Array


class Outside(NamedTuple):
    """Outside vectors in the same rows; both halves of the children have one scale."""

    leaves: Array
    rank: Array
    symbols: Array
    children: Array
    rank_scale: Array
    symbol_scale: Array
    children_scale: Array


@compiled
def first_rows(sentences, N):
    """(N + 2,) the first row of each width, from 1 on, and the number of rows."""
    first = np.zeros(N + 2, np.int64)
    for width in range(1, N + 1):
        first[width + 1] = first[width] + sentences * (N - width + 1)
    return first


@compiled
def chart_part(chart, words, more_words, rows, more_rows):
    """The chart of one group."""
    w, r = words + more_words, rows + more_rows
    return Chart(
        chart.leaves[words:w], chart.rank[rows:r], chart.symbols[rows:r], chart.children[rows:r], chart.scores[rows:r],
        chart.rank_scale[rows:r], chart.symbol_scale[rows:r], chart.left_scale[rows:r], chart.right_scale[rows:r],
    )  # fmt: skip


@compiled
def empty_chart(words, rows, leaves, rules):
    """With room for that many rows of words and of spans; `leaves` (B, N, P) give the type of the numbers."""
    dtype, D = leaves.dtype, rules.children.shape[1] // 2
    rank, rank_scale = np.empty((rows, D), dtype), np.empty(rows)
    symbols, symbol_scale = rank, rank_scale
    if len(rules.head):
        symbols, symbol_scale = np.empty((rows, len(rules.root)), dtype), np.empty(rows)
    return Chart(
        np.empty((words, leaves.shape[2]), dtype), rank, symbols, np.empty((rows, 2 * D), dtype), np.empty(rows),
        rank_scale, symbol_scale, np.empty(rows), np.empty(rows),
    )  # fmt: skip


@compiled
def empty_outside(words, rows, chart, rules):
    """For as many rows."""
    (_, P), (_, D), (_, S), dtype = chart.leaves.shape, chart.rank.shape, chart.symbols.shape, chart.rank.dtype
    rank = np.empty((rows, D), dtype)
    symbols = np.empty((rows, S), dtype) if len(rules.head) else rank
    return Outside(
        np.empty((words, P), dtype), rank, symbols, np.empty((rows, 2 * D), dtype), np.empty(rows), np.empty(rows),
        np.empty(rows),
    )  # fmt: skip


@compiled
def begin_chart(N, first, leaves, leaf_scale, span_scores, chart):
    """The words and scores of a group in its rows; without sentences in `span_scores`, there are none."""
    for width in range(1, N + 1):
        for row in range(first[width], first[width + 1]):
            b, i = (row - first[width]) // (N - width + 1), (row - first[width]) % (N - width + 1)
            chart.scores[row] = span_scores[b, i, i + width] if len(span_scores) else 0.0
            if width == 1:
                chart.leaves[row] = leaves[b, i]
                chart.symbol_scale[row] = leaf_scale[b, i] + chart.scores[row]


@compiled
def fill_inside(N, first, rules, chart):
    """From the words to the whole sentences."""
    rank, symbols, children = chart.rank, chart.symbols, chart.children
    D = rank.shape[1]
    terms, lefts, rights = np.empty(N), np.empty(N, np.int64), np.empty(N, np.int64)
    multiply_rows(chart.leaves, 0, first[2], rules.leaf_children, children)
    for width in range(2, N + 1):
        for row in range(first[width - 1], first[width]):
            chart.left_scale[row] = chart.symbol_scale[row] + normalise_row(children[row, :D])
            chart.right_scale[row] = chart.symbol_scale[row] + normalise_row(children[row, D:])
        starts, begin, end = N - width + 1, first[width], first[width + 1]
        for row in range(begin, end):
            b, i = (row - begin) // starts, (row - begin) % starts
            for s in range(1, width):
                left, right = first[s] + b * (N - s + 1) + i, first[width - s] + b * (starts + s) + i + s
                terms[s - 1] = chart.left_scale[left] + chart.right_scale[right]
                lefts[s - 1], rights[s - 1] = 2 * D * left, 2 * D * right + D
            kept, peak = relative_weights(width - 1, terms, lefts, rights, rank.dtype.type)
            sum_of_products(terms, kept, children, lefts, children, rights, rank, row * D, D)
            chart.rank_scale[row] = chart.scores[row] + peak + normalise_row(rank[row])
        if len(rules.head):
            multiply_rows(rank, begin, end, rules.head, symbols)
            for row in range(begin, end):
                chart.symbol_scale[row] = chart.rank_scale[row] + normalise_row(symbols[row])
        if width < N:  # nothing has the widest span as its child
            multiply_rows(symbols, begin, end, rules.children, children)


@compiled
def log_partition(N, first, lengths, root, chart, log_z):
    """log p(w) of each sentence; minus infinity for a single word, which has no tree."""
    for b in range(len(lengths)):
        log_z[b] = -np.inf
        if lengths[b] > 1:
            row, mass = first[lengths[b]] + b * (N - lengths[b] + 1), 0.0
            for k in range(len(root)):
                mass += chart.symbols[row, k] * root[k]
            if mass > 0:
                log_z[b] = chart.symbol_scale[row] + math.log(mass)


@compiled
def fill_outside(N, first, lengths, rules, chart, out):
    """From the whole sentences to the words."""
    g_rank, g_symbols, g_children = out.rank, out.symbols, out.children
    D, number = g_rank.shape[1], g_rank.dtype.type
    terms, parents, siblings = np.empty(N), np.empty(N, np.int64), np.empty(N, np.int64)
    root = rules.root.copy()
    root_scale = normalise_row(root)
    for width in range(N, 0, -1):
        starts, begin, end = N - width + 1, first[width], first[width + 1]
        for row in range(begin, end):
            b, i = (row - begin) // starts, (row - begin) % starts
            for t in range(1, N - i - width + 1):  # as left child: the right sibling has t words
                parent, sibling = first[width + t] + b * (starts - t) + i, first[t] + b * (N - t + 1) + i + width
                terms[t - 1] = out.rank_scale[parent] + chart.right_scale[sibling]
                parents[t - 1], siblings[t - 1] = parent * D, sibling * 2 * D + D
            kept, left = relative_weights(N - i - width, terms, parents, siblings, number)
            sum_of_products(terms, kept, g_rank, parents, chart.children, siblings, g_children, row * 2 * D, D)
            for t in range(1, i + 1):  # as right child: the left sibling has t words
                parent, sibling = first[width + t] + b * (starts - t) + i - t, first[t] + b * (N - t + 1) + i - t
                terms[t - 1] = out.rank_scale[parent] + chart.left_scale[sibling]
                parents[t - 1], siblings[t - 1] = parent * D, sibling * 2 * D
            kept, right = relative_weights(i, terms, parents, siblings, number)
            sum_of_products(terms, kept, g_rank, parents, chart.children, siblings, g_children, row * 2 * D + D, D)
            left += normalise_row(g_children[row, :D])
            right += normalise_row(g_children[row, D:])
            common = max(left, right)
            out.children_scale[row] = common
            if common > -np.inf:
                g_children[row, :D] *= number(math.exp(left - common))
                g_children[row, D:] *= number(math.exp(right - common))
        if width == 1:
            break
        if width < N:
            multiply_rows(g_children, begin, end, rules.children_down, g_symbols)
        else:
            g_symbols[begin:end] = 0
        for row in range(begin, end):
            cell = row - begin
            if cell % starts == 0 and lengths[cell // starts] == width:  # below a start rule
                g_symbols[row] = root
                out.symbol_scale[row] = root_scale
            else:
                out.symbol_scale[row] = out.children_scale[row] + normalise_row(g_symbols[row])
            out.rank_scale[row] = out.symbol_scale[row] + chart.scores[row]
        if len(rules.head):
            multiply_rows(g_symbols, begin, end, rules.head_down, g_rank)
            for row in range(begin, end):
                out.rank_scale[row] += normalise_row(g_rank[row])
    multiply_rows(g_children, 0, first[2], rules.leaf_children_down, out.leaves)
    for row in range(first[2]):
        out.symbol_scale[row] = out.children_scale[row] + normalise_row(out.leaves[row])


@compiled
def inside(lengths, group, leaves, leaf_scale, span_scores, rules, chart, log_z):
    """Fill the charts of some sentences, group after group, and log p(w) (B,).

    `leaves` (B, N, P) and `leaf_scale` (B, N) are those of the words, `span_scores` (B, N+1, N+1).
    """
    words = rows = 0
    for begin in range(0, len(lengths), group):
        some = lengths[begin : begin + group]
        N, end = some.max(), begin + len(some)
        first = first_rows(len(some), N)
        part = chart_part(chart, words, first[2], rows, first[N + 1])
        begin_chart(N, first, leaves[begin:end], leaf_scale[begin:end], span_scores[begin:end], part)
        fill_inside(N, first, rules, part)
        log_partition(N, first, some, rules.root, part, log_z[begin:end])
        words, rows = words + first[2], rows + first[N + 1]
