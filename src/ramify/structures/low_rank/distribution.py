"""PCFGs whose rule tensor is a sum of outer products (Yang, Zhao and Tu 2021, sec. 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ramify.structures.dense.distribution import DensePCFG
from ramify.structures.derivations import heaviest, walk
from ramify.structures.distribution import Tree
from ramify.structures.log_space import BEST, Semiring, log, logsumexp
from ramify.structures.pcfg import PCFG, Rule, Rules, cumulative, draw, mean_cosine, renormalised, rules_at

if TYPE_CHECKING:
    from ramify.structures.low_rank.forest import RankForest

ROUNDING = 1e-4
"""Sums in another order differ by less than this share."""
MOST_RULES = 2**25
"""Maximum size of the dense rule tensor of low-rank rules (256 MB)."""


@dataclass(frozen=True)
class LowRankRules(Rules):
    """The rule tensor in Kruskal form, as log-probabilities: p(A -> B C) = sum_l U[A, l] V[B, l] W[C, l].

    Without a head U is the identity and d = n, which is a Simple PCFG, p(A -> B C) = V[B, A] W[C, A] (Liu et al. 2023).
    """

    head: Tensor | None
    """(n, d) log U, or None for the identity"""
    left: Tensor
    """(m, d) log V"""
    right: Tensor
    """(m, d) log W"""

    @property
    def rank(self) -> int:
        """d, the number of components."""
        return self.nonterminals if self.head is None else self.head.shape[-1]

    @property
    def is_simple(self) -> bool:
        """Whether every nonterminal is one rank component."""
        return self.head is None

    def with_words(self, words: Tensor, lengths: Tensor) -> LowRankPCFG:
        """The distribution over the trees of a batch, given log p(T -> w) of its words (B, N, p)."""
        return LowRankPCFG(self.root, self.head, self.left, self.right, words, lengths)

    def components_of(self, parent: int) -> tuple[Tensor, Tensor]:
        """(m, k) log U[A] V and (m, k) log W, of the k components that nonterminal A has: all of them, or one."""
        if self.head is None:
            return self.left[:, [parent]], self.right[:, [parent]]
        return self.left + self.head[parent], self.right

    def binary_of(self, parent: int) -> Tensor:
        """(m, m) p(A -> B C) of one nonterminal, in float64."""
        left, right = self.components_of(parent)
        return left.double().exp() @ right.double().exp().T

    def expected_children(self) -> Tensor:
        """(n, m) the expected number of children of each nonterminal with each symbol, in float64."""
        left, right = self.left.double().exp(), self.right.double().exp()
        either = left * right.sum(0) + right * left.sum(0)  # (m, d)
        return either.T if self.head is None else self.head.double().exp() @ either.T

    @torch.no_grad()
    def rule_cosine(self, block: int = 1024) -> float | None:
        """The mean cosine between the rules of two nonterminals, without the tensor.

        <rules of A, rules of B> = U[A] G U[B]' with G = (V'V) * (W'W), made `block` columns at a time.
        """
        left, right = self._sides
        components = torch.arange(self.rank, device=left.device).split(block)

        def products(columns: Tensor) -> Tensor:
            return (left.T @ left[:, columns]) * (right.T @ right[:, columns])

        if self.head is None:
            squares = left.square().sum(0) * right.square().sum(0)
        else:
            head = self.head.exp()
            parts = [((head @ products(columns)) * head[:, columns]).sum(1) for columns in components]
            squares = torch.stack(parts).sum(0)
        used = squares > 0
        scales = torch.where(used, squares.where(used, 1).rsqrt(), 0)
        total = scales if self.head is None else scales @ head  # the sum of unit vectors, by component
        square = sum(float(total @ products(columns) @ total[columns]) for columns in components)
        return mean_cosine(square, int(used.sum()))

    @torch.no_grad()
    def strongest(self, parent: int, count: int = 10, weights: Tensor | None = None, block: int = 128) -> list[Rule]:
        """The most probable rules of one nonterminal, best first; `weights` (m,) are those of the children.

        The tensor is not computed. Children are compared in the order of a bound, `block` at a time, until no other
        rule can be among the best: p(A -> B C) is at most sum_l U[A, l] V[B, l] max_C W[C, l], and the same with the
        sides swapped. For a trained grammar, a few comparisons suffice; if all rules are similar, it takes O(m^2 d).
        """
        head, left, right = self._components(parent)
        m = len(left)
        if weights is not None:
            left, right = (side * weights.to(side)[:, None] for side in (left, right))
        lefts, at_most_left = _in_order(left @ (head * right.amax(0)))
        rights, at_most_right = _in_order(right @ (head * left.amax(0)))
        right = right[rights].T
        values, places = left.new_zeros(0), torch.zeros(0, dtype=torch.long, device=left.device)
        least = 0.0  # the smallest probability of the kept rules, if there are enough
        for rows, bounds in zip(lefts.split(block), at_most_left.split(block), strict=True):
            columns = int((at_most_right >= least).sum())
            if not len(rows) or not columns or float(bounds[0]) < least:
                break
            found = ((left[rows] * head) @ right[:, :columns]).flatten()
            top = found.topk(min(count, len(found)))
            at = rows[top.indices // columns] * m + rights[top.indices % columns]
            values, places = torch.cat([values, top.values]), torch.cat([places, at])
            kept = values.topk(min(count, len(values)))
            values, places = kept.values, places[kept.indices]
            least = (1 - ROUNDING) * float(values[-1]) if len(values) == count else 0.0
        return rules_at(parent, values, places, m)

    @cached_property
    def _sides(self) -> tuple[Tensor, Tensor]:
        """(m, d) V and W as probabilities."""
        return self.left.exp(), self.right.exp()

    def _components(self, parent: int) -> tuple[Tensor, Tensor, Tensor]:
        """(k,) U[A], (m, k) V and (m, k) W of the components that nonterminal A has: all, some, or one."""
        left, right = self._sides
        if self.head is None:
            return left.new_ones(1), left[:, [parent]], right[:, [parent]]
        head = self.head[parent].exp()
        used = head > 0
        if 2 * int(used.sum()) > len(head):
            return head, left, right
        return head[used], left[:, used], right[:, used]  # as in a grammar of rules, one component each

    @torch.no_grad()
    def child_sampler(self) -> Callable[[int, np.random.Generator], tuple[int, int]]:
        """A function that draws the two children of a nonterminal, by way of a rank component."""
        head = None if self.head is None else cumulative(self.head)
        left, right = cumulative(self.left.T), cumulative(self.right.T)

        def children(parent: int, rng: np.random.Generator) -> tuple[int, int]:
            component = parent if head is None else draw(head[parent], rng)
            return draw(left[component], rng), draw(right[component], rng)

        return children

    def sums(self) -> dict[str, Tensor]:
        """The totals of each family of probabilities; of a proper grammar all are one.

        Binary rules sum to one for every nonterminal where the rows of U and the columns of V and W do (Theorem 1); a
        component that no nonterminal uses does not count.
        """
        root, left, right = (table.double().exp() for table in (self.root, self.left, self.right))
        sums = {"start rules": root.sum(), "left (V)": left.sum(0), "right (W)": right.sum(0)}
        if self.head is not None:
            head = self.head.double().exp()
            used = head.amax(0) > 0
            sums = {name: total[used] if total.dim() else total for name, total in sums.items()}
            sums["head (U)"] = head.sum(1)
        return sums

    def restricted_rules(self, nonterminals: Tensor, preterminals: Tensor) -> dict[str, Any]:
        """The tables with only these symbols, given by number; each distribution is renormalised."""
        children = torch.cat([nonterminals, self.nonterminals + preterminals])
        head, left, right = self.head, self.left, self.right
        if head is None:  # whose components are the nonterminals
            left, right = left.index_select(-1, nonterminals), right.index_select(-1, nonterminals)
        else:
            head = head.index_select(-2, nonterminals)
        left, right = (renormalised(table.index_select(-2, children), -2) for table in (left, right))
        root = renormalised(self.root.index_select(-1, nonterminals), -1)
        return {"root": root, "head": head, "left": left, "right": right}


@dataclass(frozen=True)
class LowRankPCFG(LowRankRules, PCFG):
    """A batch of sentences under low-rank rules."""

    words: Tensor
    """(B, N, p) log p(T -> w); entries after the end of a sentence are ignored"""
    lengths: Tensor
    """(B,) number of words of each sentence"""
    span_scores: Tensor | None = None
    """(B, N+1, N+1) added to the log-weight of every tree with the span; None for zeros"""

    def __post_init__(self) -> None:
        n, d, p = self.nonterminals, self.rank, self.preterminals
        shapes = {"root": (n,), "left": (n + p, d), "right": (n + p, d)}
        self._check(shapes if self.head is None else shapes | {"head": (n, d)})

    @property
    def fits_dense(self) -> bool:
        """Whether the dense rule tensor has at most `MOST_RULES` numbers."""
        return self.nonterminals * (self.nonterminals + self.preterminals) ** 2 <= MOST_RULES

    def dense(self) -> DensePCFG:
        """The same distribution with its rule tensor in full; refused beyond `MOST_RULES` numbers."""
        n, m = self.nonterminals, self.nonterminals + self.preterminals
        if not self.fits_dense:
            raise ValueError(f"a rule tensor of {n} x {m} x {m} numbers is larger than {MOST_RULES}")
        left, right = self.left.exp(), self.right.exp()
        if self.head is None:
            tensor = torch.einsum("...ba,...ca->...abc", left, right)
        else:
            tensor = torch.einsum("...al,...bl,...cl->...abc", self.head.exp(), left, right)
        return DensePCFG(self.root, log(tensor), self.words, self.lengths, self.span_scores)

    @torch.no_grad()
    def symbol_posteriors(self) -> tuple[Tensor, Tensor]:
        """The posterior of every nonterminal over every span (B, N+1, N+1, n), and of every tag (B, N, p).

        Through the dense tensor where it fits, else by autograd through the reference.
        """
        if self.fits_dense:
            return self.dense().symbol_posteriors()
        from ramify.structures.low_rank.reference import symbol_posteriors

        parts = [symbol_posteriors(self.sentence(b)) for b in range(len(self))] if self.per_sentence else None
        if parts is None:
            return symbol_posteriors(self)
        labels, tags = zip(*parts, strict=True)
        return torch.cat(labels), torch.cat(tags)

    def _forest(self, semiring: Semiring) -> RankForest:
        from ramify.structures.low_rank.forest import RankForest

        return RankForest(self, semiring)

    def one_derivation_per_tree(self) -> DensePCFG | LowRankPCFG:
        """The dense form, because a labelled tree sums over the rank; without a head every symbol has one component."""
        return self if self.head is None else self.dense()

    def log_rules(self, parents: Tensor, lefts: Tensor, rights: Tensor) -> Tensor:
        """(k,) log p(A -> B C) of some rules of the only sentence of this batch, differentiable."""
        if self.head is None:
            return self.left[lefts, parents] + self.right[rights, parents]
        return logsumexp(self.head[parents] + self.left[lefts] + self.right[rights], -1)

    def argmax_with_components(self) -> list[Tree | None]:
        """The tree of each sentence's best derivation with a rank component at every rule.

        The maximum in place of the sum in rank space. Its weight, that of tree and components together, is at most the
        tree's.
        """
        return [walk(self.sentence(b).forest(BEST), heaviest) for b in range(len(self))]


def _in_order(bounds: Tensor) -> tuple[Tensor, Tensor]:
    """The places of those above zero, the largest first, and their values."""
    order = bounds.argsort(descending=True)[: int((bounds > 0).sum())]
    return order, bounds[order]
