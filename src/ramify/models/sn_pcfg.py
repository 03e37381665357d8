"""SN-PCFG: the Simple PCFG, p(A -> B C) = p(B | A) p(C | A), with neural networks (Liu, Yang, Kim and Tu 2023)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ramify.models.linear import Linear
from ramify.models.low_rank_grammar import LowRankGrammar
from ramify.models.networks import SymbolLayer, SymbolNetwork, initialise, multiply_weights, state_network
from ramify.models.parallel_networks import part, parts_by_rows
from ramify.runtime.parallel_autograd import Part

BLOCKS = 3
"""Residual blocks between a preterminal and its words."""


class SNPCFG(LowRankGrammar):
    """The two children are independent: a low-rank grammar with one component per nonterminal and the identity for U.

    The logit of a child is the product of a vector of the child and a vector of the parent, each the sum of an
    embedding and the ReLU of a layer. All matrices, including embeddings, are initialised Xavier-uniform. `gain`
    multiplies the initial word layer. With `latent` it is a compound grammar, in which z affects parents and words.
    """

    is_simple = True

    def __init__(
        self,
        nonterminals: int,
        preterminals: int,
        words: int,
        embedding: int = 512,
        gain: float = 1.0,
        latent: int = 0,
    ) -> None:
        super().__init__(nonterminals, preterminals, nonterminals, words, latent)
        self.symbol_embedding = nn.Parameter(torch.empty(nonterminals + preterminals, embedding))
        self.start_embedding = nn.Parameter(torch.empty(1, embedding))
        self.parent = SymbolNetwork(SymbolLayer(embedding, latent, embedding), nn.ReLU(inplace=True))
        self.left = nn.Sequential(Linear(embedding, embedding), nn.ReLU(inplace=True))
        self.right = nn.Sequential(Linear(embedding, embedding), nn.ReLU(inplace=True))
        self.preterminal_encoder = SymbolNetwork(*state_network(embedding, latent, BLOCKS))
        self.word_layer = nn.Linear(embedding, words, bias=False)
        initialise(self, "xavier-uniform")
        multiply_weights([self.word_layer], gain)

    def _parts(self, z: Tensor | None) -> dict[str, list[Part]]:
        n, p = self.nonterminals, self.preterminals
        symbols, start = self.symbol_embedding, self.start_embedding

        def states(rows: slice) -> Tensor:
            found: Tensor = self.preterminal_encoder(symbols[rows], z)
            return found + symbols[rows]

        def children(network: nn.Module) -> list[Part]:
            def made() -> Tensor:
                parents: Tensor = self.parent(symbols[:n], z) + symbols[:n]
                logits: Tensor = (network(symbols) + symbols) @ parents.mT
                return logits.log_softmax(-2)

            return [part(made, n + p, z, [symbols], self.parent, network)]

        def root() -> Tensor:
            found = (start @ symbols[:n].T).squeeze(0).log_softmax(-1)
            return found if z is None else found.expand(len(z), n)

        return {
            "left": children(self.left),
            "right": children(self.right),
            "states": parts_by_rows(states, slice(n, n + p), z, [symbols], self.preterminal_encoder),
            "root": [part(root, n, None, [symbols, start])],
        }
