"""Several runs as one figure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, pstdev


@dataclass(frozen=True)
class Spread:
    """Mean, biased standard deviation (divided by the number of runs) and maximum."""

    mean: float
    std: float | None
    """None of a single run"""
    best: float


def spread(values: Iterable[float | None]) -> Spread | None:
    """Of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Spread(fmean(known), pstdev(known) if len(known) > 1 else None, max(known))
