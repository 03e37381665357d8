"""Compiled products of vectors with small matrices, several rows of the matrix at once.

The matrices have few rows and stay in the cache, so what counts is how often sums are loaded and stored. Rows that are
left over make a last group together with some before them, whose weights are zero or whose results are the same again.
"""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

from ramify.runtime.compilation import compiled


@compiled
def _add_eight(total, matrix, c, w0, w1, w2, w3, w4, w5, w6, w7):
    m0, m1, m2, m3 = matrix[c], matrix[c + 1], matrix[c + 2], matrix[c + 3]
    m4, m5, m6, m7 = matrix[c + 4], matrix[c + 5], matrix[c + 6], matrix[c + 7]
    for h in range(total.shape[0]):
        total[h] += ((w0 * m0[h] + w1 * m1[h]) + (w2 * m2[h] + w3 * m3[h])) + (
            (w4 * m4[h] + w5 * m5[h]) + (w6 * m6[h] + w7 * m7[h])
        )


@compiled
def mix_rows(weights, matrix, total):
    """total (r,) = weights (n,) @ matrix (n, r)"""
    total[:] = 0
    add_mixed_rows(weights, matrix, total)


@compiled
def add_mixed_rows(weights, matrix, total):
    """total (r,) += weights (n,) @ matrix (n, r)"""
    n = matrix.shape[0]
    zero = total.dtype.type(0)
    if n < 8:
        for c in range(n):
            w, m = weights[c], matrix[c]
            for h in range(total.shape[0]):
                total[h] += w * m[h]
        return
    for c in range(0, n - 7, 8):
        _add_eight(
            total, matrix, c, weights[c], weights[c + 1], weights[c + 2], weights[c + 3], weights[c + 4],
            weights[c + 5], weights[c + 6], weights[c + 7],
        )  # fmt: skip
    done = 8 - n % 8  # of the last eight rows
    if done < 8:
        c = n - 8
        _add_eight(
            total, matrix, c, zero, weights[c + 1] if done < 2 else zero, weights[c + 2] if done < 3 else zero,
            weights[c + 3] if done < 4 else zero, weights[c + 4] if done < 5 else zero,
            weights[c + 5] if done < 6 else zero, weights[c + 6] if done < 7 else zero, weights[c + 7],
        )  # fmt: skip


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
        c = min(4 * group, n - 4)
        m0, m1, m2, m3 = matrix[c], matrix[c + 1], matrix[c + 2], matrix[c + 3]
        x0 = x1 = x2 = x3 = zero
        for h in range(r):
            x0 += row[h] * m0[h]
            x1 += row[h] * m1[h]
            x2 += row[h] * m2[h]
            x3 += row[h] * m3[h]
        result[c], result[c + 1], result[c + 2], result[c + 3] = x0, x1, x2, x3


@compiled
def add_outer_products(a, b, total):
    """total (n, r) += a (w, n) transposed @ b (w, r)"""
    for c in range(total.shape[0]):
        add_mixed_rows(a[:, c], b, total[c])
