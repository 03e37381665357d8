"""The base class of PCFGs, and a grammar as tables of probabilities."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from ramify.models.compound import SentenceEncoder
from ramify.models.generative import GenerativeModel
from ramify.structures.dense import DenseRules
from ramify.structures.low_rank import LowRankRules, working_bytes
from ramify.structures.pcfg import PCFG, Rules

LARGEST_TABLE = 2**28
"""Maximum number of word probabilities that parsing keeps (1 GB); larger tables are computed when needed."""


class Grammar(GenerativeModel):
    """A PCFG: a network that computes the rules of a batch.

    Called with sentences, it returns their distribution over labelled trees. A compound grammar (Kim, Dyer and Rush
    2019) computes separate rules for every sentence from a vector z of size `latent`, whose distribution given the
    words is predicted by an encoder; its log p(w) is a lower bound.
    """

    def __init__(self, nonterminals: int, preterminals: int, rank: int | None, words: int, latent: int = 0) -> None:
        super().__init__(nonterminals, preterminals, rank, words)
        self.latent = latent
        self.encoder = SentenceEncoder(words, latent) if latent else None

    @abstractmethod
    def rules(self, z: Tensor | None = None) -> Rules:
        """Start and binary rules; with z (B, latent) one set for each sentence."""

    @abstractmethod
    def emission(self, word_ids: Tensor, z: Tensor | None = None) -> Tensor:
        """log p(T -> w) (..., p) of the words given by their numbers (...); with z (B, latent) those are (B, N)."""

    def forward(self, word_ids: Tensor, lengths: Tensor) -> PCFG:
        """The distribution over the trees of sentences (B, N), padded with any valid word number.

        A compound grammar uses the rules at the mean of z.
        """
        return self.with_cost(word_ids, lengths)[0]

    def with_cost(self, word_ids: Tensor, lengths: Tensor, noise: torch.Generator | None = None) -> tuple[PCFG, Tensor]:
        """The distribution over the trees of sentences (B, N), and (B,) a term to subtract from log p(w).

        The term is zero or, for a compound grammar, the divergence of the distribution of z from its prior. z is the
        mean or, with `noise`, a sample.
        """
        if self.encoder is None:
            z, cost = None, torch.zeros(len(word_ids), device=word_ids.device)
        else:
            z, cost = self.encoder(word_ids, lengths, noise)
        return self.distribution_at(z, word_ids, lengths), cost

    def distribution_at(self, z: Tensor | None, word_ids: Tensor, lengths: Tensor) -> PCFG:
        """The distribution over the trees of sentences (B, N), with rules from z (B, latent) if it is compound."""
        return self.rules(z).with_words(self.emission(word_ids, z), lengths)

    def thinned(self, distribution: PCFG, dropout: float, noise: torch.Generator) -> PCFG:
        """The distribution without this share of the symbols."""
        kept = (sample_symbols(count, dropout, noise) for count in (self.nonterminals, self.preterminals))
        return distribution.restrict(*kept)

    def draws(self) -> bool:
        """Whether a training step needs noise even without dropout."""
        return bool(self.latent)

    @torch.no_grad()
    def tabulated(self, z: Tensor | None = None) -> TableGrammar:
        """The same grammar with every probability computed; a compound one with the rules at z (1, latent), or 0."""
        all_words = torch.arange(self.words, device=self.device)
        if not self.latent:
            return TableGrammar(self.rules(), self.emission(all_words))
        z = torch.zeros(1, self.latent, device=all_words.device) if z is None else z
        return TableGrammar(self.rules(z).of_sentence(0), self.emission(all_words[None], z)[0])

    def for_parsing(self) -> Grammar:
        """The grammar with every probability computed once, unless every sentence has separate rules.

        If the table of words would be too large, it is the grammar itself, which computes what a batch needs in blocks.
        """
        too_large = self.preterminals * self.words > LARGEST_TABLE
        return self if self.latent or too_large else self.tabulated()

    @property
    def rule_numbers(self) -> int:
        """The number of its binary rules."""
        n, m = self.nonterminals, self.nonterminals + self.preterminals
        return n * m * m if self.rank is None else (2 * m + (0 if self.is_simple else n)) * self.rank

    @property
    def table_numbers(self) -> int:
        """Numbers of the rules, and of the table of words that parsing keeps."""
        return self.rule_numbers + min(self.preterminals * self.words, LARGEST_TABLE)

    def numbers_per_sentence(self, length: int) -> int:
        """Estimate for the inside and outside passes and, for a compound grammar, the rules of the sentence."""
        n = self.nonterminals
        per_span = n * n + 6 * n if self.rank is None else 6 * self.rank + 3 * n
        return length * (length + 1) // 2 * per_span + (self.rule_numbers if self.latent else 0)

    def working_bytes(self, lengths: Sequence[int]) -> int:
        """Exact for low-rank rules; the sentences of a core use the same charts one after another."""
        if self.rank is None or self.latent:
            return super().working_bytes(lengths)
        return working_bytes(self.nonterminals, self.preterminals, self.rank, lengths)

    def expected_seconds(self, length: int) -> float:
        """Estimate based on measurements on one core with 30 to 250 nonterminals and 200 words.

        2 ns for each of the N^3 / 6 splits times d (low-rank) or n^2 (dense), which take nearly all of the time for
        long sentences.
        """
        per_split = self.nonterminals**2 if self.rank is None else self.rank
        return 2e-9 * length**3 / 6 * per_split


def sample_symbols(count: int, rate: float, noise: torch.Generator) -> Tensor:
    """The numbers of the kept symbols, in order: each is dropped with probability `rate`, but never all of them."""
    chances = torch.rand(count, generator=noise)
    kept = chances >= rate
    kept[chances.argmax()] = True
    return kept.nonzero()[:, 0]


class TableGrammar(Grammar):
    """A grammar given by its log-probabilities."""

    def __init__(self, rules: Rules, emission: Tensor) -> None:
        words, preterminals = emission.shape
        super().__init__(rules.nonterminals, preterminals, rules.rank, words)
        self._kind = type(rules)
        self.is_simple = rules.is_simple
        for name in rules.rule_names():
            table = getattr(rules, name)
            self.register_buffer(name, None if table is None else table.detach())
        self.register_buffer("emission_table", emission.detach())

    emission_table: Tensor
    """(q, p)"""

    @classmethod
    def from_binary_rules(
        cls,
        start: Mapping[int, float],
        binary: Sequence[tuple[int, int, int, float]],
        lexical: Sequence[tuple[int, int, float]],
        *,
        nonterminals: int,
        preterminals: int,
        words: int,
        dtype: torch.dtype = torch.float64,
    ) -> TableGrammar:
        """Any grammar in Chomsky normal form, exactly: one rank component per rule, or dense where that is smaller.

        `binary` contains (A, B, C, p(A -> B C)) with children numbered as in `LowRankRules`, `lexical` (T, w,
        p(T -> w)). U contains the probabilities; V and W give the children of component l.
        """
        d, m = len(binary), nonterminals + preterminals

        def table(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=dtype)

        root, emission = table(nonterminals), table(words, preterminals)
        for symbol, probability in start.items():
            root[symbol] = probability
        *places, probabilities = _columns(lexical)
        emission[places[1], places[0]] = probabilities.to(dtype)
        parents, lefts, rights, probabilities = _columns(binary)
        if d > m * m:
            tensor = table(nonterminals, m, m)
            tensor[parents, lefts, rights] = probabilities.to(dtype)
            return cls(DenseRules(root.log(), tensor.log()), emission.log())
        head, left, right, component = table(nonterminals, d), table(m, d), table(m, d), torch.arange(d)
        head[parents, component] = probabilities.to(dtype)
        left[lefts, component] = right[rights, component] = 1
        return cls(LowRankRules(root.log(), head.log(), left.log(), right.log()), emission.log())

    def rules(self, z: Tensor | None = None) -> Rules:  # noqa: ARG002
        """Start and binary rules."""
        return self._kind(*(getattr(self, name) for name in self._kind.rule_names()))

    def emission(self, word_ids: Tensor, z: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """log p(T -> w) (..., p) of the words given by their numbers (...)."""
        return nn.functional.embedding(word_ids, self.emission_table)

    def tabulated(self, z: Tensor | None = None) -> TableGrammar:  # noqa: ARG002
        """The grammar itself."""
        return self


def _columns(rules: Sequence[tuple[float, ...]]) -> list[Tensor]:
    """Symbols and probabilities of rules, whose last item is the probability."""
    *symbols, probabilities = zip(*rules, strict=True)
    return [*map(torch.tensor, symbols), torch.tensor(probabilities, dtype=torch.float64)]
