"""Both passes over some sentences in compiled loops, in log space: nothing underflows, and no scales are kept.

A chart (N+1, N+1) is symmetric: entries [i, j] and [j, i] are the log total weight of the trees over words i..j-1. So
the left children (i, k) and the right children (k, j) of a span, for all splits k, both lie along a row.
"""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

import math

import numpy as np

from ramify.runtime.compilation import compiled


@compiled
def inside(first, step, lengths, log_weights, charts):
    """Fill the charts (B, N+1, N+1) of every `step`-th sentence from `first` on, from the log-weights of its spans."""
    for b in range(first, lengths.shape[0], step):
        N, weights, chart = lengths[b], log_weights[b], charts[b]
        for i in range(N):
            chart[i, i + 1] = chart[i + 1, i] = weights[i, i + 1]
        for width in range(2, N + 1):
            for i in range(N - width + 1):
                j = i + width
                left, right = chart[i, i + 1 : j], chart[j, i + 1 : j]
                peak = -np.inf
                for k in range(width - 1):
                    if left[k] + right[k] > peak:
                        peak = left[k] + right[k]
                total = 0.0
                if peak > -np.inf:
                    for k in range(width - 1):
                        total += math.exp(left[k] + right[k] - peak)
                    peak += math.log(total)
                chart[i, j] = chart[j, i] = peak + weights[i, j]


@compiled
def outside(first, step, lengths, log_weights, charts, posteriors):
    """The posteriors (B, N+1, N+1) of all spans of the same sentences, from their charts; they begin as zeros.

    A span passes its posterior on to the children of each split in proportion to the weight of the split, which is the
    way back through `inside`. Below the diagonal stands, for the time being, what spans get as right children.
    """
    for b in range(first, lengths.shape[0], step):
        N, weights, chart, found = lengths[b], log_weights[b], charts[b], posteriors[b]
        if chart[0, N] == -np.inf:
            continue
        found[0, N] = 1
        for width in range(N, 0, -1):
            for i in range(N - width + 1):
                j = i + width
                posterior = found[i, j] + found[j, i]
                found[i, j], found[j, i] = posterior, 0
                if width == 1 or posterior == 0:
                    continue
                left, right = chart[i, i + 1 : j], chart[j, i + 1 : j]
                as_left, as_right = found[i, i + 1 : j], found[j, i + 1 : j]
                rest = weights[i, j] - chart[i, j]
                for k in range(width - 1):
                    share = posterior * math.exp(left[k] + right[k] + rest)
                    as_left[k] += share
                    as_right[k] += share
