"""Compiled sums of scaled vectors, shared by the CPU paths of several kinds of distributions.

A row holds non-negative numbers that sum to one; the logarithm of what it was divided by is kept beside it.
"""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

import math

import numpy as np

from ramify.runtime.blocks import added_product, load, load_narrow, multiplied, store, zeros, zeros_narrow
from ramify.runtime.compilation import compiled
from ramify.runtime.padding import BLOCK_BYTES, NARROW_BYTES

# One over anything below would overflow a float32.
_SMALLEST = float(np.finfo(np.float32).tiny)


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

    Of a and b as many columns are taken as `total` has, from `a_column` and `b_column` on: whole narrow blocks, which
    stay in registers for all terms. Overwrites the terms.
    """
    kept, peak = relative_weights(count, terms, a_rows, b_rows, total.dtype.type)
    block, narrow = BLOCK_BYTES // total.itemsize, NARROW_BYTES // total.itemsize
    a_size, b_size, size = a.shape[1], b.shape[1], total.shape[0]
    for t in range(kept):
        a_rows[t], b_rows[t] = a_rows[t] * a_size + a_column, b_rows[t] * b_size + b_column
    weights = np.empty(kept, total.dtype)
    weights[:] = terms[:kept]
    k = 0
    while k + block <= size:
        run = zeros(total)
        for t in range(kept):
            run = added_product(run, weights, t, multiplied(load(a, a_rows[t] + k), load(b, b_rows[t] + k)))
        store(total, k, run)
        k += block
    while k < size:
        rest = zeros_narrow(total)
        for t in range(kept):
            x, y = load_narrow(a, a_rows[t] + k), load_narrow(b, b_rows[t] + k)
            rest = added_product(rest, weights, t, multiplied(x, y))
        store(total, k, rest)
        k += narrow
    return peak + normalise_row(total)
