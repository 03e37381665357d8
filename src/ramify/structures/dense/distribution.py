"""PCFGs with dense rule tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ramify.structures.log_space import Semiring
from ramify.structures.pcfg import PCFG, Rule, Rules, cumulative, draw, renormalised, rules_at

if TYPE_CHECKING:
    from ramify.structures.dense.forest import DenseForest


@dataclass(frozen=True)
class DenseRules(Rules):
    """The dense rule tensor, as log-probabilities."""

    binary: Tensor
    """(n, m, m) log p(A -> B C)"""

    def with_words(self, words: Tensor, lengths: Tensor) -> DensePCFG:
        """The distribution over the trees of a batch, given log p(T -> w) of its words (B, N, p)."""
        return DensePCFG(self.root, self.binary, words, lengths)

    def binary_of(self, parent: int) -> Tensor:
        """(m, m) p(A -> B C) of one nonterminal, in float64."""
        return self.binary[parent].double().exp()

    def expected_children(self) -> Tensor:
        """(n, m) the expected number of children of each nonterminal with each symbol, in float64."""
        pairs = (binary.double().exp() for binary in self.binary)
        return torch.stack([matrix.sum(0) + matrix.sum(1) for matrix in pairs])

    @torch.no_grad()
    def strongest(
        self,
        parent: int,
        count: int = 10,
        weights: Tensor | None = None,
        block: int = 128,  # noqa: ARG002
    ) -> list[Rule]:
        """The most probable rules of one nonterminal, best first; `weights` (m,) are those of the children."""
        binary = self.binary[parent]
        if weights is not None:
            log_weights = weights.to(binary).log()
            binary = binary + log_weights[:, None] + log_weights
        top = binary.flatten().topk(min(count, binary.numel()))
        return rules_at(parent, top.values.exp(), top.indices, len(binary))

    @torch.no_grad()
    def child_sampler(self) -> Callable[[int, np.random.Generator], tuple[int, int]]:
        """A function that draws the two children of a nonterminal."""
        running, m = cumulative(self.binary.flatten(1)), self.binary.shape[-1]
        return lambda parent, rng: divmod(draw(running[parent], rng), m)

    def sums(self) -> dict[str, Tensor]:
        """The sums of each set of probabilities; in a proper grammar all are one."""
        return {
            "start rules": self.root.double().exp().sum(),
            "binary rules": self.binary.exp().sum((1, 2), dtype=torch.float64),
        }

    def restricted_rules(self, nonterminals: Tensor, preterminals: Tensor) -> dict[str, Any]:
        """The tables with only these symbols, given by number; each distribution is renormalised."""
        children = torch.cat([nonterminals, self.nonterminals + preterminals])
        binary = self.binary.index_select(-3, nonterminals).index_select(-2, children).index_select(-1, children)
        return {
            "root": renormalised(self.root.index_select(-1, nonterminals), -1),
            "binary": renormalised(binary, -2, -1),
        }


@dataclass(frozen=True)
class DensePCFG(DenseRules, PCFG):
    """A batch of sentences under dense rules."""

    words: Tensor
    """(B, N, p) log p(T -> w); entries after the end of a sentence are ignored"""
    lengths: Tensor
    """(B,) number of words of each sentence"""
    span_scores: Tensor | None = None
    """(B, N+1, N+1) added to the log-weight of every tree with the span; None for zeros"""

    def __post_init__(self) -> None:
        n, m = self.nonterminals, self.nonterminals + self.preterminals
        self._check({"root": (n,), "binary": (n, m, m)})

    def symbol_posteriors(self) -> tuple[Tensor, Tensor]:
        """The posterior of every nonterminal over every span (B, N+1, N+1, n), and of every tag (B, N, p)."""
        from ramify.structures.dense import symbol_posteriors

        return symbol_posteriors(self)

    def _forest(self, semiring: Semiring) -> DenseForest:
        from ramify.structures.dense.forest import DenseForest

        return DenseForest(self, semiring)

    def one_derivation_per_tree(self) -> DensePCFG:
        """The distribution itself, because every derivation is a labelled tree."""
        return self

    def log_rules(self, parents: Tensor, lefts: Tensor, rights: Tensor) -> Tensor:
        """(k,) log p(A -> B C) of some rules of the only sentence of this batch, differentiable."""
        return self.binary[parents, lefts, rights]
