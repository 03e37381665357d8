"""Compiled sums of scaled vectors, shared by the CPU paths of several kinds of distributions.

A row holds non-negative numbers that sum to one; the logarithm of what it was divided by is stored with it.
"""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

import math

import numpy as np

from ramify.runtime.compilation import compiled
from ramify.runtime.register_blocks import number_of_bits

# One over anything below would overflow a float32.
_SMALLEST = float(np.finfo(np.float32).tiny)
_LOG2_E, _LN_2 = 1 / math.log(2), math.log(2)
_LEAST = -1022.0
"""The smallest power of two that is a normal float64"""
VANISHES = 3e-308
"""Weights up to this are those of terms at or below the smallest power"""


@compiled
def normalise_row(row):
    """Divide a row by its sum; returns the sum's logarithm. A sum too small to divide by is as good as zero."""
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
def exponentials(terms, count):
    """exp(terms) in place, for terms below 700: simple operations, which the compiler does for many at a time.

    2^x is the power of its whole part, written into the exponent of a number, times e to the power of the rest, which
    is below 0.35: the twelve terms of its series leave 6e-15. What is too small for a normal number becomes 2^-1022.
    """
    for t in range(count):
        x = max(terms[t] * _LOG2_E, _LEAST)
        whole = math.floor(x + 0.5)
        r = (x - whole) * _LN_2
        # From here on the coefficients are constants: a loop over them would divide.
        series = 1 + r * (1 / 10) * (1 + r * (1 / 11))
        series = 1 + r * (1 / 8) * (1 + r * (1 / 9) * series)
        series = 1 + r * (1 / 6) * (1 + r * (1 / 7) * series)
        series = 1 + r * (1 / 4) * (1 + r * (1 / 5) * series)
        series = 1 + r * (1 / 2) * (1 + r * (1 / 3) * series)
        series = 1 + r * series
        terms[t] = series * number_of_bits((np.int64(whole) + 1023) << 52)


@compiled
def relative_weights(count, terms, a_rows, b_rows, number):
    """Replace log-weights by weights relative to the largest; returns the number of terms left and the largest log.

    Terms that underflow are left out, together with the rows that they belong to.
    """
    peak = -np.inf
    for t in range(count):
        peak = max(peak, terms[t])
    kept = 0
    if peak == -np.inf:
        return kept, peak
    for t in range(count):
        terms[t] -= peak
    exponentials(terms, count)
    for t in range(count):
        weight = number(terms[t])
        if weight > VANISHES:
            terms[kept], a_rows[kept], b_rows[kept] = weight, a_rows[t], b_rows[t]
            kept += 1
    return kept, peak
