"""What every low-rank grammar has in common, and the same grammar with its numbers worked out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ramify.inference.rules import LowRankRules


class SharedRules(NamedTuple):
    """The rules that do not depend on the words, as log-probabilities; names as in `LowRankRules`."""

    root: Tensor
    head: Tensor
    left: Tensor
    right: Tensor


class LowRankGrammar(nn.Module, ABC):
    """A network that makes the rules of a batch."""

    def __init__(self, nonterminals: int, preterminals: int, rank: int, words: int) -> None:
        super().__init__()
        sizes = {"nonterminals": nonterminals, "preterminals": preterminals, "rank": rank, "words": words}
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"a grammar needs at least one of its {name}, not {size}")
        self.nonterminals, self.preterminals = nonterminals, preterminals
        self.rank, self.words = rank, words

    @abstractmethod
    def shared_rules(self) -> SharedRules:
        """Start and binary rules."""

    @abstractmethod
    def emission(self, word_ids: Tensor) -> Tensor:
        """log p(T -> w) (..., p) of the words given by their numbers (...)."""

    def rules(self, word_ids: Tensor, lengths: Tensor) -> LowRankRules:
        """The rules for a batch of sentences (B, N), padded with any valid word number."""
        return LowRankRules(*self.shared_rules(), self.emission(word_ids), lengths)

    @torch.no_grad()
    def tabulated(self) -> TableGrammar:
        """The same grammar with every probability worked out once: what a parser runs on."""
        device = next(self.parameters()).device
        return TableGrammar(self.shared_rules(), self.emission(torch.arange(self.words, device=device)))


class TableGrammar(LowRankGrammar):
    """A grammar given by its log-probabilities."""

    def __init__(self, shared: SharedRules, emission: Tensor) -> None:
        words, preterminals = emission.shape
        nonterminals, rank = shared.head.shape
        super().__init__(nonterminals, preterminals, rank, words)
        for name, table in (*shared._asdict().items(), ("emission_table", emission)):
            self.register_buffer(name, table.detach())

    root: Tensor
    head: Tensor
    left: Tensor
    right: Tensor
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
        """Any grammar in Chomsky normal form, exactly: one rank component a rule.

        `binary` holds (A, B, C, p(A -> B C)) with children numbered as in `LowRankRules`, `lexical` (T, w,
        p(T -> w)). U carries the probabilities, V and W say which children component l has.
        """
        d = len(binary)
        root, head = torch.zeros(nonterminals, dtype=dtype), torch.zeros(nonterminals, d, dtype=dtype)
        left = torch.zeros(nonterminals + preterminals, d, dtype=dtype)
        right, emission = torch.zeros_like(left), torch.zeros(words, preterminals, dtype=dtype)
        for symbol, probability in start.items():
            root[symbol] = probability
        for component, (parent, left_child, right_child, probability) in enumerate(binary):
            head[parent, component] = probability
            left[left_child, component] = right[right_child, component] = 1
        for tag, word, probability in lexical:
            emission[word, tag] = probability
        return cls(SharedRules(root.log(), head.log(), left.log(), right.log()), emission.log())

    def shared_rules(self) -> SharedRules:
        """Start and binary rules."""
        return SharedRules(self.root, self.head, self.left, self.right)

    def emission(self, word_ids: Tensor) -> Tensor:
        """log p(T -> w) (..., p) of the words given by their numbers (...)."""
        return nn.functional.embedding(word_ids, self.emission_table)

    def tabulated(self) -> TableGrammar:
        """Itself."""
        return self
