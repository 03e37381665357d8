"""Compiled sums and products of rows of whole blocks (runtime/register_blocks.py).

Sums stay in registers as long as possible, for any number of rows.
"""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

import math

import numpy as np

from ramify.runtime.compilation import compiled
from ramify.runtime.register_blocks import added, block_size, filled, load, multiplied, store
from ramify.structures.compiled_sums import normalise_row, relative_weights


@compiled
def mix_rows(weights, matrix, total):
    """total (r,) = weights (n,) @ matrix (n, r)"""
    n, r = matrix.shape
    for h in range(0, r, block_size(matrix)):
        x = filled(total.dtype.type(0))
        for c in range(n):
            x = added(x, multiplied(filled(weights[c]), load(matrix, c * r + h)))
        store(total, h, x)


@compiled
def add_outer_products(a, b, total):
    """total (n, r) += a (w, n) transposed @ b (w, r)"""
    n, r = total.shape
    for h in range(0, r, block_size(b)):
        for c in range(n):
            x = load(total, c * r + h)
            for q in range(a.shape[0]):
                x = added(x, multiplied(filled(a[q, c]), load(b, q * r + h)))
            store(total, c * r + h, x)


@compiled
def add_scaled(weight, row, matrix, total):
    """total (n, r) += weight * row (r,) * matrix (n, r)"""
    n, r = total.shape
    for h in range(0, r, block_size(row)):
        weighted = multiplied(filled(weight), load(row, h))
        for c in range(n):
            store(total, c * r + h, added(load(total, c * r + h), multiplied(weighted, load(matrix, c * r + h))))


@compiled
def column_products(a, b, total):
    """total (r,) = the sums of the columns of a (n, r) * b (n, r)"""
    n, r = a.shape
    for h in range(0, r, block_size(a)):
        x = filled(total.dtype.type(0))
        for c in range(n):
            x = added(x, multiplied(load(a, c * r + h), load(b, c * r + h)))
        store(total, h, x)


@compiled
def row_products(row, matrix, result):
    """result (n,) = matrix (n, r) @ row (r,)"""
    n, r = matrix.shape
    zero = row.dtype.type(0)
    if n < 4:
        for c in range(n):
            m, x = matrix[c], zero
            for h in range(r):
                x += row[h] * m[h]
            result[c] = x
        return
    for group in range((n + 3) // 4):
        c = min(4 * group, n - 4)  # the last group has some rows of the one before it, with the same results again
        m0, m1, m2, m3 = matrix[c], matrix[c + 1], matrix[c + 2], matrix[c + 3]
        x0 = x1 = x2 = x3 = zero
        for h in range(r):
            x0 += row[h] * m0[h]
            x1 += row[h] * m1[h]
            x2 += row[h] * m2[h]
            x3 += row[h] * m3[h]
        result[c], result[c + 1], result[c + 2], result[c + 3] = x0, x1, x2, x3


@compiled
def _add_term(x, weight, a, a_row, b, b_row, h):
    r = a.shape[1]
    return added(x, multiplied(multiplied(weight, load(a, a_row * r + h)), load(b, b_row * r + h)))


@compiled
def weighted_sum(total, count, terms, a, a_rows, b, b_rows):
    """total = sum over `count` terms of exp(terms[t]) a[a_rows[t]] * b[b_rows[t]], scaled; returns its log scale.

    Overwrites the terms and rows.
    """
    r, number = total.shape[0], total.dtype.type
    kept, peak = relative_weights(count, terms, a_rows, b_rows, number)
    total[:] = 0
    # Four terms at a time: their rows, which are rarely in the cache, are read from beginning to end.
    fours = kept - kept % 4
    for t in range(0, fours, 4):
        w0, w1 = filled(number(terms[t])), filled(number(terms[t + 1]))
        w2, w3 = filled(number(terms[t + 2])), filled(number(terms[t + 3]))
        for h in range(0, r, block_size(a)):
            x = _add_term(load(total, h), w0, a, a_rows[t], b, b_rows[t], h)
            x = _add_term(x, w1, a, a_rows[t + 1], b, b_rows[t + 1], h)
            x = _add_term(x, w2, a, a_rows[t + 2], b, b_rows[t + 2], h)
            store(total, h, _add_term(x, w3, a, a_rows[t + 3], b, b_rows[t + 3], h))
    for t in range(fours, kept):
        for h in range(0, r, block_size(a)):
            weight = filled(number(terms[t]))
            store(total, h, _add_term(load(total, h), weight, a, a_rows[t], b, b_rows[t], h))
    return peak + normalise_row(total)


@compiled
def add_term(total, scale, term, a, a_row, b, b_row):
    """Add exp(term) a[a_row] * b[b_row] to a sum with a log scale; returns its new log scale."""
    peak = max(scale, term)
    if peak == -np.inf:
        return peak
    number = total.dtype.type
    of_total, weight = filled(number(math.exp(scale - peak))), filled(number(math.exp(term - peak)))
    for h in range(0, total.shape[0], block_size(a)):
        store(total, h, _add_term(multiplied(of_total, load(total, h)), weight, a, a_row, b, b_row, h))
    return peak + normalise_row(total)


@compiled
def _pair_weights(shared_a, count, terms, a_rows, b_rows, number):
    """As `relative_weights`, for two sums of terms (2, count); returns the numbers of terms left, and both peaks."""
    peak, other_peak = -np.inf, -np.inf
    for t in range(count):
        peak, other_peak = max(peak, terms[0, t]), max(other_peak, terms[1, t])
    kept, kept_of_a = 0, 0
    for t in range(count):
        weight = number(math.exp(terms[0, t] - peak)) if peak > -np.inf else number(0)
        other = number(math.exp(terms[1, t] - other_peak)) if other_peak > -np.inf else number(0)
        if weight > 0 or other > 0:
            terms[0, kept], terms[1, kept] = weight, other
            a_rows[kept], b_rows[kept] = a_rows[t], b_rows[t]
            kept += 1
            kept_of_a += t < shared_a
    return kept_of_a, kept, peak, other_peak


@compiled
def _add_pairs(total, other_total, begin, end, terms, shared, shared_rows, varying, rows, step):
    """Add terms to two sums: both have the same rows of `shared`, and the second has rows of `varying` further on."""
    r, number = total.shape[0], total.dtype.type
    pairs = begin + (end - begin) // 2 * 2
    for t in range(begin, pairs, 2):
        w, v = filled(number(terms[0, t])), filled(number(terms[0, t + 1]))
        other_w, other_v = filled(number(terms[1, t])), filled(number(terms[1, t + 1]))
        a, b = shared_rows[t] * r, shared_rows[t + 1] * r
        c, d = rows[t] * r, rows[t + 1] * r
        for h in range(0, r, block_size(shared)):
            x, y = load(shared, a + h), load(shared, b + h)
            sum_of_two = added(load(total, h), multiplied(multiplied(w, x), load(varying, c + h)))
            store(total, h, added(sum_of_two, multiplied(multiplied(v, y), load(varying, d + h))))
            sum_of_two = added(
                load(other_total, h), multiplied(multiplied(other_w, x), load(varying, c + step * r + h))
            )
            store(
                other_total, h,
                added(sum_of_two, multiplied(multiplied(other_v, y), load(varying, d + step * r + h))),
            )  # fmt: skip
    for t in range(pairs, end):
        w, other_w = filled(number(terms[0, t])), filled(number(terms[1, t]))
        for h in range(0, r, block_size(shared)):
            x, at = load(shared, shared_rows[t] * r + h), rows[t] * r + h
            store(total, h, added(load(total, h), multiplied(multiplied(w, x), load(varying, at))))
            second = multiplied(multiplied(other_w, x), load(varying, at + step * r))
            store(other_total, h, added(load(other_total, h), second))


@compiled
def paired_sums(total, other_total, shared_a, count, terms, a, a_rows, b, b_rows, a_step, b_step):
    """Two sums as `weighted_sum` makes them, of terms (2, count), that have rows in common; returns both log scales.

    Of the first `shared_a` terms the second sum has the same rows of a, and the rows of b are `b_step` further on. Of
    the others it has the same rows of b, and the rows of a are `a_step` further on.
    """
    shared_a, count, peak, other_peak = _pair_weights(shared_a, count, terms, a_rows, b_rows, total.dtype.type)
    total[:] = 0
    other_total[:] = 0
    _add_pairs(total, other_total, 0, shared_a, terms, a, a_rows, b, b_rows, b_step)
    _add_pairs(total, other_total, shared_a, count, terms, b, b_rows, a, a_rows, a_step)
    return peak + normalise_row(total), other_peak + normalise_row(other_total)
