"""Compiled sums of scaled vectors, shared by the CPU paths of several kinds of distributions.

A row holds non-negative numbers that sum to one; the logarithm of what it was divided by is kept beside it.
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
def normalise_row(row):
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
def relative_weights(count, terms, a_rows, b_rows, number):
    """Replace log-weights by weights relative to the largest; gives the number of terms left and the largest logarithm.

    Terms that underflow are left out, together with the rows that they belong to.
    """
    peak = -np.inf
    for t in range(count):
        peak = max(peak, terms[t])
    kept = 0
    if peak == -np.inf:
        return kept, peak
    for t in range(count):
        weight = number(math.exp(terms[t] - peak))
        if weight > 0:
            terms[kept], a_rows[kept], b_rows[kept] = weight, a_rows[t], b_rows[t]
            kept += 1
    return kept, peak


@compiled
def weighted_sum(total, count, terms, a, a_rows, a_column, b, b_rows, b_column):
    """total = sum over `count` terms of exp(terms[t]) a[a_rows[t]] * b[b_rows[t]], scaled; gives its log scale.

    Of a and b as many columns are taken as `total` has, from `a_column` and `b_column` on. Overwrites the terms.
    """
    total[:] = 0
    number = total.dtype.type
    kept, peak = relative_weights(count, terms, a_rows, b_rows, number)
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
    return peak + normalise_row(total)
