"""Whether the difference between two systems is significant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ramify.errors import RamifyError

SAMPLES = 10_000
_ROWS_OF_ONE_DRAW = 2**22


@dataclass(frozen=True)
class Comparison:
    """The difference of two systems' S-F1 on the same sentences, in percentage points; positive: B is better."""

    difference: float
    low: float
    """The lower end of the 95 % interval of the paired bootstrap"""
    high: float
    bootstrap_p: float
    """Twice the share of resampled differences on the other side of zero"""
    permutation_p: float
    """The share of differences at least as large if A and B are swapped at random in each sentence"""
    better: int
    """Sentences on which B is better"""
    worse: int
    sentences: int
    samples: int
    seed: int


def compare_f1(
    first: NDArray[np.float64], second: NDArray[np.float64], samples: int = SAMPLES, seed: int = 0
) -> Comparison:
    """Paired bootstrap (Efron and Tibshirani 1993) and permutation test of two systems' F1, (sentences,) each."""
    if samples < 1 or seed < 0:
        raise RamifyError(
            f"samples is {samples} and seed is {seed}; give at least 1 for samples and at least 0 for the seed."
        )
    if len(first) != len(second) or not len(first):
        raise RamifyError(
            f"One system has {len(first)} scored sentences, the other {len(second)}; score the same sentences."
        )
    gain = second - first
    resampled = np.concatenate(list(_resampled_means(gain, samples, np.random.default_rng([seed, 0]))))
    swapped = np.concatenate(list(_swapped_means(gain, samples, np.random.default_rng([seed, 1]))))
    low, high = np.percentile(resampled, [2.5, 97.5])
    # The observed difference is one of the samples, so p is never zero. Sums in another order may differ in the last
    # digits.
    as_large = 1 + int((np.abs(swapped) >= abs(gain.mean()) - 1e-12).sum())
    other_side = 1 + int(min((resampled <= 0).sum(), (resampled >= 0).sum()))
    return Comparison(
        difference=100 * float(gain.mean()),
        low=100 * float(low),
        high=100 * float(high),
        bootstrap_p=min(1.0, 2 * other_side / (1 + samples)),
        permutation_p=as_large / (1 + samples),
        better=int((gain > 0).sum()),
        worse=int((gain < 0).sum()),
        sentences=len(gain),
        samples=samples,
        seed=seed,
    )


def _draws(samples: int, sentences: int) -> Iterator[int]:
    """Number of samples to draw at a time, to limit memory."""
    at_once = max(1, _ROWS_OF_ONE_DRAW // sentences)
    while samples > 0:
        yield min(at_once, samples)
        samples -= at_once


def _resampled_means(
    gain: NDArray[np.float64], samples: int, rng: np.random.Generator
) -> Iterator[NDArray[np.float64]]:
    for rows in _draws(samples, len(gain)):
        yield gain[rng.integers(len(gain), size=(rows, len(gain)), dtype=np.int32)].mean(1)


def _swapped_means(gain: NDArray[np.float64], samples: int, rng: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    for rows in _draws(samples, len(gain)):
        signs = rng.integers(2, size=(rows, len(gain)), dtype=np.int8) * 2 - 1
        yield signs @ gain / len(gain)
