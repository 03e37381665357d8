"""The rules of a lexicalised grammar, averaged over head words to describe them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ramify.errors import RamifyError
from ramify.models.grammar import LARGEST_TABLE, TableGrammar
from ramify.models.lexicalised import LexicalisedGrammar, WithWordTable
from ramify.models.nbl_pcfg import NBLPCFG
from ramify.structures.dense import DenseRules
from ramify.structures.log_space import log

MAX_DEPTH = 30
"""Symbols are counted down to this depth, because their expected number in whole derivations may be infinite."""
BLOCK = 512
"""Number of words whose rules are computed together."""


@dataclass(frozen=True)
class Delexicalised:
    """Expected uses of symbols with head words in derivations drawn from the grammar, and averages based on them."""

    grammar: TableGrammar
    """p(A -> B C), each averaged over the head words of A, and p(T -> w)"""
    heads: Tensor
    """(n, q) the share of each word among the heads of a nonterminal"""
    dependents: Tensor
    """(n, 2, q) the probability that a nonterminal's rule has another child on each side, headed by each word"""


@torch.no_grad()
def delexicalise(grammar: LexicalisedGrammar) -> Delexicalised:
    """Computed from expected counts of every symbol with every head word, level by level from the start symbol."""
    grammar = grammar.grammar if isinstance(grammar, WithWordTable) else grammar
    if not isinstance(grammar, NBLPCFG):
        raise RamifyError(
            f"The rules of {type(grammar).__name__} cannot be averaged over head words; use nbl-pcfg or another family."
        )
    n, q, r = grammar.nonterminals, grammar.words, grammar.rank
    assert r is not None
    if q * n * r > LARGEST_TABLE:
        raise RamifyError(
            f"This grammar has {q * n * r:,} rules with head words, too many to average; use a smaller grammar."
        )
    every = torch.arange(q, device=grammar.device)
    components = torch.cat([grammar.components(words).exp() for words in every.split(BLOCK)])  # (q, n, r)
    emission = grammar.emission(every).exp()
    root, head_child, other_child = (table.exp() for table in grammar.rules())
    words = emission[:, n:]  # (q, r)
    level = root * emission[:, :n]  # (q, n)
    phrases, tags = torch.zeros_like(level), level.new_zeros(q, grammar.preterminals)
    for _ in range(MAX_DEPTH):
        phrases += level
        by_component = torch.einsum("qa,qah->qh", level, components)
        below = by_component @ head_child.T + words @ (by_component.sum(0) * other_child.sum(0)).T  # (q, m)
        tags += below[:, n:]
        level = below[:, :n]
    heads = _shares(phrases)  # (q, n)
    of_rule = torch.einsum("qa,qah->ah", heads, components)  # (n, r) p(H | A)
    head_first = torch.einsum("ah,bh,ch->abc", of_rule, head_child, other_child[1])
    head_last = torch.einsum("ah,ch,bh->abc", of_rule, head_child, other_child[0])
    dependents = torch.einsum("ah,dh,qh->adq", of_rule, other_child.sum(1), words)
    rules = DenseRules(log(root), log(head_first + head_last))
    return Delexicalised(TableGrammar(rules, log(_shares(tags))), heads.T, dependents)


def _shares(counts: Tensor) -> Tensor:
    """Counts (q, k) normalised to sum to one in each column; uniform if a symbol is never used."""
    total = counts.sum(0)
    return torch.where(total > 0, counts / total, 1 / len(counts))
