"""The compiled loops of the CPU path for bilexical rules: whole passes over one sentence at a time.

README.md beside this file has the equations. A chart has one row for every span and head, with all rows of one head p
together: `first[p] + i * (N - p) + j - p - 1` is the row of span (i, j), for i <= p < j. Other children have two rows
for each span, left and right of their head: `2 * span + side`, where `spans[i] + j - i - 1` is the number of a span. A
row holds non-negative numbers that sum to one, padded by zeros to whole blocks; its scale is the logarithm of what it
was divided by, minus infinity for what is impossible. Threads run these loops on different sentences, so the loops
themselves are serial.
"""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

import math

import numpy as np

from ramify.runtime.compilation import compiled
from ramify.structures.compiled_sums import normalise_row
from ramify.structures.lexicalised.products import (
    add_outer_products,
    add_scaled,
    column_products,
    mix_rows,
    row_products,
    weighted_sum,
)

LEFT, RIGHT = 0, 1


@compiled
def inside(
    N, first, spans, scores, components, head_child, other_child, tag_head, tag_other, words, word_scale,
    symbols, symbol_scale, mixed, mixed_scale, heads, head_scale, others, other_scale,
):  # fmt: skip
    """All inside rows of a sentence of N words, from the words to the whole sentence.

    `tag_head` (r,) and `tag_other` (2, r) are the sums of the rules' tables over the preterminals, as all preterminals
    of a word have the same inside weight, that of its span score.
    """
    n, r = head_child.shape
    terms, kept, beside = np.empty(N), np.empty(N, np.int64), np.empty(N, np.int64)
    below, closed = np.empty((N, n), words.dtype), np.empty((n, r), words.dtype)
    for i in range(N):
        row, other = first[i] + i * (N - i), 2 * spans[i]
        symbols[row], mixed[row], mixed_scale[row] = 0, 0, -np.inf
        symbol_scale[row] = scores[i, i + 1]
        heads[row] = tag_head
        head_scale[row] = scores[i, i + 1] + normalise_row(heads[row])
        for side in (LEFT, RIGHT):
            others[other + side] = tag_other[side] * words[i]
            other_scale[other + side] = scores[i, i + 1] + word_scale[i] + normalise_row(others[other + side])
    # By ends, then by heads from the right: the other children (k, j) of a head p < k are complete, and what all spans
    # of a head have in common stays in the cache.
    for j in range(2, N + 1):
        for p in range(j - 1, -1, -1):
            for i in range(min(p, j - 2), -1, -1):
                row = first[p] + i * (N - p) + j - p - 1
                for k in range(i + 1, j):
                    if p < k:
                        kept[k - i - 1] = first[p] + i * (N - p) + k - p - 1
                        beside[k - i - 1] = 2 * (spans[k] + j - k - 1) + RIGHT
                    else:
                        kept[k - i - 1] = first[p] + k * (N - p) + j - p - 1
                        beside[k - i - 1] = 2 * (spans[i] + k - i - 1) + LEFT
                    terms[k - i - 1] = head_scale[kept[k - i - 1]] + other_scale[beside[k - i - 1]]
                mixed_scale[row] = scores[i, j] + weighted_sum(
                    mixed[row], j - i - 1, terms, heads, kept, others, beside
                )
                row_products(mixed[row], components[p], symbols[row])
                symbol_scale[row] = mixed_scale[row] + normalise_row(symbols[row])
                if j - i < N:
                    mix_rows(symbols[row], head_child, heads[row])
                    head_scale[row] = symbol_scale[row] + normalise_row(heads[row])
            if 1 < j - p < N:  # the span (p, j) now has all its heads
                scale = _close(N, first, p, j, words, word_scale, symbols, symbol_scale, below, closed)
                other = 2 * (spans[p] + j - p - 1)
                for side in (LEFT, RIGHT):
                    column_products(closed, other_child[side], others[other + side])
                    other_scale[other + side] = scale + normalise_row(others[other + side])


@compiled
def _close(N, first, i, j, words, word_scale, symbols, symbol_scale, below, closed):
    """closed[C, H] = sum over the heads q of a span of s(i, j, C, q) p(w_q | H), scaled; gives its log scale."""
    peak = -np.inf
    for q in range(i, j):
        peak = max(peak, symbol_scale[first[q] + i * (N - q) + j - q - 1] + word_scale[q])
    closed[:] = 0
    if peak == -np.inf:
        return peak
    for q in range(i, j):
        row = first[q] + i * (N - q) + j - q - 1
        share = symbols.dtype.type(math.exp(symbol_scale[row] + word_scale[q] - peak))
        for c in range(symbols.shape[1]):
            below[q - i, c] = symbols[row, c] * share
    add_outer_products(below[: j - i], words[i:j], closed)
    return peak


@compiled
def _weight(exponent, bound):
    """exp of a sum of log scales minus log p(w): beyond the bound it belongs to products that underflowed."""
    return math.exp(min(exponent, bound))


@compiled
def outside(
    N, first, spans, scores, components, head_child, other_child, tag_other, words, word_scale,
    symbols, symbol_scale, heads, head_scale, others, other_scale, root, root_scale, log_z, bound,
    g_symbols, g_symbol_scale, g_mixed, g_mixed_scale,
    g_head_child, g_other_child, g_words, leaf_heads, leaf_others, arcs,
):  # fmt: skip
    """All outside rows of a sentence with p(w) > 0, and derivatives of log p(w), which are summed up on the way.

    `g_head_child` (n, r) and `g_other_child` (2, n, r) are derivatives by the probabilities of phrases, `g_words`
    (N, r) those by log-probabilities, which are expected counts. `leaf_heads` (N, r) and `leaf_others` (N, 2, r) are
    the derivatives by the rules that have a word's preterminal as the head child and as the other child. `arcs`
    (N+1, N) are posteriors of dependencies, without those of the root; with no rows they are left out.
    """
    n, r = head_child.shape
    number = words.dtype.type
    terms, parents, siblings = np.empty(N), np.empty(N, np.int64), np.empty(N, np.int64)
    below, closed, opened = np.empty((N, n), words.dtype), np.empty((n, r), words.dtype), np.empty((n, r), words.dtype)
    g_others, g_other_scale = np.empty((2, r), words.dtype), np.empty(2)
    by_head, by_head_scale, shares = np.empty((N, r), words.dtype), np.empty(N), np.empty(N, words.dtype)
    g_heads = np.empty((N, r), words.dtype)
    row_of_symbols, row_of_rank = np.empty(n, words.dtype), np.empty((1, r), words.dtype)
    for j in range(N, 0, -1):
        for i in range(j):
            width = j - i
            for side in (LEFT, RIGHT):
                g_other_scale[side] = _pull_other(
                    N, first, i, j, side, g_mixed, g_mixed_scale, heads, head_scale, terms, parents, siblings,
                    by_head, by_head_scale, shares, g_others[side],
                )  # fmt: skip
                if arcs.shape[0]:
                    _add_arcs(
                        N, first, i, j, side, symbols, symbol_scale, words, word_scale, other_child, tag_other,
                        by_head, by_head_scale, log_z, bound, row_of_rank[0], arcs,
                    )  # fmt: skip
            if width == 1:
                scale = _pull_head(
                    N, first, spans, i, j, i, g_mixed, g_mixed_scale, others, other_scale, terms, parents, siblings,
                    g_heads[0],
                )  # fmt: skip
                leaf_heads[i] = g_heads[0] * number(_weight(scores[i, j] + scale - log_z, bound))
                for side in (LEFT, RIGHT):
                    weight = _weight(scores[i, j] + word_scale[i] + g_other_scale[side] - log_z, bound)
                    leaf_others[i, side] = g_others[side] * words[i] * number(weight)
                    g_words[i] += leaf_others[i, side] * tag_other[side]
                continue
            # As another child: opened[C, H] is what the parents give to symbol C and word q alike.
            other_scale_of_both = max(g_other_scale[LEFT], g_other_scale[RIGHT])
            opened[:] = 0
            if other_scale_of_both > -np.inf:
                scale = _close(N, first, i, j, words, word_scale, symbols, symbol_scale, below, closed)
                for side in (LEFT, RIGHT):
                    relative = number(math.exp(g_other_scale[side] - other_scale_of_both))
                    weight = number(_weight(scale + g_other_scale[side] - log_z, bound))
                    add_scaled(relative, g_others[side], other_child[side], opened)
                    add_scaled(weight, g_others[side], closed, g_other_child[side])
            for q in range(i, j):
                row = first[q] + i * (N - q) + j - q - 1
                if width == N:
                    g_symbols[row], g_symbol_scale[row] = root[q], root_scale[q]
                else:
                    of_other = other_scale_of_both + word_scale[q]
                    scale = _pull_head(
                        N, first, spans, i, j, q, g_mixed, g_mixed_scale, others, other_scale, terms, parents,
                        siblings, g_heads[q - i],
                    )  # fmt: skip
                    common = max(scale, of_other)
                    g_symbols[row] = 0
                    if common > -np.inf:
                        row_products(g_heads[q - i], head_child, g_symbols[row])
                        row_products(words[q], opened, row_of_symbols)
                        of_head, of_other_part = math.exp(scale - common), math.exp(of_other - common)
                        for c in range(n):
                            g_symbols[row, c] = (
                                number(of_head) * g_symbols[row, c] + number(of_other_part) * row_of_symbols[c]
                            )
                    g_symbol_scale[row] = common + normalise_row(g_symbols[row])
                    weight = number(_weight(symbol_scale[row] + scale - log_z, bound))
                    for c in range(n):
                        below[q - i, c] = weight * symbols[row, c]
                    mix_rows(symbols[row], opened, row_of_rank[0])
                    weight = number(_weight(symbol_scale[row] + of_other - log_z, bound))
                    add_scaled(weight, words[q], row_of_rank, g_words[q : q + 1])
                mix_rows(g_symbols[row], components[q], g_mixed[row])
                g_mixed_scale[row] = g_symbol_scale[row] + scores[i, j] + normalise_row(g_mixed[row])
            if width < N:
                add_outer_products(below[:width], g_heads[:width], g_head_child)


@compiled
def _pull_head(
    N, first, spans, i, j, p, g_mixed, g_mixed_scale, others, other_scale, terms, parents, siblings, total
):  # fmt: skip
    """What span (i, j) with head p gets as a head child from all its parents; gives its log scale."""
    count = 0
    for post in range(j + 1, N + 1):  # the sibling is (j, post)
        parents[count] = first[p] + i * (N - p) + post - p - 1
        siblings[count] = 2 * (spans[j] + post - j - 1) + RIGHT
        count += 1
    for post in range(i):  # the sibling is (post, i)
        parents[count] = first[p] + post * (N - p) + j - p - 1
        siblings[count] = 2 * (spans[post] + i - post - 1) + LEFT
        count += 1
    for t in range(count):
        terms[t] = g_mixed_scale[parents[t]] + other_scale[siblings[t]]
    return weighted_sum(total, count, terms, g_mixed, parents, others, siblings)


@compiled
def _pull_other(
    N, first, i, j, side, g_mixed, g_mixed_scale, heads, head_scale, terms, parents, siblings, by_head, by_head_scale,
    shares, total,
):  # fmt: skip
    """What span (i, j) gets as another child on one side of its head: `by_head` from each head, `total` from all."""
    begin, end = (0, i) if side == RIGHT else (j, N)
    peak = -np.inf
    for p in range(begin, end):
        count = 0
        if side == RIGHT:
            for post in range(p + 1):  # the sibling is (post, i)
                parents[count] = first[p] + post * (N - p) + j - p - 1
                siblings[count] = first[p] + post * (N - p) + i - p - 1
                count += 1
        else:
            for post in range(p + 1, N + 1):  # the sibling is (j, post)
                parents[count] = first[p] + i * (N - p) + post - p - 1
                siblings[count] = first[p] + j * (N - p) + post - p - 1
                count += 1
        for t in range(count):
            terms[t] = g_mixed_scale[parents[t]] + head_scale[siblings[t]]
        by_head_scale[p] = weighted_sum(by_head[p], count, terms, g_mixed, parents, heads, siblings)
        peak = max(peak, by_head_scale[p])
    if peak == -np.inf:
        total[:] = 0
        return peak
    for p in range(begin, end):
        shares[p] = math.exp(by_head_scale[p] - peak)
    mix_rows(shares[begin:end], by_head[begin:end], total)
    return peak + normalise_row(total)


@compiled
def _add_arcs(
    N, first, i, j, side, symbols, symbol_scale, words, word_scale, other_child, tag_other, by_head,
    by_head_scale, log_z, bound, row_of_rank, arcs,
):  # fmt: skip
    """Add the posteriors of arcs to each word q of a span from each word p on one side of it."""
    begin, end = (0, i) if side == RIGHT else (j, N)
    if begin == end:
        return
    product = np.empty(1, words.dtype)
    for q in range(i, j):
        row = first[q] + i * (N - q) + j - q - 1
        if j == i + 1:
            row_of_rank[:] = tag_other[side]
        else:
            mix_rows(symbols[row], other_child[side], row_of_rank)
        row_of_rank *= words[q]
        scale = symbol_scale[row] + word_scale[q] - log_z
        for p in range(begin, end):
            row_products(row_of_rank, by_head[p : p + 1], product)
            arcs[p + 1, q] += product[0] * words.dtype.type(_weight(by_head_scale[p] + scale, bound))
