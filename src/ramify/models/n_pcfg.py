"""N-PCFG: a dense PCFG whose parameters are made by neural networks (Kim, Dyer and Rush 2019, sec. 2.1)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ramify.models.emission import word_log_probabilities
from ramify.models.grammar import Grammar
from ramify.models.networks import SymbolLayer, SymbolNetwork, initialise, multiply_weights, state_network
from ramify.structures.dense import DenseRules


class NPCFG(Grammar):
    """One linear layer from a symbol's embedding to the logits of all its m^2 pairs of children.

    Every matrix starts out Xavier-uniform, embeddings too, as in the paper. `gain` multiplies the initial weights of
    all output layers, as in TN-PCFG. With `latent` it is a compound grammar.
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
        m = self.nonterminals + self.preterminals
        root: Tensor = self.start_layer(self.start_encoder(self.start_embedding, z)).squeeze(-2)
        binary: Tensor = self.rule_layer(self.nonterminal_embedding, z)
        return DenseRules(root.log_softmax(-1), binary.log_softmax(-1).unflatten(-1, (m, m)))

    def emission(self, word_ids: Tensor, z: Tensor | None = None) -> Tensor:
        """log p(T -> w) (..., p) of the words given by their numbers (...); with z (B, latent) those are (B, N)."""
        states: Tensor = self.preterminal_encoder(self.preterminal_embedding, z)  # (..., p, embedding)
        return word_log_probabilities(states, self.word_layer.weight, self.word_layer.bias, word_ids)
