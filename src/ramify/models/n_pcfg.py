"""N-PCFG: a dense PCFG whose probabilities are computed by neural networks (Kim, Dyer and Rush 2019, sec. 2.1)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ramify.models.emission import word_log_probabilities
from ramify.models.grammar import Grammar
from ramify.models.networks import SymbolLayer, SymbolNetwork, initialise, multiply_weights, state_network
from ramify.models.parallel_networks import part, parts_by_rows, run_named
from ramify.runtime.parallel_autograd import Part
from ramify.structures.dense import DenseRules
from ramify.structures.pcfg import PCFG


class NPCFG(Grammar):
    """One linear layer from a symbol's embedding to the logits of all its m^2 pairs of children.

    All matrices, including embeddings, are initialised Xavier-uniform, as in the paper. `gain` multiplies the initial
    weights of all output layers, as in TN-PCFG. With `latent` it is a compound grammar.
    """

    def __init__(
        self,
        nonterminals: int,
        preterminals: int,
        words: int,
        embedding: int = 256,
        gain: float = 1.0,
        latent: int = 0,
    ) -> None:
        super().__init__(nonterminals, preterminals, None, words, latent)
        symbols = nonterminals + preterminals
        self.start_embedding = nn.Parameter(torch.empty(1, embedding))
        self.nonterminal_embedding = nn.Parameter(torch.empty(nonterminals, embedding))
        self.preterminal_embedding = nn.Parameter(torch.empty(preterminals, embedding))
        self.start_encoder = SymbolNetwork(*state_network(embedding, latent))
        self.start_layer = nn.Linear(embedding, nonterminals)
        self.rule_layer = SymbolLayer(embedding, latent, symbols**2)
        self.preterminal_encoder = SymbolNetwork(*state_network(embedding, latent))
        self.word_layer = nn.Linear(embedding, words)
        initialise(self, "xavier-uniform")
        multiply_weights([self.start_layer, self.rule_layer, self.word_layer], gain)

    def rules(self, z: Tensor | None = None) -> DenseRules:
        """Start and binary rules; with z (B, latent) one set for each sentence."""
        return self._rules_of(run_named(self._rule_parts(z)))

    def emission(self, word_ids: Tensor, z: Tensor | None = None) -> Tensor:
        """log p(T -> w) (..., p) of the words given by their numbers (...); with z (B, latent) those are (B, N)."""
        return self._words(run_named(self._state_parts(z)), word_ids)

    def distribution_at(self, z: Tensor | None, word_ids: Tensor, lengths: Tensor) -> PCFG:
        """The distribution for sentences (B, N), with all networks computed at the same time."""
        made = run_named(self._rule_parts(z) | self._state_parts(z))
        return self._rules_of(made).with_words(self._words(made, word_ids), lengths)

    def _rule_parts(self, z: Tensor | None) -> dict[str, list[Part]]:
        parents, start = self.nonterminal_embedding, self.start_embedding

        def binary(rows: slice) -> Tensor:
            logits: Tensor = self.rule_layer(parents[rows], z)
            return logits.log_softmax(-1)

        def root() -> Tensor:
            logits: Tensor = self.start_layer(self.start_encoder(start, z))
            return logits.squeeze(-2).log_softmax(-1)

        return {
            "binary": parts_by_rows(binary, slice(0, len(parents)), z, [parents], self.rule_layer),
            "root": [part(root, 1, z, [start], self.start_encoder, self.start_layer)],
        }

    def _state_parts(self, z: Tensor | None) -> dict[str, list[Part]]:
        tags = self.preterminal_embedding

        def states(rows: slice) -> Tensor:
            found: Tensor = self.preterminal_encoder(tags[rows], z)  # (..., p, embedding)
            return found

        return {"states": parts_by_rows(states, slice(0, len(tags)), z, [tags], self.preterminal_encoder)}

    def _rules_of(self, made: dict[str, Tensor]) -> DenseRules:
        m = self.nonterminals + self.preterminals
        return DenseRules(made["root"], made["binary"].unflatten(-1, (m, m)))

    def _words(self, made: dict[str, Tensor], word_ids: Tensor) -> Tensor:
        return word_log_probabilities(made["states"], self.word_layer.weight, self.word_layer.bias, word_ids)
