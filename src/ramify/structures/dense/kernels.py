"""The compiled loops of the CPU path: everything around the matrix products, for all spans of one width.

Charts are those of chart.py with the spans of all sentences in one list: `(b * N + start) * N + width - 1` is a span's
cell. What is made for one width has a row for each of its spans, sentence by sentence. A row holds non-negative
numbers that sum to one; `scales` holds the logarithm of what it was divided by, minus infinity for an impossible span.
NaN goes through to the result, as it does in torch.
"""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

import math

import numpy as np

from ramify.runtime.compilation import compiled


@compiled
def _normalise(row):
    """Divide a row by its sum; returns the sum's logarithm. A sum too small to divide by is as good as zero."""
    total = row.dtype.type(0)
    for k in range(row.shape[0]):
        total += row[k]
    if total <= np.finfo(row.dtype).tiny:
        row[:] = 0
        return -np.inf
    inverse = 1 / total
    for k in range(row.shape[0]):
        row[k] *= inverse
    return math.log(total)


@compiled
def _weights(count, terms):
    """The first log scales as weights with largest entry 1, in place; returns the log of what they were divided by."""
    peak = -np.inf
    for t in range(count):
        peak = max(peak, terms[t])
    finite = peak if peak > -np.inf else 0.0
    for t in range(count):
        terms[t] = math.exp(terms[t] - finite)
    return peak


@compiled
def _add_outer_products(total, begin, end, weights, vectors_a, a, vectors_b, b):
    """total[k, l] += the sum over the terms from `begin` to `end` of weight * a[k] * b[l], for cells a and b."""
    n = total.shape[1]
    number = total.dtype.type
    kept = begin  # terms that underflow are left out
    for t in range(begin, end):
        if number(weights[t]) != 0:
            weights[kept], a[kept], b[kept] = weights[t], a[t], b[t]
            kept += 1
    # Four at a time: the sums are loaded and stored less often.
    fours = kept - (kept - begin) % 4
    for k in range(n):
        row = total[k]
        for t in range(begin, fours, 4):
            x0 = number(weights[t]) * vectors_a[a[t], k]
            x1 = number(weights[t + 1]) * vectors_a[a[t + 1], k]
            x2 = number(weights[t + 2]) * vectors_a[a[t + 2], k]
            x3 = number(weights[t + 3]) * vectors_a[a[t + 3], k]
            b0, b1, b2, b3 = vectors_b[b[t]], vectors_b[b[t + 1]], vectors_b[b[t + 2]], vectors_b[b[t + 3]]
            for c in range(n):
                row[c] += (x0 * b0[c] + x1 * b1[c]) + (x2 * b2[c] + x3 * b3[c])
        for t in range(fours, kept):
            x0, b0 = number(weights[t]) * vectors_a[a[t], k], vectors_b[b[t]]
            for c in range(n):
                row[c] += x0 * b0[c]


@compiled
def _add_product(total, weight, matrix, vector):
    """total += weight * matrix @ vector"""
    for k in range(matrix.shape[0]):
        row, found = matrix[k], total.dtype.type(0)
        for c in range(matrix.shape[1]):
            found += row[c] * vector[c]
        total[k] += weight * found


@compiled
def _add_transposed_product(total, weight, matrix, vector):
    """total += weight * vector @ matrix"""
    for k in range(matrix.shape[0]):
        row, x = matrix[k], weight * vector[k]
        for c in range(matrix.shape[1]):
            total[c] += x * row[c]


@compiled
def sum_splits(width, N, vectors, scales, word_left, word_right, pairs, found, found_scale):
    """The sums over the splits of each span of one width, three or more.

    `pairs` (rows, n, n) is the sum over the splits between two phrases, left times right; `found` (rows, n) are the
    weights of the two splits between a word and a phrase. Both are divided by the exponential of `found_scale`.
    """
    starts = N - width + 1
    terms = np.empty(width)
    lefts, rights = np.empty(width, np.int64), np.empty(width, np.int64)
    number = vectors.dtype.type
    for row in range(found_scale.shape[0]):
        b, i = row // starts, row % starts
        for s in range(1, width):
            lefts[s - 1] = (b * N + i) * N + s - 1
            rights[s - 1] = (b * N + i + s) * N + width - s - 1
            terms[s - 1] = scales[lefts[s - 1]] + scales[rights[s - 1]]
        found_scale[row] = _weights(width - 1, terms)
        pairs[row] = 0
        found[row] = 0
        last = width - 2
        _add_product(found[row], number(terms[0]), word_left[b * N + i], vectors[rights[0]])
        _add_product(found[row], number(terms[last]), word_right[b * N + i + width - 1], vectors[lefts[last]])
        _add_outer_products(pairs[row], 1, last, terms, vectors, lefts, vectors, rights)


@compiled
def store_inside(width, N, found, found_scale, scores, vectors, scales):
    """Scale the inside vectors of one width and put them into the chart."""
    starts = N - width + 1
    for row in range(found_scale.shape[0]):
        cell = (row // starts * N + row % starts) * N + width - 1
        scales[cell] = found_scale[row] + scores[cell] + _normalise(found[row])
        vectors[cell] = found[row]


@compiled
def pull_from_parents(
    width, N, vectors, scales, word_left, word_right, outer, scored_scales, pairs, found, found_scale
):
    """The contributions of the parents of each span of one width, the reverse of `sum_splits`.

    `pairs` (rows, 2, n, n) is the sum over the parents, parent times sibling, with the span as left child of a right
    sibling that is a phrase and as right child; `found` (rows, n) is what it gets beside single words.
    """
    starts = N - width + 1
    terms = np.empty(N)
    parents, siblings = np.empty(N, np.int64), np.empty(N, np.int64)
    number = vectors.dtype.type
    for row in range(found_scale.shape[0]):
        b, i = row // starts, row % starts
        count = 0
        for t in range(1, N - i - width + 1):  # as left child: the right sibling has t words
            parents[count], siblings[count] = (b * N + i) * N + width + t - 1, (b * N + i + width) * N + t - 1
            count += 1
        as_left = count
        for t in range(1, i + 1):  # as right child: the left sibling has t words
            parents[count], siblings[count] = (b * N + i - t) * N + width + t - 1, (b * N + i - t) * N + t - 1
            count += 1
        for t in range(count):
            terms[t] = scored_scales[parents[t]] + scales[siblings[t]]
        found_scale[row] = _weights(count, terms)
        pairs[row] = 0
        found[row] = 0
        if as_left:
            _add_transposed_product(found[row], number(terms[0]), word_right[b * N + i + width], outer[parents[0]])
            _add_outer_products(pairs[row, 0], 1, as_left, terms, outer, parents, vectors, siblings)
        if count > as_left:
            nearest = parents[as_left]
            _add_transposed_product(found[row], number(terms[as_left]), word_left[b * N + i - 1], outer[nearest])
            _add_outer_products(pairs[row, 1], as_left + 1, count, terms, outer, parents, vectors, siblings)


@compiled
def weigh_inside(width, N, vectors, scales, found_scale, log_z, upstream, bound, weighed):
    """The inside vectors of one width, each times exp(scale + `found_scale` - log p(w)) and its sentence's factor.

    As `scaling.posterior_weights`: bounded, and zero where p(w) = 0.
    """
    starts = N - width + 1
    for row in range(found_scale.shape[0]):
        b = row // starts
        cell = (b * N + row % starts) * N + width - 1
        weight = 0.0
        if log_z[b] > -np.inf:
            exponent = scales[cell] + found_scale[row] - log_z[b]
            weight = math.exp(bound if exponent > bound else exponent) * upstream[b]
        weighed[row] = vectors[cell] * vectors.dtype.type(weight)


@compiled
def store_outside(width, N, lengths, start, start_scale, found, found_scale, scores, outer, scales, scored_scales):
    """Scale the outside vectors of one width; those of whole sentences come from the start rules."""
    starts = N - width + 1
    for row in range(found_scale.shape[0]):
        b = row // starts
        cell = (b * N + row % starts) * N + width - 1
        if row % starts == 0 and lengths[b] == width:
            outer[cell], scales[cell] = start[b], start_scale[b]
        else:
            scales[cell] = found_scale[row] + _normalise(found[row])
            outer[cell] = found[row]
        scored_scales[cell] = scales[cell] + scores[cell]
