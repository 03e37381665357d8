"""Measurements of `ramify bench`."""

from ramify.bench.case import Case
from ramify.bench.sweeping import growth, plot, sweep
from ramify.bench.timing import Measurement, measure

__all__ = ["Case", "Measurement", "growth", "measure", "plot", "sweep"]
