"""The passes of the CPU path over the charts of some sentences, each one compiled call: no thread waits for another.

Charts are those of kernels.py. Rows are padded with zeros to whole narrow blocks (runtime/padding.py), so that a matrix
product can write them; D, S and P are the padded sizes of rank, symbols and preterminals.
"""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

from ramify.runtime.compilation import compiled
from ramify.runtime.products import multiply
from ramify.structures.low_rank.kernels import (
    normalise_rows,
    pull_from_parents,
    row_weights,
    scale_outside,
    sum_splits,
    weigh_rows,
    weighted_products,
)


@compiled
def inside(
    N, first, leaves, scores, leaf_children, child_table, has_head, head_transposed, rank, symbols, children,
    rank_scale, symbol_scale, left_scale, right_scale,
):  # fmt: skip
    """Fill the chart from the words to the whole sentences; without a head, `symbols` is `rank`."""
    P, D, S = leaves.shape[1], rank.shape[1], symbols.shape[1]
    p, s = leaf_children.shape[0], child_table.shape[0]
    multiply(leaves, 0, P, 1, leaf_children, 0, 2 * D, first[2], p, 2 * D, children, 0, 2 * D, False)
    for width in range(2, N + 1):
        sum_splits(width, N, first, children, symbol_scale, left_scale, right_scale, scores, rank, rank_scale)
        begin, count = first[width], first[width + 1] - first[width]
        if has_head:
            d = head_transposed.shape[0]
            multiply(rank, begin * D, D, 1, head_transposed, 0, S, count, d, S, symbols, begin * S, S, False)
            normalise_rows(begin, begin + count, symbols, rank_scale, symbol_scale)
        if width < N:  # nothing has the widest span as its child
            into = begin * 2 * D
            multiply(symbols, begin * S, S, 1, child_table, 0, 2 * D, count, s, 2 * D, children, into, 2 * D, False)


@compiled
def outside(
    N, first, lengths, root, root_scale, scores, children, left_scale, right_scale, child_transposed, has_head, head,
    leaf_transposed, g_leaves, g_rank, g_symbols, g_children, g_x_scale, g_rank_scale, g_symbol_scale, g_scale,
):  # fmt: skip
    """Fill the outside vectors from the whole sentences to the words."""
    P, D, S = g_leaves.shape[1], g_rank.shape[1], g_symbols.shape[1]
    for width in range(N, 0, -1):
        pull_from_parents(
            width, N, first, children, left_scale, right_scale, g_rank, g_x_scale, g_rank_scale, not has_head,
            g_children, g_scale,
        )  # fmt: skip
        if width == 1:
            break
        begin, count = first[width], first[width + 1] - first[width]
        if width < N:
            at, into = begin * 2 * D, begin * S
            multiply(g_children, at, 2 * D, 1, child_transposed, 0, S, count, 2 * D, S, g_symbols, into, S, False)
        else:
            g_symbols[begin : begin + count] = 0
        scale_outside(width, N, first, lengths, root, root_scale, scores, g_scale, g_symbols, g_symbol_scale, g_x_scale)
        if has_head:
            n = head.shape[0]
            multiply(g_symbols, begin * S, S, 1, head, 0, D, count, n, D, g_rank, begin * D, D, False)
    multiply(g_children, 0, 2 * D, 1, leaf_transposed, 0, P, first[2], 2 * D, P, g_leaves, 0, P, False)
    normalise_rows(0, first[2], g_leaves, g_scale, g_symbol_scale)


@compiled
def gradients(
    N, first, lengths, log_z, factor, bound, leaves, rank, symbols, rank_scale, symbol_scale, has_head, g_leaves,
    g_symbols, g_children, g_symbol_scale, g_scale, weights, spans, g_root, g_left, g_right, g_head,
):  # fmt: skip
    """Expected counts and derivatives as `passes.Sums` has them; the outside vectors are overwritten.

    `g_leaves` receives those of the words. `g_left`, `g_right` and `g_head` hold zeros and, besides their rows,
    nothing; `weights` (rows,) is room for numbers.
    """
    P, D, S = leaves.shape[1], rank.shape[1], symbols.shape[1]
    words, rows, phrases = first[2], first[N + 1], first[N + 1] - first[2]
    n, p = g_root.shape[0], g_left.shape[0] - g_root.shape[0]
    row_weights(N, first, log_z, factor, bound, symbol_scale, g_symbol_scale, weights)
    weighted_products(0, leaves, g_leaves, weights, spans)
    weighted_products(words, symbols[words:], g_symbols[words:], weights, spans)
    for row in range(words):
        for k in range(P):
            g_leaves[row, k] *= leaves[row, k] * weights[row]
    for b in range(lengths.shape[0]):
        if lengths[b] > 1:
            row = first[lengths[b]] + b * (N - lengths[b] + 1)
            for k in range(n):
                g_root[k] += symbols[row, k] * g_symbols[row, k] * weights[row]
    row_weights(N, first, log_z, factor, bound, symbol_scale, g_scale, weights)
    weigh_rows(g_children, weights)
    multiply(leaves, 0, 1, P, g_children, 0, 2 * D, p, words, D, g_left, n * D, D, True)
    multiply(leaves, 0, 1, P, g_children, D, 2 * D, p, words, D, g_right, n * D, D, True)
    if phrases:
        at, below = words * S, words * 2 * D
        multiply(symbols, at, 1, S, g_children, below, 2 * D, n, phrases, D, g_left, 0, D, True)
        multiply(symbols, at, 1, S, g_children, below + D, 2 * D, n, phrases, D, g_right, 0, D, True)
    if has_head and phrases:
        row_weights(N, first, log_z, factor, bound, rank_scale, g_symbol_scale, weights)
        weigh_rows(g_symbols[words:], weights[words:rows])
        multiply(g_symbols, words * S, 1, S, rank, words * D, D, n, phrases, D, g_head, 0, D, True)
