"""Rules and words looked up by their strength, without a table of all of them.

A low-rank grammar of thousands of symbols has n m^2 rules and p q words, too many to write out; of these only the
strongest are wanted. What is exact here is exact for every family; of a compound grammar it is what holds at z = 0.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ramify.grammars.base import Grammar, SharedDenseRules, SharedRules, only_set

BLOCK_NUMBERS = 2**26
"""So many word probabilities (256 MB) are looked at together."""
MOST_SOLVED = 8192
"""Expected uses are the solution of as many equations as there are nonterminals, at most so many."""
MOST_EXPECTED = 1e5
"""Rules are rounded to about a millionth: derivations expected to be longer than this may as well have no end."""
ROUNDING = 1e-4
"""Sums in another order differ by less than this share."""


class Rule(NamedTuple):
    """Children are numbered as in `LowRankRules` and `DenseRules`: preterminal t is symbol n + t."""

    parent: int
    left: int
    right: int
    probability: float


class ExpectedUses(NamedTuple):
    """How often each symbol is expected in a derivation from the start symbol."""

    nonterminals: Tensor
    """(n,)"""
    preterminals: Tensor
    """(p,); their sum is the expected number of words"""


class RuleLookup:
    """The binary rules of a grammar, worked out once; its words are left alone."""

    @torch.no_grad()
    def __init__(self, grammar: Grammar) -> None:
        shared = _at_origin(grammar)
        self._shared = shared
        self.nonterminals = grammar.nonterminals
        if isinstance(shared, SharedRules):
            self._left, self._right = shared.left.exp(), shared.right.exp()  # (m, d)

    @torch.no_grad()
    def strongest(self, parent: int, count: int = 10, weights: Tensor | None = None, block: int = 128) -> list[Rule]:
        """The most probable rules of one nonterminal, best first; rules without probability are none.

        With `weights` (m,) a rule counts as much as its probability times the weights of its two children.
        """
        if isinstance(self._shared, SharedDenseRules):
            return self._strongest_dense(self._shared.binary[parent], parent, count, weights)
        return self._strongest_low_rank(parent, count, weights, block)

    def _strongest_dense(self, binary: Tensor, parent: int, count: int, weights: Tensor | None) -> list[Rule]:
        if weights is not None:
            log_weights = weights.to(binary).log()
            binary = binary + log_weights[:, None] + log_weights
        top = binary.flatten().topk(min(count, binary.numel()))
        return _rules(parent, top.values.exp(), top.indices, len(binary))

    def _strongest_low_rank(self, parent: int, count: int, weights: Tensor | None, block: int) -> list[Rule]:
        """Children are looked at in the order of what a rule with them has at most, until that is too little.

        p(A -> B C) is at most sum_l U[A, l] V[B, l] max_C W[C, l], and the same with the sides swapped. A grammar that
        has learnt something is done after a few; one in which all rules are alike takes O(m^2 d).
        """
        head, left, right = self._components(parent)
        m = len(left)
        if weights is not None:
            left, right = (side * weights.to(side)[:, None] for side in (left, right))
        lefts, at_most_left = _in_order(left @ (head * right.amax(0)))
        rights, at_most_right = _in_order(right @ (head * left.amax(0)))
        right = right[rights].T
        values, places = left.new_zeros(0), torch.zeros(0, dtype=torch.long, device=left.device)
        least = 0.0  # of the rules kept, once there are enough
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
        return _rules(parent, values, places, m)

    def _components(self, parent: int) -> tuple[Tensor, Tensor, Tensor]:
        """(k,) U[A], (m, k) V and (m, k) W of the components that nonterminal A has: all, some, or one of its own."""
        assert isinstance(self._shared, SharedRules)
        if self._shared.head is None:
            left, right = self._left[:, [parent]], self._right[:, [parent]]
            return left.new_ones(1), left, right
        head = self._shared.head[parent].exp()
        used = head > 0
        if 2 * int(used.sum()) > len(head):
            return head, self._left, self._right
        return head[used], self._left[:, used], self._right[:, used]  # as in a grammar of rules, one component each

    @torch.no_grad()
    def expected_uses(self) -> ExpectedUses | None:
        """The least solution of e = root + e M, M[A, B] the number of Bs that A is expected to have as children.

        None where there is no such solution, because derivations are expected to go on for ever, or where they are so
        long (`MOST_EXPECTED`) that rounding may have made them end; or with more than `MOST_SOLVED` nonterminals.
        """
        n = self.nonterminals
        if n > MOST_SOLVED:
            return None
        children = self._expected_children()  # (n, m)
        root = self._shared.root.double().exp()
        reached = _reached(root, children[:, :n])
        children[~reached] = 0  # what no sentence has may go on for ever
        among = children[:, :n]
        factors, pivots, _ = torch.linalg.lu_factor_ex(torch.eye(n, dtype=among.dtype, device=among.device) - among)
        sizes = torch.linalg.lu_solve(factors, pivots, torch.ones_like(root)[:, None])[:, 0]
        # Nonterminals expected in a derivation from each: s = 1 + M s. If all of s and of s - M s are above zero, M's
        # spectral radius is at most 1 - 1 / max(s) (Berman and Plemmons 1994, ch. 6), which rounding must not decide.
        if not bool(((sizes > 0) & (sizes - among @ sizes > 0) & (sizes < MOST_EXPECTED)).all()):
            return None
        uses = torch.linalg.lu_solve(factors, pivots, root[:, None], adjoint=True)[:, 0]
        uses = torch.where(reached, uses.clamp(min=0), 0.0)  # not -0.0
        return ExpectedUses(uses, uses @ children[:, n:])

    def _expected_children(self) -> Tensor:
        """(n, m) how many of each symbol a nonterminal is expected to have as children."""
        shared = self._shared
        if isinstance(shared, SharedDenseRules):
            pairs = (binary.double().exp() for binary in shared.binary)
            return torch.stack([matrix.sum(0) + matrix.sum(1) for matrix in pairs])
        left, right = shared.left.double().exp(), shared.right.double().exp()
        either = left * right.sum(0) + right * left.sum(0)  # (m, d)
        return either.T if shared.head is None else shared.head.double().exp() @ either.T


@torch.no_grad()
def strongest_words(grammar: Grammar, count: int = 10) -> list[list[tuple[int, float]]]:
    """For each preterminal its most probable words, by their numbers, with their probabilities, best first."""
    count = min(count, grammar.words)
    device = _device(grammar)
    values = torch.zeros(0, grammar.preterminals, device=device)
    places = torch.zeros(0, grammar.preterminals, dtype=torch.long, device=device)
    for words in torch.arange(grammar.words, device=device).split(max(count, BLOCK_NUMBERS // grammar.preterminals)):
        found = grammar.emission(words[None], _origin(grammar))[0] if grammar.latent else grammar.emission(words)
        top = found.exp().topk(min(count, len(words)), dim=0)
        values = torch.cat([values.to(found.dtype), top.values])
        places = torch.cat([places, words[top.indices]])
        kept = values.topk(min(count, len(values)), dim=0)
        values, places = kept.values, places.gather(0, kept.indices)
    return [list(zip(*pairs, strict=True)) for pairs in zip(places.T.tolist(), values.T.tolist(), strict=True)]


def _at_origin(grammar: Grammar) -> SharedRules | SharedDenseRules:
    if not grammar.latent:
        return grammar.shared_rules()
    return only_set(grammar.shared_rules(_origin(grammar)))


def _origin(grammar: Grammar) -> Tensor:
    return torch.zeros(1, grammar.latent, device=_device(grammar))


def _device(grammar: Grammar) -> torch.device:
    return next(iter((*grammar.buffers(), *grammar.parameters()))).device


def _reached(root: Tensor, among: Tensor) -> Tensor:
    """(n,) whether a derivation can have each nonterminal; `among` (n, n) are those that each has as children."""
    reached, before = root > 0, 0
    while int(reached.sum()) > before:
        before = int(reached.sum())
        reached = reached | (reached.to(among) @ among > 0)
    return reached


def _in_order(bounds: Tensor) -> tuple[Tensor, Tensor]:
    """The places of those above zero, the largest first, and their values."""
    order = bounds.argsort(descending=True)[: int((bounds > 0).sum())]
    return order, bounds[order]


def _rules(parent: int, values: Tensor, places: Tensor, m: int) -> list[Rule]:
    pairs = zip(values.tolist(), places.tolist(), strict=True)
    return [Rule(parent, at // m, at % m, value) for value, at in pairs if value > 0]
