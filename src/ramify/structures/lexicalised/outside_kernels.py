"""The compiled loops of the CPU path for bilexical rules: the outside pass over one sentence.

Rows, scales and pairs of ends are those of kernels.py. The span (i, K) is complete before (i, J), its head child. Sums
for both are computed also where there is only (i, K), as for i = J or J = 0; what stands for (i, J) is then not used.
"""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

import math

import numpy as np

from ramify.runtime.compilation import compiled
from ramify.structures.compiled_sums import normalise_row
from ramify.structures.lexicalised.kernels import LEFT, RIGHT, close, other_of, row_of
from ramify.structures.lexicalised.vector_loops import (
    add_outer_products,
    add_scaled,
    add_term,
    mix_rows,
    paired_sums,
    row_products,
    weighted_sum,
)


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
    terms, parents, siblings = np.empty((2, N)), np.empty(N, np.int64), np.empty(N, np.int64)
    # Of the spans that end at J and at K what each head p gives to them, and what they get with each head as a child.
    by_head, by_head_scale = np.empty((2, N, r), words.dtype), np.empty((2, N))
    g_heads, g_head_scale = np.empty((2, N, r), words.dtype), np.empty((2, N))
    below, closed, opened = np.empty((N, n), words.dtype), np.empty((n, r), words.dtype), np.empty((n, r), words.dtype)
    for K in range(N, 0, -2):
        J = K - 1
        for i in range(K):
            _pull_others(
                N, first, i, J, g_mixed, g_mixed_scale, heads, head_scale, terms, parents, siblings, by_head,
                by_head_scale,
            )  # fmt: skip
            _pull_heads(
                N, first, spans, i, J, g_mixed, g_mixed_scale, others, other_scale, terms, parents, siblings, g_heads,
                g_head_scale,
            )  # fmt: skip
            for column, j in ((1, K), (0, J)):
                if i == j:
                    continue
                if column == 0:
                    _pull_from_wider(
                        N, first, spans, i, J, g_mixed, g_mixed_scale, heads, head_scale, others, other_scale, terms[0],
                        parents, siblings, by_head[0, J], by_head_scale[0], g_heads[0], g_head_scale[0],
                    )  # fmt: skip
                _finish_span(
                    N, first, i, j, scores, components, head_child, other_child, tag_other, words, word_scale, symbols,
                    symbol_scale, root, root_scale, log_z, bound, by_head[column], by_head_scale[column],
                    g_heads[column], g_head_scale[column], below, closed, opened, g_symbols, g_symbol_scale, g_mixed,
                    g_mixed_scale, g_head_child, g_other_child, g_words, leaf_heads, leaf_others, arcs,
                )  # fmt: skip


@compiled
def _pull_others(
    N, first, i, J, g_mixed, g_mixed_scale, heads, head_scale, terms, parents, siblings, by_head, by_head_scale
):  # fmt: skip
    """The contributions to the spans (i, J) and (i, J + 1) as other children of each head, except head J of (i, J)."""
    for p in range(i):
        for post in range(p + 1):  # the sibling is (post, i)
            parents[post], siblings[post] = row_of(N, first, post, J, p), row_of(N, first, post, i, p)
            terms[0, post] = g_mixed_scale[parents[post]] + head_scale[siblings[post]]
            terms[1, post] = g_mixed_scale[parents[post] + 1] + head_scale[siblings[post]]
        by_head_scale[0, p], by_head_scale[1, p] = paired_sums(
            by_head[0, p], by_head[1, p], p + 1, p + 1, terms, heads, siblings, g_mixed, parents, 0, 1
        )
    for p in range(J + 1, N):
        for t in range(N - p):  # the sibling is (J, post) or (J + 1, post)
            parents[t], siblings[t] = row_of(N, first, i, p + 1 + t, p), row_of(N, first, J, p + 1 + t, p)
            terms[0, t] = g_mixed_scale[parents[t]] + head_scale[siblings[t]]
            terms[1, t] = g_mixed_scale[parents[t]] + head_scale[siblings[t] + N - p]
        by_head_scale[0, p], by_head_scale[1, p] = paired_sums(
            by_head[0, p], by_head[1, p], N - p, N - p, terms, g_mixed, parents, heads, siblings, 0, N - p
        )


@compiled
def _pull_heads(
    N, first, spans, i, J, g_mixed, g_mixed_scale, others, other_scale, terms, parents, siblings, g_heads, g_head_scale
):  # fmt: skip
    """The contributions to the spans (i, J) and (i, K) as head children, to the first from all parents but (i, K)."""
    K, step = J + 1, 2 * (N - J - 1)
    for q in range(i, K):
        count = 0
        for post in range(K + 1, N + 1):  # the sibling is (J, post) or (K, post)
            parents[count], siblings[count] = row_of(N, first, i, post, q), other_of(spans, J, post, RIGHT)
            terms[0, count] = g_mixed_scale[parents[count]] + other_scale[siblings[count]]
            terms[1, count] = g_mixed_scale[parents[count]] + other_scale[siblings[count] + step]
            count += 1
        on_right = count
        for post in range(i):  # the sibling is (post, i)
            parents[count], siblings[count] = row_of(N, first, post, J, q), other_of(spans, post, i, LEFT)
            terms[0, count] = g_mixed_scale[parents[count]] + other_scale[siblings[count]]
            terms[1, count] = g_mixed_scale[parents[count] + 1] + other_scale[siblings[count]]
            count += 1
        g_head_scale[0, q - i], g_head_scale[1, q - i] = paired_sums(
            g_heads[0, q - i], g_heads[1, q - i], on_right, count, terms, g_mixed, parents, others, siblings, 1, step
        )


@compiled
def _pull_from_wider(
    N, first, spans, i, J, g_mixed, g_mixed_scale, heads, head_scale, others, other_scale, terms, parents, siblings,
    of_head, by_head_scale, g_heads, g_head_scale,
):  # fmt: skip
    """The contributions to a span (i, J) that need (i, K): from (i, K) to its head child, and from the head J."""
    K, other = J + 1, other_of(spans, J, J + 1, RIGHT)
    for q in range(i, J):
        parent = row_of(N, first, i, K, q)
        term = g_mixed_scale[parent] + other_scale[other]
        g_head_scale[q - i] = add_term(g_heads[q - i], g_head_scale[q - i], term, g_mixed, parent, others, other)
    for t in range(N - J):  # the sibling is (J, post)
        parents[t], siblings[t] = row_of(N, first, i, K + t, J), row_of(N, first, J, K + t, J)
        terms[t] = g_mixed_scale[parents[t]] + head_scale[siblings[t]]
    by_head_scale[J] = weighted_sum(of_head, N - J, terms, g_mixed, parents, heads, siblings)


@compiled
def _finish_span(
    N, first, i, j, scores, components, head_child, other_child, tag_other, words, word_scale, symbols, symbol_scale,
    root, root_scale, log_z, bound, by_head, by_head_scale, g_heads, g_head_scale, below, closed, opened,
    g_symbols, g_symbol_scale, g_mixed, g_mixed_scale,
    g_head_child, g_other_child, g_words, leaf_heads, leaf_others, arcs,
):  # fmt: skip
    """The outside rows of a span with each of its heads, from what it gets as a head child and as another child."""
    (n, r), number, width = head_child.shape, words.dtype.type, j - i
    g_others, g_other_scale = np.empty((2, r), words.dtype), np.empty(2)
    row_of_symbols, row_of_rank = np.empty(n, words.dtype), np.empty((1, r), words.dtype)
    for side in (LEFT, RIGHT):
        begin, end = (0, i) if side == RIGHT else (j, N)
        g_other_scale[side] = _sum_over_heads(by_head[begin:end], by_head_scale[begin:end], g_others[side])
        if arcs.shape[0]:
            _add_arcs(
                N, first, i, j, side, symbols, symbol_scale, words, word_scale, other_child, tag_other, by_head,
                by_head_scale, log_z, bound, row_of_rank[0], arcs,
            )  # fmt: skip
    if width == 1:
        leaf_heads[i] = g_heads[0] * number(_weight(scores[i, j] + g_head_scale[0] - log_z, bound))
        for side in (LEFT, RIGHT):
            weight = _weight(scores[i, j] + word_scale[i] + g_other_scale[side] - log_z, bound)
            leaf_others[i, side] = g_others[side] * words[i] * number(weight)
            g_words[i] += leaf_others[i, side] * tag_other[side]
        return
    # As another child: opened[C, H] is what the parents give to symbol C and word q alike.
    other_scale_of_both = max(g_other_scale[LEFT], g_other_scale[RIGHT])
    opened[:] = 0
    if other_scale_of_both > -np.inf:
        scale = close(N, first, i, j, words, word_scale, symbols, symbol_scale, below, closed)
        for side in (LEFT, RIGHT):
            relative = number(math.exp(g_other_scale[side] - other_scale_of_both))
            weight = number(_weight(scale + g_other_scale[side] - log_z, bound))
            add_scaled(relative, g_others[side], other_child[side], opened)
            add_scaled(weight, g_others[side], closed, g_other_child[side])
    for q in range(i, j):
        row = row_of(N, first, i, j, q)
        if width == N:
            g_symbols[row], g_symbol_scale[row] = root[q], root_scale[q]
        else:
            scale, of_other = g_head_scale[q - i], other_scale_of_both + word_scale[q]
            common = max(scale, of_other)
            g_symbols[row] = 0
            if common > -np.inf:
                row_products(g_heads[q - i], head_child, g_symbols[row])
                row_products(words[q], opened, row_of_symbols)
                of_head, of_other_part = number(math.exp(scale - common)), number(math.exp(of_other - common))
                for c in range(n):
                    g_symbols[row, c] = of_head * g_symbols[row, c] + of_other_part * row_of_symbols[c]
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
def _sum_over_heads(by_head, scales, total):
    """The sum of rows (w, r) with their log scales; returns its log scale."""
    peak = -np.inf
    for scale in scales:
        peak = max(peak, scale)
    if peak == -np.inf:
        total[:] = 0
        return peak
    shares = np.empty(len(scales), total.dtype)
    for p in range(len(scales)):
        shares[p] = math.exp(scales[p] - peak)
    mix_rows(shares, by_head, total)
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
        row = row_of(N, first, i, j, q)
        if j == i + 1:
            row_of_rank[:] = tag_other[side]
        else:
            mix_rows(symbols[row], other_child[side], row_of_rank)
        row_of_rank *= words[q]
        scale = symbol_scale[row] + word_scale[q] - log_z
        for p in range(begin, end):
            row_products(row_of_rank, by_head[p : p + 1], product)
            arcs[p + 1, q] += product[0] * words.dtype.type(_weight(by_head_scale[p] + scale, bound))
