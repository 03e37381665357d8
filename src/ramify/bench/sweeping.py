"""Growth of time with the length, the number of symbols and the batch size."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ramify.bench.case import Case
from ramify.bench.timing import Measurement, measure, sgemm_peak
from ramify.errors import RamifyError

FACTORS = (0.5, 1, 2, 4)
"""Multiples of the given size that a sweep measures."""
AXES = {"length": ("length",), "symbols": ("nonterminals", "preterminals", "rank"), "batch": ("batch",)}


def sweep(case: Case) -> dict[str, list[Measurement]]:
    """The case at several lengths, numbers of symbols and batch sizes; one peak for all."""
    peak = sgemm_peak()
    return {axis: [measure(each, reference=False, peak=peak) for each in _cases(case, axis)] for axis in AXES}


def _cases(case: Case, axis: str) -> list[Case]:
    least = 2 if axis == "length" else 1
    changes: list[dict[str, Any]] = [
        {name: max(least, int(getattr(case, name) * factor)) for name in AXES[axis]} for factor in FACTORS
    ]
    return [replace(case, **change) for change in changes]


def size_along(axis: str, measurement: Measurement) -> int:
    """The size along an axis of a sweep."""
    return int(getattr(measurement.case, {"symbols": "preterminals"}.get(axis, axis)))


def growth(axis: str, measurements: Sequence[Measurement]) -> float:
    """The exponent k of time ~ size^k, by least squares over the logarithms."""
    x = [math.log(size_along(axis, m)) for m in measurements]
    y = [math.log(m.seconds) for m in measurements]
    return statistics.linear_regression(x, y).slope


def plot(measurements: dict[str, list[Measurement]], path: Path) -> None:
    """Seconds against size, one panel per axis, with the fitted exponents."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise RamifyError("--plot needs matplotlib, which is not installed: pip install 'ramify[plot]'.") from error
    figure = Figure(figsize=(4 * len(measurements), 3.5), layout="constrained")
    panels = figure.subplots(1, len(measurements), squeeze=False)[0]
    for panel, (axis, found) in zip(panels, measurements.items(), strict=True):
        panel.loglog([size_along(axis, m) for m in found], [m.seconds for m in found], "o-")
        panel.set(xlabel=axis, ylabel="seconds", title=f"time ~ {axis}^{growth(axis, found):.2f}")
    figure.savefig(path)
