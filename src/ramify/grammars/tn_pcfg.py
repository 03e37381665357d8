"""TN-PCFG: the tensor-decomposed PCFG whose parameters are made by neural networks (Yang et al. 2021, sec. 5)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ramify.grammars.activations import ACTIVATIONS
from ramify.grammars.base import Grammar, SharedRules
from ramify.grammars.networks import SymbolLayer, SymbolNetwork, output_layer, state_network
from ramify.inference.emission import word_log_probabilities
from ramify.inference.rules import LowRankRules
from ramify.inference.together import Part, together


class TNPCFG(Grammar):
    """Embeddings are unit Gaussian, linear layers keep PyTorch's own initialisation, as in the paper.

    `activation` is the one inside the three networks f_u, f_v, f_w of the binary rules (the paper's ablation);
    the start and word networks always use ReLU. `gain` multiplies the initial weights of all output layers. With 1,
    as in the paper, every distribution starts nearly uniform, so all symbols are nearly alike, and it takes
    many steps to tell them apart; a larger gain parts them from the start. With `latent` it is a compound grammar.
    """

    def __init__(
        self,
        nonterminals: int,
        preterminals: int,
        rank: int,
        words: int,
        embedding: int = 256,
        activation: str = "relu",
        gain: float = 1.0,
        latent: int = 0,
    ) -> None:
        super().__init__(nonterminals, preterminals, rank, words, latent)
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation {activation!r} is not one of {', '.join(ACTIVATIONS)}")

        def rule_network() -> SymbolNetwork:
            inner = SymbolLayer(embedding, latent, embedding)
            return SymbolNetwork(inner, getattr(nn, ACTIVATIONS[activation])(), output_layer(embedding, rank, gain))

        self.symbol_embedding = nn.Parameter(torch.randn(nonterminals + preterminals, embedding))
        self.start_embedding = nn.Parameter(torch.randn(1, embedding))
        self.preterminal_embedding = nn.Parameter(torch.randn(preterminals, embedding))
        self.head, self.left, self.right = rule_network(), rule_network(), rule_network()
        self.start = SymbolNetwork(*state_network(embedding, latent), output_layer(embedding, nonterminals, gain))
        self.preterminal_encoder = SymbolNetwork(*state_network(embedding, latent))
        self.word_layer = output_layer(embedding, words, gain)

    def _parts(self, z: Tensor | None) -> dict[str, Part]:
        """Start and binary rules, normalised as Theorem 1 asks, and the states that the words are drawn from."""
        symbols, n = self.symbol_embedding, self.nonterminals

        def part(
            normalise: Callable[[Tensor], Tensor],
            embedding: nn.Parameter,
            network: SymbolNetwork,
            rows: int | None = None,
        ) -> Part:
            matrices = sum(parameter.numel() for parameter in network.parameters())
            return Part(
                lambda: normalise(network(embedding[:rows], z)),
                [embedding, *network.parameters()],
                2 * len(embedding[:rows]) * matrices,
            )

        return {  # the longest first, so that no core is left with it at the end
            "states": part(lambda states: states, self.preterminal_embedding, self.preterminal_encoder),
            "left": part(lambda logits: logits.log_softmax(-2), symbols, self.left),
            "right": part(lambda logits: logits.log_softmax(-2), symbols, self.right),
            "head": part(lambda logits: logits.log_softmax(-1), symbols, self.head, n),
            "root": part(lambda logits: logits.squeeze(-2).log_softmax(-1), self.start_embedding, self.start),
        }

    def _run(self, z: Tensor | None, *names: str) -> dict[str, Tensor]:
        parts = {name: part for name, part in self._parts(z).items() if name in names}
        if z is not None:  # through which gradients must go too
            return {name: part.function() for name, part in parts.items()}
        return dict(zip(parts, together(list(parts.values())), strict=True))

    def shared_rules(self, z: Tensor | None = None) -> SharedRules:
        """Start and binary rules; with z (B, latent) one set for each sentence."""
        return SharedRules(**self._run(z, *SharedRules._fields))

    def emission(self, word_ids: Tensor, z: Tensor | None = None) -> Tensor:
        """log p(T -> w) (..., p) of the words given by their numbers (...); with z (B, latent) those are (B, N)."""
        return self._words(self._run(z, "states")["states"], word_ids)

    def _words(self, states: Tensor, word_ids: Tensor) -> Tensor:
        return word_log_probabilities(states, self.word_layer.weight, self.word_layer.bias, word_ids)

    def rules_at(self, z: Tensor | None, word_ids: Tensor, lengths: Tensor) -> LowRankRules:
        """The rules for a batch of sentences (B, N), all networks at the same time."""
        made = self._run(z, "states", *SharedRules._fields)
        words = self._words(made.pop("states"), word_ids)
        return LowRankRules(**made, words=words, lengths=lengths)
