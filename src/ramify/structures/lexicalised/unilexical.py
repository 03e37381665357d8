"""Lexicalised rules that depend only on the parent's head word (Zhu, Bisk and Neubig 2020, NL-PCFG)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from ramify.structures.derivations import KBest
from ramify.structures.distribution import Tree
from ramify.structures.lexicalised.distribution import LEFT, RIGHT, LexicalisedPCFG
from ramify.structures.lexicalised.forest import UnilexicalForest
from ramify.structures.log_space import BEST, SUM, Semiring, log, log_matmul

MIN_SAFE_LOG = -600.0
"""Rules above this log-probability are multiplied as probabilities: none of them underflows in float64."""


@dataclass(frozen=True)
class UnilexicalPCFG(LexicalisedPCFG):
    """p(A[p] -> B[p] C[q]) = p(B, C, D | A, w_p) p(w_q | C): a dependent word is given by its symbol alone."""

    root: Tensor
    """(n,) log p(A)"""
    rules: Tensor
    """(B, N, n, 2, m, m) log p(B, C, D | A, w_p): side D of the other child, head child B, other child C"""
    words: Tensor
    """(B, N, m) log p(w_q | C), of the head word of the whole sentence too"""
    lengths: Tensor
    """(B,) number of words of each sentence"""
    span_scores: Tensor | None = None
    """(B, N+1, N+1) added to the log-weight of every tree with the span; None for zeros"""

    def __post_init__(self) -> None:
        (B, N, m), n = self.words.shape, self.nonterminals
        self.check_shapes(len(self.words), {"rules": (B, N, n, 2, m, m)})

    @property
    def preterminals(self) -> int:
        """p, the number of preterminals."""
        return self.words.shape[-1] - self.nonterminals

    @property
    def batched(self) -> frozenset[str]:
        """The fields with a leading batch dimension; the others are shared by all sentences."""
        return frozenset({"rules", "words", "lengths", "span_scores"})

    def start(self) -> Tensor:
        """(B, N, n)"""
        return self.root + self.words[..., : self.nonterminals]

    def with_any_word(self, places: Tensor) -> Self:
        """See `LexicalisedPCFG`: the probabilities of all words of a symbol add up to one."""
        return self.replace(words=self.words.masked_fill(places.to(self.words.device)[..., None], 0.0))

    @property
    def other_size(self) -> int:
        """m, as the other child is known by its symbol."""
        return self.words.shape[-1]

    def _forest(self, semiring: Semiring) -> UnilexicalForest:
        return UnilexicalForest(self, semiring)

    def top_k(self, k: int) -> list[list[Tree]]:
        """The k heaviest trees of each sentence, best first; fewer where there are fewer."""
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        return [KBest(self.sentence(b).forest(BEST), k).trees() for b in range(len(self))]

    def as_heads(self, symbols: Tensor, numbers: slice, semiring: Semiring) -> Tensor:  # noqa: ARG002
        """(..., m): phrases are impossible where there is a word, and words where there is a phrase."""
        n, m = self.nonterminals, self.other_size
        missing = symbols.new_full((*symbols.shape[:-1], m - symbols.shape[-1]), -torch.inf)
        return torch.cat([missing, symbols] if numbers.start == n else [symbols, missing], -1)

    def as_others(self, symbols: Tensor, numbers: slice, words: Tensor, semiring: Semiring) -> Tensor:
        """(..., 2, m), the same on both sides."""
        closed = self.as_heads(symbols, numbers, semiring) + words
        return closed.unsqueeze(-2).expand(*closed.shape[:-1], 2, -1)

    def prepared(self) -> Tensor | None:
        """(B, N, n, 2 m m) the rules as probabilities; None where some would underflow."""
        finite = self.rules.detach()[self.rules.detach() > -torch.inf]
        least = MIN_SAFE_LOG if self.rules.dtype == torch.float64 else MIN_SAFE_LOG / 8
        return self.rules.flatten(3).exp() if not len(finite) or float(finite.min()) > least else None

    def joined(
        self, heads: Sequence[Tensor], others: Sequence[Tensor], semiring: Semiring, prepared: Tensor | None = None
    ) -> Tensor:
        """(B, starts, w, n)"""
        starts, width = heads[0].shape[1:3]
        offsets = torch.arange(width, device=heads[0].device)
        sides = []
        for side in (LEFT, RIGHT):
            beside = [
                other.masked_fill(((offsets < v) != (side == RIGHT))[:, None], -torch.inf)
                for v, other in enumerate(others, 1)
            ]
            sides.append(_pairs(heads, beside, semiring))
        pairs = torch.stack(sides, 3).flatten(3)  # (B, starts, w, 2 m m)
        found = [self._parents(pairs[:, :, o], slice(o, o + starts), semiring, prepared) for o in range(width)]
        return torch.stack(found, 2)

    def _parents(self, pairs: Tensor, heads: slice, semiring: Semiring, probabilities: Tensor | None) -> Tensor:
        """(B, starts, n) the parents of children (B, starts, 2 m m), for spans with these heads."""
        if semiring is not SUM:
            return semiring.add(pairs.unsqueeze(-2) + self.rules[:, heads].flatten(3), -1)
        if probabilities is None:
            return log_matmul(pairs.unsqueeze(-2), self.rules[:, heads].flatten(3).mT).squeeze(-2)
        peak = pairs.detach().amax(-1, keepdim=True)
        peak = torch.where(peak.isinf(), 0, peak)
        return log((probabilities[:, heads] @ (pairs - peak).exp().unsqueeze(-1)).squeeze(-1)) + peak

    def log_rules(self, parents: Tensor, rules: Tensor) -> Tensor:
        """(k,)"""
        (a, p), (b, c, q, side) = parents.T, rules.T
        return self.rules[0, p, a, side, b, c] + self.words[0, q, c]


def _pairs(heads: Sequence[Tensor], others: Sequence[Tensor], semiring: Semiring) -> Tensor:
    """(B, starts, w, m, m): head child times other child, over all splits."""
    if semiring is SUM:
        return log_matmul(torch.stack(list(heads), -1), torch.stack(list(others), -2))
    total: Any = None
    for head, other in zip(heads, others, strict=True):  # one split at a time, as all would be too large
        found = head.unsqueeze(-1) + other.unsqueeze(-2)
        total = found if total is None else torch.maximum(total, found)
    result: Tensor = total
    return result
