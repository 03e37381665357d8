"""What every grammar has in common, and the same grammar with its numbers worked out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ramify.grammars.compound import SentenceEncoder
from ramify.inference.rules import DenseRules, LowRankRules, Rules

LARGEST_TABLE = 2**28
"""So many word probabilities (1 GB) are kept for parsing; more are made when they are needed."""


class SharedRules(NamedTuple):
    """Low-rank rules without the words, as log-probabilities; names as in `LowRankRules`."""

    root: Tensor
    head: Tensor | None
    left: Tensor
    right: Tensor

    def with_words(self, words: Tensor, lengths: Tensor) -> LowRankRules:
        """The rules of a batch with its words (B, N, p)."""
        return LowRankRules(*self, words, lengths)

    def components_of(self, parent: int) -> tuple[Tensor, Tensor]:
        """(m, k) log U[A] V and (m, k) log W, of the k components that nonterminal A has: all of them, or its own."""
        if self.head is None:
            return self.left[:, [parent]], self.right[:, [parent]]
        return self.left + self.head[parent], self.right


class SharedDenseRules(NamedTuple):
    """Dense rules without the words, as log-probabilities; names as in `DenseRules`."""

    root: Tensor
    binary: Tensor

    def with_words(self, words: Tensor, lengths: Tensor) -> DenseRules:
        """The rules of a batch with its words (B, N, p)."""
        return DenseRules(*self, words, lengths)


def only_set(shared: SharedRules | SharedDenseRules) -> SharedRules | SharedDenseRules:
    """Rules that were made for one sentence, without the dimension for several."""
    return type(shared)(*(None if table is None else table[0] for table in shared))  # type: ignore[arg-type]


class Grammar(nn.Module, ABC):
    """A network that makes the rules of a batch.

    A compound grammar (Kim, Dyer and Rush 2019) makes every sentence its own rules from a vector z of size `latent`,
    of which an encoder knows the distribution given the words; its log p(w) is a lower bound.
    """

    is_simple = False
    """Whether every nonterminal is a rank component of its own (`LowRankRules` without a head)"""

    def __init__(self, nonterminals: int, preterminals: int, rank: int | None, words: int, latent: int = 0) -> None:
        super().__init__()
        sizes = {"nonterminals": nonterminals, "preterminals": preterminals, "rank": rank, "words": words}
        for name, size in sizes.items():
            if size is not None and size < 1:
                raise ValueError(f"a grammar needs at least one of its {name}, not {size}")
        self.nonterminals, self.preterminals = nonterminals, preterminals
        self.rank, self.words = rank, words
        self.latent = latent
        self.encoder = SentenceEncoder(words, latent) if latent else None

    @abstractmethod
    def shared_rules(self, z: Tensor | None = None) -> SharedRules | SharedDenseRules:
        """Start and binary rules; with z (B, latent) one set for each sentence."""

    @abstractmethod
    def emission(self, word_ids: Tensor, z: Tensor | None = None) -> Tensor:
        """log p(T -> w) (..., p) of the words given by their numbers (...); with z (B, latent) those are (B, N)."""

    def given(self, word_ids: Tensor, lengths: Tensor, noise: torch.Generator | None = None) -> tuple[Rules, Tensor]:
        """The rules for a batch of sentences (B, N), padded with any valid word number, and what they cost (B,).

        The cost is to be subtracted from log p(w): zero, or of a compound grammar the divergence of z's distribution
        from its prior. There z is the mean, or a sample if there is `noise` to draw it with.
        """
        if self.encoder is None:
            z, cost = None, torch.zeros(len(word_ids), device=word_ids.device)
        else:
            z, cost = self.encoder(word_ids, lengths, noise)
        return self.rules_at(z, word_ids, lengths), cost

    def rules_at(self, z: Tensor | None, word_ids: Tensor, lengths: Tensor) -> Rules:
        """The rules for a batch of sentences (B, N), made from z (B, latent) where the grammar is compound."""
        return self.shared_rules(z).with_words(self.emission(word_ids, z), lengths)

    def rules(self, word_ids: Tensor, lengths: Tensor) -> Rules:
        """The rules for a batch of sentences (B, N), padded with any valid word number."""
        return self.given(word_ids, lengths)[0]

    @torch.no_grad()
    def tabulated(self, z: Tensor | None = None) -> TableGrammar:
        """The same grammar with every probability worked out; of a compound one the rules at z (1, latent), or 0."""
        all_words = torch.arange(self.words, device=next(self.parameters()).device)
        if not self.latent:
            return TableGrammar(self.shared_rules(), self.emission(all_words))
        z = torch.zeros(1, self.latent, device=all_words.device) if z is None else z
        return TableGrammar(only_set(self.shared_rules(z)), self.emission(all_words[None], z)[0])

    def worked_out(self) -> Grammar:
        """What to parse with: the grammar with every probability worked out once, unless every sentence has its own.

        Where the table of words would be too large, the grammar itself, which makes what a batch needs in blocks.
        """
        too_large = self.preterminals * self.words > LARGEST_TABLE
        return self if self.latent or too_large else self.tabulated()

    @property
    def rule_numbers(self) -> int:
        """How many numbers its binary rules are."""
        n, m = self.nonterminals, self.nonterminals + self.preterminals
        return n * m * m if self.rank is None else (2 * m + (0 if self.is_simple else n)) * self.rank

    @property
    def numbers_a_span(self) -> int:
        """Roughly what inside and outside passes keep for each span."""
        n = self.nonterminals
        return n * n + 6 * n if self.rank is None else 6 * self.rank + 3 * n

    @property
    def numbers_a_sentence(self) -> int:
        """What each sentence has for itself besides: of a compound grammar all rules."""
        return self.rule_numbers if self.latent else 0


class TableGrammar(Grammar):
    """A grammar given by its log-probabilities."""

    def __init__(self, shared: SharedRules | SharedDenseRules, emission: Tensor) -> None:
        words, preterminals = emission.shape
        rank = shared.left.shape[-1] if isinstance(shared, SharedRules) else None
        super().__init__(shared.root.shape[-1], preterminals, rank, words)
        self._kind = type(shared)
        self.is_simple = isinstance(shared, SharedRules) and shared.head is None
        for name, table in (*shared._asdict().items(), ("emission_table", emission)):
            self.register_buffer(name, None if table is None else table.detach())

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
        """Any grammar in Chomsky normal form, exactly: one rank component a rule, or written out if that is less.

        `binary` holds (A, B, C, p(A -> B C)) with children numbered as in `LowRankRules`, `lexical` (T, w,
        p(T -> w)). U carries the probabilities, V and W say which children component l has.
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
            return cls(SharedDenseRules(root.log(), tensor.log()), emission.log())
        head, left, right, component = table(nonterminals, d), table(m, d), table(m, d), torch.arange(d)
        head[parents, component] = probabilities.to(dtype)
        left[lefts, component] = right[rights, component] = 1
        return cls(SharedRules(root.log(), head.log(), left.log(), right.log()), emission.log())

    def shared_rules(self, z: Tensor | None = None) -> SharedRules | SharedDenseRules:  # noqa: ARG002
        """Start and binary rules."""
        return self._kind(*(getattr(self, name) for name in self._kind._fields))

    def emission(self, word_ids: Tensor, z: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """log p(T -> w) (..., p) of the words given by their numbers (...)."""
        return nn.functional.embedding(word_ids, self.emission_table)

    def tabulated(self, z: Tensor | None = None) -> TableGrammar:  # noqa: ARG002
        """Itself."""
        return self


def _columns(rules: Sequence[tuple[float, ...]]) -> list[Tensor]:
    """Symbols and probabilities of rules that end with their probability."""
    *symbols, probabilities = zip(*rules, strict=True)
    return [*map(torch.tensor, symbols), torch.tensor(probabilities, dtype=torch.float64)]
