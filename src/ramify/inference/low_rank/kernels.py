"""The compiled loops of the CPU path: sums over splits and the scaling of rows.

A chart is a matrix with one row a span: the spans of one width stand together, sentence by sentence, so that
`first[width] + b * (N - width + 1) + start` is a span's row and each width is one contiguous block that a matrix
product can take whole. A row holds non-negative numbers that sum to one; `log_scale` holds the logarithm of what it was
divided by, minus infinity for an impossible span.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numba import prange

# Reordering of sums and fused multiply-add; nothing that assumes away inf or NaN.
_FLAGS = {"reassoc", "contract", "nsz", "arcp"}
# One over anything below would overflow a float32.
_SMALLEST = float(np.finfo(np.float32).tiny)


def _compiled(function: Any) -> Any:
    return numba.njit(parallel=True, cache=True, nogil=True, error_model="numpy", fastmath=_FLAGS)(function)


def _inlined(function: Any) -> Any:
    return numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=_FLAGS)(function)


@_inlined
def _add_product(total, weight, a, b):  # type: ignore[no-untyped-def]
    for k in range(total.shape[0]):
        total[k] += weight * a[k] * b[k]


@_inlined
def _normalise(row):  # type: ignore[no-untyped-def]
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


@_compiled
def sum_splits(width, N, first, children, left_scale, right_scale, scores, rank, rank_scale):  # type: ignore[no-untyped-def]
    """x of every span of one width, scaled: sum over the splits of left part times right part."""
    starts = N - width + 1
    d = rank.shape[1]
    for cell in prange(first[width + 1] - first[width]):
        b, i = cell // starts, cell % starts
        row = first[width] + cell
        peak = -np.inf
        for s in range(1, width):
            left = first[s] + b * (N - s + 1) + i
            right = first[width - s] + b * (starts + s) + i + s
            peak = max(peak, left_scale[left] + right_scale[right])
        total = rank[row]
        total[:] = 0
        if peak == -np.inf:
            rank_scale[row] = -np.inf
            continue
        for s in range(1, width):
            left = first[s] + b * (N - s + 1) + i
            right = first[width - s] + b * (starts + s) + i + s
            weight = rank.dtype.type(math.exp(left_scale[left] + right_scale[right] - peak))
            if weight > 0:
                _add_product(total, weight, children[left, :d], children[right, d:])
        rank_scale[row] = _normalise(total) + peak + scores[row]


@_compiled
def normalise_rows(rows, scale_before, scale_after):  # type: ignore[no-untyped-def]
    """Scale each row in place."""
    for cell in prange(rows.shape[0]):
        scale_after[cell] = scale_before[cell] + _normalise(rows[cell])


@_compiled
def normalise_children(rows, scale_before, left_scale, right_scale):  # type: ignore[no-untyped-def]
    """Scale the left and the right half of each row in place, each by its own sum."""
    d = rows.shape[1] // 2
    for cell in prange(rows.shape[0]):
        left_scale[cell] = scale_before[cell] + _normalise(rows[cell, :d])
        right_scale[cell] = scale_before[cell] + _normalise(rows[cell, d:])


@_compiled
def pull_from_parents(  # type: ignore[no-untyped-def]
    width, N, first, children, left_scale, right_scale, g_rank, g_rank_scale, g_children, g_scale
):
    """Outside of [left | right] of every span of one width, from all its parents, both halves in one scale."""
    starts = N - width + 1
    d = g_rank.shape[1]
    for cell in prange(first[width + 1] - first[width]):
        b, i = cell // starts, cell % starts
        row = first[width] + cell
        g_left, g_right = g_children[row, :d], g_children[row, d:]
        g_left[:] = 0
        g_right[:] = 0
        left_peak, right_peak = -np.inf, -np.inf
        for t in range(1, N - i - width + 1):  # as left child: the right sibling has t words
            parent = first[width + t] + b * (starts - t) + i
            sibling = first[t] + b * (N - t + 1) + i + width
            left_peak = max(left_peak, g_rank_scale[parent] + right_scale[sibling])
        for t in range(1, i + 1):  # as right child: the left sibling has t words
            parent = first[width + t] + b * (starts - t) + i - t
            sibling = first[t] + b * (N - t + 1) + i - t
            right_peak = max(right_peak, g_rank_scale[parent] + left_scale[sibling])
        if left_peak > -np.inf:
            for t in range(1, N - i - width + 1):
                parent = first[width + t] + b * (starts - t) + i
                sibling = first[t] + b * (N - t + 1) + i + width
                weight = g_rank.dtype.type(math.exp(g_rank_scale[parent] + right_scale[sibling] - left_peak))
                if weight > 0:
                    _add_product(g_left, weight, g_rank[parent], children[sibling, d:])
        if right_peak > -np.inf:
            for t in range(1, i + 1):
                parent = first[width + t] + b * (starts - t) + i - t
                sibling = first[t] + b * (N - t + 1) + i - t
                weight = g_rank.dtype.type(math.exp(g_rank_scale[parent] + left_scale[sibling] - right_peak))
                if weight > 0:
                    _add_product(g_right, weight, g_rank[parent], children[sibling, :d])
        left_peak += _normalise(g_left)
        right_peak += _normalise(g_right)
        common = max(left_peak, right_peak)
        g_scale[row] = common
        if common > -np.inf:
            g_left *= g_rank.dtype.type(math.exp(left_peak - common))
            g_right *= g_rank.dtype.type(math.exp(right_peak - common))


@_compiled
def products(a, b, result):  # type: ignore[no-untyped-def]
    """result[row] = a[row] . b[row]"""
    for row in prange(a.shape[0]):
        total = a.dtype.type(0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[row, k]
        result[row] = total
