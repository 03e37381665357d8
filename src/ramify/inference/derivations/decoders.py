"""From the rules of a batch to derivations of its sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ramify.inference.dense import symbol_posteriors
from ramify.inference.derivations.forest import forest_of
from ramify.inference.derivations.search import Derivation, KBest, drawn_with, heaviest, walk
from ramify.inference.log_space import BEST, SUM, log, posteriors_by_autograd
from ramify.inference.low_rank import reference as low_rank_reference
from ramify.inference.rules import DenseRules, LowRankRules, Rules

MOST_RULES = 2**25
"""How many numbers the rule tensor of low-rank rules may have when it is written out (256 MB)."""


def written_out(rules: Rules) -> DenseRules:
    """The same rules with their tensor in full; refused beyond `MOST_RULES` numbers."""
    if isinstance(rules, DenseRules):
        return rules
    n, m = rules.nonterminals, rules.left.shape[-2]
    if not _can_be_written_out(rules):
        raise ValueError(f"a rule tensor of {n} x {m} x {m} numbers is larger than {MOST_RULES}")
    left, right = rules.left.exp(), rules.right.exp()
    if rules.head is None:
        tensor = torch.einsum("...ba,...ca->...abc", left, right)
    else:
        tensor = torch.einsum("...al,...bl,...cl->...abc", rules.head.exp(), left, right)
    return DenseRules(rules.root, log(tensor), rules.words, rules.lengths)


def one_derivation_a_tree(rules: Rules) -> Rules:
    """The same rules, low-rank ones written out: a labelled tree sums over the rank, so rank space does not hold it.

    But for those without a head, where every symbol has but one component, its own.
    """
    return rules if isinstance(rules, LowRankRules) and rules.head is None else written_out(rules)


def best_derivations(rules: Rules) -> list[Derivation | None]:
    """For each sentence its most probable labelled tree (Viterbi, CYK); None where it has no derivation."""
    if not rules.per_sentence:
        rules = one_derivation_a_tree(rules)  # once for all
    every = (one_derivation_a_tree(rules.sentence(b)) for b in range(len(rules.lengths)))
    return [walk(forest_of(full, BEST), heaviest) for full in every]


def best_rank_derivations(rules: LowRankRules) -> list[Derivation | None]:
    """For each sentence the tree of its best derivation with a rank component at every rule.

    The maximum in place of the sum in rank space. Its probability, that of tree and components together, is no more
    than the tree's.
    """
    return [walk(forest_of(rules.sentence(b), BEST), heaviest) for b in range(len(rules.lengths))]


def sampled_derivations(rules: Rules, generators: Sequence[np.random.Generator]) -> list[Derivation | None]:
    """For each sentence a labelled tree drawn from the posterior p(tree | words), with its own generator.

    Exact for both shapes of rules (Johnson, Griffiths and Goldwater 2007, sec. 4); for low-rank rules the rank
    components are drawn too, and `log_probability` is that of tree and components together.
    """
    return [walk(forest_of(rules.sentence(b), SUM), drawn_with(generators[b])) for b in range(len(rules.lengths))]


def posteriors_along(rules: Rules, derivations: Sequence[Derivation | None]) -> list[tuple[Tensor, Tensor]]:
    """For each derivation the posteriors of its labels (N-1,), each over its span, and of its tags (N,)."""
    if not rules.per_sentence and _can_be_written_out(rules):
        rules = written_out(rules)
    result = []
    for b, derivation in enumerate(derivations):
        if derivation is None:
            result.append((rules.words.new_zeros(0), rules.words.new_zeros(0)))
            continue
        N = len(derivation.tags)
        labels, tags = _symbol_posteriors(rules.sentence(b))
        i, j = torch.from_numpy(derivation.spans.astype(np.int64)).to(labels.device).T
        label, tag = torch.from_numpy(derivation.labels), torch.from_numpy(derivation.tags)
        result.append((labels[0, i, j - i - 1, label], tags[0, torch.arange(N), tag]))
    return result


def _can_be_written_out(rules: Rules) -> bool:
    return isinstance(rules, DenseRules) or rules.nonterminals * rules.left.shape[-2] ** 2 <= MOST_RULES


@torch.no_grad()
def _symbol_posteriors(rules: Rules) -> tuple[Tensor, Tensor]:
    """Of every nonterminal over every span (1, N, N, n) of one sentence, by start and width - 1; of tags (1, N, p)."""
    if _can_be_written_out(rules):
        return symbol_posteriors(written_out(rules))
    assert isinstance(rules, LowRankRules)
    B, N, _ = rules.words.shape
    scores = rules.words.new_zeros(B, N + 1, N + 1)
    _, tags, _, by_width = posteriors_by_autograd(low_rank_reference.chart, rules, scores)
    labels = rules.words.new_zeros(B, N, N, rules.nonterminals)
    for width, found in by_width.items():
        labels[:, : N - width + 1, width - 1] = found
    return labels, tags


def k_best_derivations(rules: Rules, k: int) -> list[list[Derivation]]:
    """For each sentence its k most probable labelled trees, best first; fewer where there are not so many."""
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    every = (one_derivation_a_tree(rules.sentence(b)) for b in range(len(rules.lengths)))
    return [KBest(forest_of(full, BEST), k).derivations() for full in every]
