"""The compiled loops of the CPU path for bilexical rules: the inside pass over one sentence, and what both passes need.

README.md in this folder has the equations. A chart has one row for every span and head, with all rows of one head p
together: `row_of` gives the row of span (i, j), for i <= p < j. Other children have two rows for each span, left and
right of their head, see `other_of`. A row holds non-negative numbers that sum to one, padded by zeros to whole blocks;
its scale is the logarithm of what it was divided by, minus infinity for what is impossible. Threads run these loops on
different sentences, so the loops themselves are serial.

Both passes go through the spans by their ends, two ends J and K = J + 1 at a time: in the sums over splits, most terms
of the spans (i, J) and (i, K) have one of their two rows in common, and these sums are limited by reading rows.
"""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

import math

import numpy as np

from ramify.runtime.compilation import compiled
from ramify.structures.compiled_sums import normalise_row
from ramify.structures.lexicalised.vector_loops import (
    add_outer_products,
    add_term,
    column_products,
    mix_rows,
    paired_sums,
    row_products,
    weighted_sum,
)

LEFT, RIGHT = 0, 1


@compiled
def row_of(N, first, i, j, p):
    """The row of span (i, j) with head p; that of (i, j + 1) is the next one."""
    return first[p] + i * (N - p) + j - p - 1


@compiled
def other_of(spans, i, j, side):
    """The row of span (i, j) as another child on one side of its head; that of (i, j + 1) is two further."""
    return 2 * (spans[i] + j - i - 1) + side


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
    terms, kept, beside = np.empty((2, N)), np.empty(N, np.int64), np.empty(N, np.int64)
    below, closed = np.empty((N, n), words.dtype), np.empty((n, r), words.dtype)
    for i in range(N):
        row, other = row_of(N, first, i, i + 1, i), other_of(spans, i, i + 1, 0)
        symbols[row], mixed[row], mixed_scale[row] = 0, 0, -np.inf
        symbol_scale[row] = scores[i, i + 1]
        heads[row] = tag_head
        head_scale[row] = scores[i, i + 1] + normalise_row(heads[row])
        for side in (LEFT, RIGHT):
            others[other + side] = tag_other[side] * words[i]
            other_scale[other + side] = scores[i, i + 1] + word_scale[i] + normalise_row(others[other + side])
    for K in range(2 + N % 2, N + 1, 2):
        J = K - 1
        between = other_of(spans, J, K, RIGHT)
        # Heads from the right, so that the other children (k, J) and (k, K) of a head p < k are complete.
        for p in range(J - 1, -1, -1):
            for i in range(p, -1, -1):
                row = row_of(N, first, i, J, p)
                count = 0
                for k in range(p + 1, J):
                    kept[count], beside[count] = row_of(N, first, i, k, p), other_of(spans, k, J, RIGHT)
                    terms[0, count] = head_scale[kept[count]] + other_scale[beside[count]]
                    terms[1, count] = head_scale[kept[count]] + other_scale[beside[count] + 2]
                    count += 1
                on_right = count
                for k in range(i + 1, p + 1):
                    kept[count], beside[count] = row_of(N, first, k, J, p), other_of(spans, i, k, LEFT)
                    terms[0, count] = head_scale[kept[count]] + other_scale[beside[count]]
                    terms[1, count] = head_scale[kept[count] + 1] + other_scale[beside[count]]
                    count += 1
                scale, wider_scale = paired_sums(
                    mixed[row], mixed[row + 1], on_right, count, terms, heads, kept, others, beside, 1, 2
                )
                if J - i > 1:
                    mixed_scale[row] = scores[i, J] + scale
                    _finish_row(
                        row, True, components[p], head_child, mixed, mixed_scale, symbols, symbol_scale, heads,
                        head_scale,
                    )  # fmt: skip
                wider_scale = add_term(
                    mixed[row + 1], wider_scale, head_scale[row] + other_scale[between], heads, row, others, between
                )
                mixed_scale[row + 1] = scores[i, K] + wider_scale
                _finish_row(
                    row + 1, K - i < N, components[p], head_child, mixed, mixed_scale, symbols, symbol_scale, heads,
                    head_scale,
                )  # fmt: skip
            if J - p > 1:
                _finish_span(
                    N, first, spans, p, J, words, word_scale, symbols, symbol_scale, below, closed, other_child, others,
                    other_scale,
                )  # fmt: skip
            # The word before K as the head of the span (p, K), all of whose other children are on its left.
            row = row_of(N, first, p, K, J)
            for k in range(p + 1, K):
                kept[k - p - 1], beside[k - p - 1] = row_of(N, first, k, K, J), other_of(spans, p, k, LEFT)
                terms[0, k - p - 1] = head_scale[kept[k - p - 1]] + other_scale[beside[k - p - 1]]
            mixed_scale[row] = scores[p, K] + weighted_sum(mixed[row], K - p - 1, terms[0], heads, kept, others, beside)
            _finish_row(
                row, K - p < N, components[J], head_child, mixed, mixed_scale, symbols, symbol_scale, heads, head_scale
            )  # fmt: skip
            if K - p < N:
                _finish_span(
                    N, first, spans, p, K, words, word_scale, symbols, symbol_scale, below, closed, other_child, others,
                    other_scale,
                )  # fmt: skip


@compiled
def _finish_row(row, has_parents, components, head_child, mixed, mixed_scale, symbols, symbol_scale, heads, head_scale):
    """The symbols of a span and head from the sum over its splits, and their weights as a head child."""
    row_products(mixed[row], components, symbols[row])
    symbol_scale[row] = mixed_scale[row] + normalise_row(symbols[row])
    if has_parents:
        mix_rows(symbols[row], head_child, heads[row])
        head_scale[row] = symbol_scale[row] + normalise_row(heads[row])


@compiled
def _finish_span(
    N, first, spans, i, j, words, word_scale, symbols, symbol_scale, below, closed, other_child, others, other_scale
):  # fmt: skip
    """The weights of a span as another child, after all its heads are computed."""
    scale = close(N, first, i, j, words, word_scale, symbols, symbol_scale, below, closed)
    for side in (LEFT, RIGHT):
        other = other_of(spans, i, j, side)
        column_products(closed, other_child[side], others[other])
        other_scale[other] = scale + normalise_row(others[other])


@compiled
def close(N, first, i, j, words, word_scale, symbols, symbol_scale, below, closed):
    """closed[C, H] = sum over the heads q of a span of s(i, j, C, q) p(w_q | H), scaled; returns its log scale."""
    peak = -np.inf
    for q in range(i, j):
        peak = max(peak, symbol_scale[row_of(N, first, i, j, q)] + word_scale[q])
    closed[:] = 0
    if peak == -np.inf:
        return peak
    for q in range(i, j):
        row = row_of(N, first, i, j, q)
        share = symbols.dtype.type(math.exp(symbol_scale[row] + word_scale[q] - peak))
        for c in range(symbols.shape[1]):
            below[q - i, c] = symbols[row, c] * share
    add_outer_products(below[: j - i], words[i:j], closed)
    return peak
