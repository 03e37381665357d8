"""Rules and words looked up by their strength, without a table of all of them.

A low-rank grammar of thousands of symbols has n m^2 rules and p q words, too many to write out; of these only the
strongest are wanted. What is exact here is exact for every family; of a compound grammar it is what holds at z = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ramify.models.grammar import Grammar
from ramify.structures.pcfg import Rule, Rules

BLOCK_NUMBERS = 2**26
"""Number of word probabilities (256 MB) that are computed at a time."""
MAX_SOLVED = 8192
"""Expected uses are the solution of as many equations as there are nonterminals, at most this many."""
MAX_COMPARED = 8192
"""Rules are compared by the products of all pairs of rank components, at most this many."""
MAX_EXPECTED = 1e5
"""Rules are rounded to about a millionth: derivations expected to be longer than this may as well have no end."""


class ExpectedUses(NamedTuple):
    """How often each symbol is expected in a derivation from the start symbol."""

    nonterminals: Tensor
    """(n,)"""
    preterminals: Tensor
    """(p,); their sum is the expected number of words"""


class RuleLookup:
    """The binary rules of a grammar, computed once; its words are left alone."""

    @torch.no_grad()
    def __init__(self, grammar: Grammar) -> None:
        self._rules = _at_origin(grammar)
        self.nonterminals = grammar.nonterminals

    def strongest(self, parent: int, count: int = 10, weights: Tensor | None = None, block: int = 128) -> list[Rule]:
        """The most probable rules of one nonterminal, best first; rules without probability are left out.

        With `weights` (m,) a rule counts as much as its probability times the weights of its two children.
        """
        return self._rules.strongest(parent, count, weights, block)

    def cosine(self) -> float | None:
        """The mean cosine between the rules of two nonterminals; near 1, most symbols have become alike.

        None with a single nonterminal, or with more than `MAX_COMPARED` components.
        """
        return None if (self._rules.rank or 0) > MAX_COMPARED else self._rules.rule_cosine()

    @torch.no_grad()
    def expected_uses(self) -> ExpectedUses | None:
        """The least solution of e = root + e M, M[A, B] the number of Bs that A is expected to have as children.

        None if the expected length is infinite, so that there is no solution; if derivations are so long
        (`MAX_EXPECTED`) that rounding may have made them end; or if there are more than `MAX_SOLVED` nonterminals.
        """
        n = self.nonterminals
        if n > MAX_SOLVED:
            return None
        children = self._rules.expected_children()  # (n, m)
        root = self._rules.root.double().exp()
        reached = _reached(root, children[:, :n])
        children[~reached] = 0  # a symbol that no sentence has may derive itself without end
        among = children[:, :n]
        factors, pivots, _ = torch.linalg.lu_factor_ex(torch.eye(n, dtype=among.dtype, device=among.device) - among)
        sizes = torch.linalg.lu_solve(factors, pivots, torch.ones_like(root)[:, None])[:, 0]
        # Nonterminals expected in a derivation from each: s = 1 + M s. If all of s and of s - M s are above zero, M's
        # spectral radius is at most 1 - 1 / max(s) (Berman and Plemmons 1994, ch. 6), which rounding must not decide.
        if not bool(((sizes > 0) & (sizes - among @ sizes > 0) & (sizes < MAX_EXPECTED)).all()):
            return None
        uses = torch.linalg.lu_solve(factors, pivots, root[:, None], adjoint=True)[:, 0]
        uses = torch.where(reached, uses.clamp(min=0), 0.0)  # not -0.0
        return ExpectedUses(uses, uses @ children[:, n:])


@torch.no_grad()
def strongest_words(
    grammar: Grammar, count: int = 10, tags: Sequence[int] | None = None
) -> list[list[tuple[int, float]]]:
    """For each preterminal, or for some, the most probable words, by number, with their probabilities, best first."""
    count = min(count, grammar.words)
    device = grammar.device
    chosen = list(range(grammar.preterminals) if tags is None else tags)
    values = torch.zeros(0, len(chosen), device=device)
    places = torch.zeros(0, len(chosen), dtype=torch.long, device=device)
    for words in torch.arange(grammar.words, device=device).split(max(count, BLOCK_NUMBERS // grammar.preterminals)):
        found = grammar.emission(words[None], _origin(grammar))[0] if grammar.latent else grammar.emission(words)
        top = found[:, chosen].exp().topk(min(count, len(words)), dim=0)
        values = torch.cat([values.to(found.dtype), top.values])
        places = torch.cat([places, words[top.indices]])
        kept = values.topk(min(count, len(values)), dim=0)
        values, places = kept.values, places.gather(0, kept.indices)
    return [list(zip(*pairs, strict=True)) for pairs in zip(places.T.tolist(), values.T.tolist(), strict=True)]


def _at_origin(grammar: Grammar) -> Rules:
    if not grammar.latent:
        return grammar.rules()
    return grammar.rules(_origin(grammar)).of_sentence(0)


def _origin(grammar: Grammar) -> Tensor:
    return torch.zeros(1, grammar.latent, device=grammar.device)


def _reached(root: Tensor, among: Tensor) -> Tensor:
    """(n,) whether a derivation can have each nonterminal; `among` (n, n) are those that each has as children."""
    reached, before = root > 0, 0
    while int(reached.sum()) > before:
        before = int(reached.sum())
        reached = reached | (reached.to(among) @ among > 0)
    return reached
