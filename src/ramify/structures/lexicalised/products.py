"""Compiled products of vectors with small matrices, for one row at a time: four rows of the matrix at once.

The matrices have few rows and stay in the cache, so what counts is how often sums are loaded and stored.
"""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

from ramify.runtime.compilation import compiled


@compiled
def mix_rows(weights, matrix, total):
    """total (r,) = weights (n,) @ matrix (n, r)"""
    n = matrix.shape[0]
    fours = n - n % 4
    total[:] = 0
    for c in range(0, fours, 4):
        w0, w1, w2, w3 = weights[c], weights[c + 1], weights[c + 2], weights[c + 3]
        m0, m1, m2, m3 = matrix[c], matrix[c + 1], matrix[c + 2], matrix[c + 3]
        for h in range(total.shape[0]):
            total[h] += (w0 * m0[h] + w1 * m1[h]) + (w2 * m2[h] + w3 * m3[h])
    for c in range(fours, n):
        w0, m0 = weights[c], matrix[c]
        for h in range(total.shape[0]):
            total[h] += w0 * m0[h]


@compiled
def row_products(row, matrix, result):
    """result (n,) = matrix (n, r) @ row (r,)"""
    n, r = matrix.shape
    fours = n - n % 4
    zero = row.dtype.type(0)
    for c in range(0, fours, 4):
        m0, m1, m2, m3 = matrix[c], matrix[c + 1], matrix[c + 2], matrix[c + 3]
        x0 = x1 = x2 = x3 = zero
        for h in range(r):
            x0 += row[h] * m0[h]
            x1 += row[h] * m1[h]
            x2 += row[h] * m2[h]
            x3 += row[h] * m3[h]
        result[c], result[c + 1], result[c + 2], result[c + 3] = x0, x1, x2, x3
    for c in range(fours, n):
        m0, x0 = matrix[c], zero
        for h in range(r):
            x0 += row[h] * m0[h]
        result[c] = x0


@compiled
def add_outer_products(a, b, total):
    """total (n, r) += a (w, n) transposed @ b (w, r)"""
    w, n = a.shape
    fours = w - w % 4
    for c in range(n):
        row = total[c]
        for q in range(0, fours, 4):
            a0, a1, a2, a3 = a[q, c], a[q + 1, c], a[q + 2, c], a[q + 3, c]
            b0, b1, b2, b3 = b[q], b[q + 1], b[q + 2], b[q + 3]
            for h in range(row.shape[0]):
                row[h] += (a0 * b0[h] + a1 * b1[h]) + (a2 * b2[h] + a3 * b3[h])
        for q in range(fours, w):
            a0, b0 = a[q, c], b[q]
            for h in range(row.shape[0]):
                row[h] += a0 * b0[h]
