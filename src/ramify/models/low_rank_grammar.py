"""Low-rank grammars whose tables are computed by networks that do not depend on each other."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor, nn

from ramify.models.emission import word_log_probabilities
from ramify.models.grammar import Grammar
from ramify.models.networks import CosineLayer
from ramify.models.parallel_networks import run_named
from ramify.runtime.parallel_autograd import Part
from ramify.structures.low_rank import LowRankPCFG, LowRankRules


class LowRankGrammar(Grammar):
    """A subclass lists the parts of its network; this class runs them in parallel and combines them."""

    word_layer: nn.Linear
    """Layer from the states of the preterminals to the words"""

    @abstractmethod
    def _parts(self, z: Tensor | None) -> dict[str, list[Part]]:
        """Start and binary rules by the names of `LowRankRules`, normalised as in Theorem 1, and `states`.

        Words are drawn from the states (p, embedding). Tables in several parts are joined by rows. The longest parts
        come first, so that no core has a long one left at the end.
        """

    def _run(self, z: Tensor | None, *names: str) -> dict[str, Tensor]:
        return run_named({name: parts for name, parts in self._parts(z).items() if name in names})

    def rules(self, z: Tensor | None = None) -> LowRankRules:
        """Start and binary rules; with z (B, latent) one set for each sentence."""
        return _rules_of(self._run(z, *LowRankRules.rule_names()))

    def emission(self, word_ids: Tensor, z: Tensor | None = None) -> Tensor:
        """log p(T -> w) (..., p) of the words given by their numbers (...); with z (B, latent) those are (B, N)."""
        return self._words(self._run(z, "states")["states"], word_ids)

    def _words(self, states: Tensor, word_ids: Tensor) -> Tensor:
        weight = self.word_layer.weight
        if isinstance(self.word_layer, CosineLayer):
            states, weight = self.word_layer.factors(states)
        return word_log_probabilities(states, weight, self.word_layer.bias, word_ids)

    def distribution_at(self, z: Tensor | None, word_ids: Tensor, lengths: Tensor) -> LowRankPCFG:
        """The distribution for sentences (B, N), with all networks computed at the same time."""
        made = self._run(z, "states", *LowRankRules.rule_names())
        words = self._words(made.pop("states"), word_ids)
        return _rules_of(made).with_words(words, lengths)


def _rules_of(made: dict[str, Tensor]) -> LowRankRules:
    return LowRankRules(made["root"], made.get("head"), made["left"], made["right"])
