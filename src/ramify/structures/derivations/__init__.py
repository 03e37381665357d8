"""Single derivations of a sentence: the best, the k best, samples of the posterior."""

from ramify.structures.derivations.forest import Forest
from ramify.structures.derivations.search import KBest, heaviest, sample_with, walk

__all__ = ["Forest", "KBest", "heaviest", "sample_with", "walk"]
