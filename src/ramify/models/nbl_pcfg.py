"""NBL-PCFG: the neural bilexicalised PCFG, whose rules are sums over a latent variable (Yang, Zhao and Tu 2021b)."""

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
from ramify.runtime.padding import padded_size
from ramify.structures.lexicalised import BilexicalPCFG
from ramify.structures.pcfg import cumulative, draw

CACHE_SIZE = 4096
"""Number of pairs of a symbol and a word whose rules a sampler caches."""


class NBLPCFG(LexicalisedGrammar):
    """p(B, C, w_q, D | A, w_p) = sum_H p(H | A, w_p) p(B | H) p(C, D | H) p(w_q | H), H of size `rank`.

    p(H | A, w) is a softmax over H of relu(W [w; A]) + w through a residual block. All matrices, including embeddings,
    are initialised Xavier-uniform; `gain` multiplies the initial weights of all output layers.
    """

    def __init__(
        self, nonterminals: int, preterminals: int, rank: int, words: int, embedding: int = 256, gain: float = 1.0
    ) -> None:
        super().__init__(nonterminals, preterminals, rank, words)
        self.states = nonterminals + rank
        self.start_embedding = nn.Parameter(torch.empty(1, embedding))
        self.nonterminal_embedding = nn.Parameter(torch.empty(nonterminals, embedding))
        self.component_embedding = nn.Parameter(torch.empty(rank, embedding))
        self.word_embedding = nn.Embedding(words, embedding)
        self.start = start_network(embedding, nonterminals)
        self.pair = PairLayer(embedding, embedding)
        self.component = nn.Sequential(Residual(embedding), nn.Linear(embedding, rank))
        self.head_child = nn.Linear(embedding, self.symbols)
        self.other_child = nn.Linear(embedding, 2 * self.symbols)
        self.word_network = WordNetwork(embedding, words)
        initialise(self, "xavier-uniform")
        multiply_weights(
            [self.start[-1], self.component[-1], self.head_child, self.other_child, self.word_network.layer], gain
        )

    def emission(self, word_ids: Tensor) -> Tensor:
        """(..., n + r) log p(w | A) of the head word of a sentence, then log p(w | H)."""
        found: Tensor = self.word_network(torch.cat([self.nonterminal_embedding, self.component_embedding]), word_ids)
        return found

    def components(self, word_ids: Tensor) -> Tensor:
        """(u, n, r) log p(H | A, w) of words (u,)."""
        words: Tensor = self.word_embedding(word_ids)
        pairs: Tensor = self.pair(words, self.nonterminal_embedding).relu_() + words[:, None]
        logits: Tensor = self.component(pairs)
        return logits.log_softmax(-1)

    def rules(self) -> tuple[Tensor, Tensor, Tensor]:
        """(n,) log p(A), (m, r) log p(B | H), (2, m, r) log p(C, D | H)."""
        root: Tensor = self.start(self.start_embedding, None)
        head_child = self.head_child(self.component_embedding).log_softmax(-1).T
        other_child = self.other_child(self.component_embedding).log_softmax(-1).T
        return root.squeeze(0).log_softmax(-1), head_child, other_child.unflatten(0, (2, self.symbols))

    def distribution(self, word_ids: Tensor, lengths: Tensor, emission: Tensor) -> BilexicalPCFG:
        """See `LexicalisedGrammar`."""
        root, head_child, other_child = self.rules()
        root_words, words = emission.split([self.nonterminals, emission.shape[-1] - self.nonterminals], -1)
        components = map_distinct_words(word_ids, self.components)
        return BilexicalPCFG(root, root_words, components, head_child, other_child, words, lengths)

    def run_networks(self, word_ids: Tensor) -> None:
        """See `LexicalisedGrammar`; the softmax over words is that over the whole vocabulary, for any words."""
        self.rules(), self.components(word_ids), self.emission(word_ids[:0])

    def chart_flop(self, length: int) -> float:
        """As in structures/lexicalised/README.md: the sums over splits, and s, `head` and `closed`."""
        assert self.rank is not None
        rows = length * (length + 1) * (length + 2) / 6
        heads_of_splits = (length**2 - 1) * length * (length + 2) / 12
        return self.rank * (2 * heads_of_splits + 6 * self.nonterminals * rows)

    def numbers_per_sentence(self, length: int) -> int:
        """Three rows of r numbers for every span and head (structures/lexicalised/README.md), and p(H | A, w)."""
        assert self.rank is not None
        rows = length * (length + 1) * (length + 2) // 6
        r = padded_size(self.rank, torch.float32)
        return rows * (3 * r + 3 * self.nonterminals) + 2 * length * self.nonterminals * r

    def expected_seconds(self, length: int) -> float:
        """Estimate, measured on one core with 40 words: 3 ns for each H of the N^4 / 12 heads of all splits."""
        assert self.rank is not None
        return 3e-9 * length**4 / 12 * self.rank

    @torch.no_grad()
    def start_log_probabilities(self) -> tuple[Tensor, Tensor]:
        """(n,) log p(A) and (q, n) log p(w | A)."""
        every = torch.arange(self.words, device=self.device)
        return self.rules()[0], self.emission(every)[:, : self.nonterminals]

    @torch.no_grad()
    def rule_sampler(self) -> Callable[[int, int, np.random.Generator], RuleDrawn]:
        """A function that draws a rule below a nonterminal with its head word, by drawing H first."""
        _, head_child, other_child = self.rules()
        words = cumulative(self.emission(torch.arange(self.words, device=self.device))[:, self.nonterminals :].T)
        heads, others = cumulative(head_child.T), cumulative(other_child.flatten(0, 1).T)

        @lru_cache(CACHE_SIZE)
        @torch.no_grad()
        def components(word: int) -> NDArray[np.float64]:
            return cumulative(self.components(torch.tensor([word], device=self.device))[0])

        def rule(parent: int, word: int, rng: np.random.Generator) -> RuleDrawn:
            h = draw(components(word)[parent], rng)
            side, other = divmod(draw(others[h], rng), self.symbols)
            return draw(heads[h], rng), other, side, draw(words[h], rng)

        return rule
