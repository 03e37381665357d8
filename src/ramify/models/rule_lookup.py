"""Finds the most probable rules and words without a table of all of them.

A low-rank grammar with thousands of symbols has n m^2 rules and p q words, too many for a table; only the most probable
are needed. Results are exact for every family; for a compound grammar they are those at z = 0.
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
"""Maximum number of nonterminals for expected uses, which are the solution of one equation per nonterminal."""
MAX_COMPARED = 8192
"""Maximum number of rank components whose products are computed for all pairs, to compare rules."""
MAX_EXPECTED = 1e5
"""Maximum expected length of derivations: rules are rounded to about a millionth, so longer ones may be infinite."""


class ExpectedUses(NamedTuple):
    """The expected number of occurrences of each symbol in a derivation from the start symbol."""

    nonterminals: Tensor
    """(n,)"""
    preterminals: Tensor
    """(p,) whose sum is the expected number of words"""


class RuleLookup:
    """The binary rules of a grammar, computed once, without its words."""

    @torch.no_grad()
    def __init__(self, grammar: Grammar) -> None:
        self._rules = _at_origin(grammar)
        self.nonterminals = grammar.nonterminals

    def strongest(self, parent: int, count: int = 10, weights: Tensor | None = None, block: int = 128) -> list[Rule]:
        """The most probable rules of one nonterminal, best first; rules without probability are left out.

        With `weights` (m,), rules are ordered by their probability times the weights of their two children.
        """
        return self._rules.strongest(parent, count, weights, block)

    def cosine(self) -> float | None:
        """The mean cosine between the rules of two nonterminals; near 1, most symbols have similar rules.

        None with a single nonterminal, or with more than `MAX_COMPARED` components.
        """
        return None if (self._rules.rank or 0) > MAX_COMPARED else self._rules.rule_cosine()

    @torch.no_grad()
    def expected_uses(self) -> ExpectedUses | None:
        """The least solution of e = root + e M, M[A, B] the number of Bs that A is expected to have as children.

        None if there is no solution, because the expected length is infinite; if derivations are so long
        (`MAX_EXPECTED`) that they may be finite only because of rounding; or if there are more than `MAX_SOLVED`
        nonterminals.
        """
        n = self.nonterminals
        if n > MAX_SOLVED:
            return None
        children = self._rules.expected_children()  # (n, m)
        root = self._rules.root.double().exp()
        reached = _reached(root, children[:, :n])
        children[~reached] = 0  # a symbol that cannot occur may have infinite derivations
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
