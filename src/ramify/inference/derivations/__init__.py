"""Single derivations of a sentence: the best, the k best, samples of the posterior."""

from ramify.inference.derivations.decoders import (
    MOST_RULES,
    best_derivations,
    best_rank_derivations,
    k_best_derivations,
    posteriors_along,
    sampled_derivations,
    written_out,
)
from ramify.inference.derivations.search import Derivation

__all__ = [
    "MOST_RULES",
    "Derivation",
    "best_derivations",
    "best_rank_derivations",
    "k_best_derivations",
    "posteriors_along",
    "sampled_derivations",
    "written_out",
]
