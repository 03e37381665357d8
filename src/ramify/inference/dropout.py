"""A grammar without some of its symbols: what is left of its rules, made to sum to one again.

State dropout of Chiu and Rush (2020), which Yang et al. (2021) suggest for grammars that use few of their symbols: in
each training step other symbols are missing, so that those that remain must do without them. Symbols that are left out
cannot be reached, so they are cut from the tables and the step has less to do.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ramify.inference.rules import DenseRules, LowRankRules, Rules


def drawn_symbols(count: int, rate: float, noise: torch.Generator) -> Tensor:
    """The numbers of the symbols that stay, in order: each goes with probability `rate`, but never all of them."""
    chances = torch.rand(count, generator=noise)
    kept = chances >= rate
    kept[chances.argmax()] = True
    return kept.nonzero()[:, 0]


def only_symbols(rules: Rules, nonterminals: Tensor, preterminals: Tensor) -> Rules:
    """The rules with these symbols alone, by their numbers; every distribution is renormalised over what is left."""
    nonterminals, preterminals = nonterminals.to(rules.words.device), preterminals.to(rules.words.device)
    children = torch.cat([nonterminals, rules.nonterminals + preterminals])
    root = _normalised(rules.root.index_select(-1, nonterminals), -1)
    words = rules.words.index_select(-1, preterminals)
    if isinstance(rules, DenseRules):
        binary = rules.binary.index_select(-3, nonterminals).index_select(-2, children).index_select(-1, children)
        return replace(rules, root=root, binary=_normalised(binary, -2, -1), words=words)
    head, left, right = rules.head, rules.left, rules.right
    if head is None:  # whose components are the nonterminals
        left, right = left.index_select(-1, nonterminals), right.index_select(-1, nonterminals)
    else:
        head = head.index_select(-2, nonterminals)
    left, right = (_normalised(table.index_select(-2, children), -2) for table in (left, right))
    return LowRankRules(root, head, left, right, words, rules.lengths)


def _normalised(log_probabilities: Tensor, *dims: int) -> Tensor:
    """Where nothing has any probability it stays so."""
    total = log_probabilities.logsumexp(dims, keepdim=True)
    return log_probabilities - torch.where(total == -torch.inf, 0, total)
