"""The base class of lexicalised grammars: symbols with head words, and a table of words for parsing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from ramify.models.emission import word_log_probabilities
from ramify.models.generative import GenerativeModel
from ramify.models.grammar import LARGEST_TABLE
from ramify.models.networks import SymbolLayer, SymbolNetwork, state_network
from ramify.structures.lexicalised import LexicalisedPCFG

RuleDrawn = tuple[int, int, int, int]
"""Symbol of the head child, symbol of the other child, its side, its head word"""


class LexicalisedGrammar(GenerativeModel):
    """A network that computes the lexicalised rules of a batch from embeddings of symbols and of words."""

    allows_dropout = False
    states: int
    """k, the number of distributions over words"""

    def __init__(self, nonterminals: int, preterminals: int, rank: int | None, words: int) -> None:
        super().__init__(nonterminals, preterminals, rank, words)
        self.symbols = nonterminals + preterminals

    @abstractmethod
    def emission(self, word_ids: Tensor) -> Tensor:
        """(..., k) log-probabilities of the words given by their numbers (...), under each distribution over words."""

    @abstractmethod
    def distribution(self, word_ids: Tensor, lengths: Tensor, emission: Tensor) -> LexicalisedPCFG:
        """The distribution over the trees of sentences (B, N), given log-probabilities of their words (B, N, k)."""

    @abstractmethod
    def rule_sampler(self) -> Callable[[int, int, np.random.Generator], RuleDrawn]:
        """A function that draws a rule below a nonterminal with its head word."""

    @abstractmethod
    def run_networks(self, word_ids: Tensor) -> None:
        """Compute everything for a batch of different words (u,) that precedes its charts, to measure it."""

    @abstractmethod
    def chart_flop(self, length: int) -> float:
        """Floating-point operations of one inside pass over a sentence."""

    @abstractmethod
    def start_log_probabilities(self) -> tuple[Tensor, Tensor]:
        """(n,) log p(A) and (q, n) log p(w | A)."""

    def with_cost(
        self,
        word_ids: Tensor,
        lengths: Tensor,
        noise: torch.Generator | None = None,  # noqa: ARG002
    ) -> tuple[LexicalisedPCFG, Tensor]:
        """The distribution over the trees of sentences (B, N), and zeros (B,): log p(w) is exact."""
        distribution = self.distribution(word_ids, lengths, self.emission(word_ids))
        return distribution, torch.zeros(len(word_ids), device=word_ids.device)

    def for_parsing(self) -> GenerativeModel:
        """The grammar with the probabilities of all words under every state computed once, unless they are too large.

        Tables that depend on head words are computed for the words of each batch: for all words they would be far
        larger.
        """
        return self if self.states * self.words > LARGEST_TABLE else WithWordTable(self)

    @property
    def table_numbers(self) -> int:
        """Numbers of the table of words that parsing keeps."""
        return min(self.states * self.words, LARGEST_TABLE)


class WithWordTable(LexicalisedGrammar):
    """A lexicalised grammar with a table of its words."""

    emission_table: Tensor
    """(q, k)"""

    @torch.no_grad()
    def __init__(self, grammar: LexicalisedGrammar) -> None:
        super().__init__(grammar.nonterminals, grammar.preterminals, grammar.rank, grammar.words)
        self.grammar, self.states = grammar, grammar.states
        self.register_buffer("emission_table", grammar.emission(torch.arange(grammar.words, device=grammar.device)))

    def emission(self, word_ids: Tensor) -> Tensor:
        """See `LexicalisedGrammar`."""
        return nn.functional.embedding(word_ids, self.emission_table)

    def distribution(self, word_ids: Tensor, lengths: Tensor, emission: Tensor) -> LexicalisedPCFG:
        """See `LexicalisedGrammar`."""
        return self.grammar.distribution(word_ids, lengths, emission)

    def rule_sampler(self) -> Callable[[int, int, np.random.Generator], RuleDrawn]:
        """See `LexicalisedGrammar`."""
        return self.grammar.rule_sampler()

    def start_log_probabilities(self) -> tuple[Tensor, Tensor]:
        """See `LexicalisedGrammar`."""
        return self.grammar.start_log_probabilities()

    def run_networks(self, word_ids: Tensor) -> None:
        """See `LexicalisedGrammar`."""
        self.grammar.run_networks(word_ids)

    def chart_flop(self, length: int) -> float:
        """See `LexicalisedGrammar`."""
        return self.grammar.chart_flop(length)

    def for_parsing(self) -> GenerativeModel:
        """Itself."""
        return self

    def numbers_per_sentence(self, length: int) -> int:
        """See `Model`."""
        return self.grammar.numbers_per_sentence(length)

    def expected_seconds(self, length: int) -> float:
        """See `Model`."""
        return self.grammar.expected_seconds(length)


class WordNetwork(nn.Module):
    """p(w | X) of symbols or components X, with the network of TN-PCFG for the words of preterminals."""

    def __init__(self, embedding: int, words: int) -> None:
        super().__init__()
        self.encoder = SymbolNetwork(*state_network(embedding))
        self.layer = nn.Linear(embedding, words)

    def forward(self, embeddings: Tensor, word_ids: Tensor) -> Tensor:
        """(..., k) log-probabilities of the words (...) for embeddings (k, e)."""
        return word_log_probabilities(self.encoder(embeddings, None), self.layer.weight, self.layer.bias, word_ids)


def start_network(embedding: int, nonterminals: int) -> SymbolNetwork:
    """From the embedding of the start symbol to the logits of p(A), as in TN-PCFG."""
    return SymbolNetwork(*state_network(embedding), nn.Linear(embedding, nonterminals))


class PairLayer(nn.Module):
    """W [w; A] for every pair of a word and a symbol, as a sum of two products, each computed only once."""

    def __init__(self, embedding: int, size: int) -> None:
        super().__init__()
        self.of_word = SymbolLayer(embedding, 0, size)
        self.of_symbol = nn.Linear(embedding, size, bias=False)

    def forward(self, words: Tensor, symbols: Tensor) -> Tensor:
        """(u, k, size) from words (u, e) and symbols (k, e)."""
        result: Tensor = self.of_word(words, None)[:, None] + self.of_symbol(symbols)
        return result


def map_distinct_words(word_ids: Tensor, made: Callable[[Tensor], Tensor]) -> Tensor:
    """(B, N, ...) the results (u, ...) of a function of different words (u,), at the places of words (B, N)."""
    different, places = word_ids.unique(return_inverse=True)
    return made(different)[places]
