"""NL-PCFG: the neural lexicalised PCFG, whose rules depend on the parent's head word (Zhu, Bisk and Neubig 2020)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ramify.models.lexicalised import (
    LexicalisedGrammar,
    PairLayer,
    RuleDrawn,
    WordNetwork,
    map_distinct_words,
    start_network,
)
from ramify.models.networks import Residual, initialise, multiply_weights
from ramify.structures.lexicalised import UnilexicalPCFG
from ramify.structures.pcfg import cumulative, draw

CACHE_SIZE = 64
"""Number of words whose rules a sampler caches, 2 n m^2 numbers each."""


class NLPCFG(LexicalisedGrammar):
    """p(A[p] -> B[p] C[q]) = p(B, D | A, w_p) p(C | A, w_p, B, D) p(w_q | C), where D is the side of C.

    B and D come from a residual network of [w; A], C from one linear map of [w; A]. All matrices, including embeddings,
    are initialised Xavier-uniform; `gain` multiplies the initial weights of all output layers.
    """

    def __init__(
        self, nonterminals: int, preterminals: int, words: int, embedding: int = 256, gain: float = 1.0
    ) -> None:
        super().__init__(nonterminals, preterminals, None, words)
        m = self.states = self.symbols
        self.start_embedding = nn.Parameter(torch.empty(1, embedding))
        self.symbol_embedding = nn.Parameter(torch.empty(m, embedding))
        self.word_embedding = nn.Embedding(words, embedding)
        self.start = start_network(embedding, nonterminals)
        self.pair = PairLayer(embedding, embedding)
        self.head_child = nn.Sequential(Residual(embedding), Residual(embedding), nn.Linear(embedding, 2 * m))
        self.other_child = PairLayer(embedding, 2 * m * m)
        self.word_network = WordNetwork(embedding, words)
        initialise(self, "xavier-uniform")
        outputs = [self.start[-1], self.head_child[-1], self.word_network.layer]
        multiply_weights([*outputs, self.other_child.of_word, self.other_child.of_symbol], gain)

    def emission(self, word_ids: Tensor) -> Tensor:
        """(..., m) log p(w | C) of phrases and preterminals."""
        found: Tensor = self.word_network(self.symbol_embedding, word_ids)
        return found

    def rules(self, word_ids: Tensor) -> Tensor:
        """(u, n, 2, m, m) log p(B, C, D | A, w) of words (u,): side of the other child, head child, other child."""
        words, parents, m = self.word_embedding(word_ids), self.symbol_embedding[: self.nonterminals], self.symbols
        heads = self.head_child(self.pair(words, parents)).log_softmax(-1).unflatten(-1, (2, m))
        others = self.other_child(words, parents).unflatten(-1, (2, m, m)).log_softmax(-1)
        result: Tensor = heads[..., None] + others
        return result

    def root(self) -> Tensor:
        """(n,) log p(A)."""
        logits: Tensor = self.start(self.start_embedding, None)
        return logits.squeeze(0).log_softmax(-1)

    def distribution(self, word_ids: Tensor, lengths: Tensor, emission: Tensor) -> UnilexicalPCFG:
        """See `LexicalisedGrammar`."""
        return UnilexicalPCFG(self.root(), map_distinct_words(word_ids, self.rules), emission, lengths)

    def run_networks(self, word_ids: Tensor) -> None:
        """See `LexicalisedGrammar`; the softmax over words is that over the whole vocabulary, for any words."""
        self.root(), self.rules(word_ids), self.emission(word_ids[:0])

    def chart_flop(self, length: int) -> float:
        """Products of children over the splits, and of these with the rules, for every span and head."""
        rows = length * (length + 1) * (length + 2) / 6
        heads_of_splits = (length**2 - 1) * length * (length + 2) / 12
        return 2 * self.symbols**2 * (heads_of_splits + 2 * self.nonterminals * rows)

    def numbers_per_sentence(self, length: int) -> int:
        """The rules of every word three times, and pairs of children for the spans and heads of one width."""
        pairs = 2 * self.symbols**2
        return 3 * length * self.nonterminals * pairs + 3 * (length * length // 4 + 1) * pairs

    def expected_seconds(self, length: int) -> float:
        """Estimate, measured on one core: 1 ns for each rule of every span and head."""
        return 1e-9 * length**3 / 6 * self.nonterminals * 2 * self.symbols**2

    @torch.no_grad()
    def start_log_probabilities(self) -> tuple[Tensor, Tensor]:
        """(n,) log p(A) and (q, n) log p(w | A)."""
        every = torch.arange(self.words, device=self.device)
        return self.root(), self.emission(every)[:, : self.nonterminals]

    @torch.no_grad()
    def rule_sampler(self) -> Callable[[int, int, np.random.Generator], RuleDrawn]:
        """A function that draws a rule below a nonterminal with its head word."""
        words = cumulative(self.emission(torch.arange(self.words, device=self.device)).T)

        @lru_cache(CACHE_SIZE)
        @torch.no_grad()
        def rules(word: int) -> NDArray[np.float64]:
            return cumulative(self.rules(torch.tensor([word], device=self.device))[0].flatten(1))

        def rule(parent: int, word: int, rng: np.random.Generator) -> RuleDrawn:
            rest, other = divmod(draw(rules(word)[parent], rng), self.symbols)
            side, head = divmod(rest, self.symbols)
            return head, other, side, draw(words[other], rng)

        return rule
