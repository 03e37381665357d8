"""Whether spans with posterior p are constituents with frequency p."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ramify.evaluation.spans import Spans

BINS = 10
"""Number of bins of equal width that posteriors are sorted into."""


@dataclass(frozen=True)
class ReliabilityBin:
    """Spans with similar posteriors."""

    low: float
    high: float
    spans: int
    mean_posterior: float | None
    """None if the bin is empty"""
    share_gold: float | None
    """Number of gold constituents among them"""


@dataclass(frozen=True)
class Reliability:
    """The reliability table, and the mean difference between posteriors and frequencies, weighted by spans."""

    expected_calibration_error: float
    bins: tuple[ReliabilityBin, ...]

    @classmethod
    def of(cls, counts: NDArray[np.float64]) -> Reliability:
        """From the sum of the `reliability_counts` of all sentences."""
        spans, belief, truth = counts
        edges = np.linspace(0, 1, BINS + 1).round(6).tolist()
        bins = tuple(
            ReliabilityBin(low, high, int(n), float(p / n) if n else None, float(t / n) if n else None)
            for low, high, n, p, t in zip(edges, edges[1:], spans, belief, truth, strict=False)
        )
        return cls(float(np.abs(belief - truth).sum() / max(spans.sum(), 1)), bins)


def reliability_counts(posteriors: NDArray[np.float32], gold: Spans) -> NDArray[np.float64]:
    """(3, BINS) of one sentence, for each bin: the number of spans, the sum of their posteriors, and the gold spans.

    `posteriors` (N+1, N+1) has at [i, j] the probability that words[i:j] are a constituent. All spans of two words or
    more count, except the whole sentence, which always has the posterior 1.
    """
    n = len(posteriors) - 1
    is_gold = np.zeros(posteriors.shape, dtype=bool)
    is_gold[gold[:, 0], gold[:, 1]] = True
    start, end = np.triu_indices(n + 1, 2)
    inside = end - start < n
    start, end = start[inside], end[inside]
    belief = np.clip(posteriors[start, end].astype(np.float64), 0, 1)
    place = np.minimum((belief * BINS).astype(np.int64), BINS - 1)
    weights = (np.ones(len(belief)), belief, is_gold[start, end])
    return np.stack([np.bincount(place, weight, minlength=BINS) for weight in weights])
