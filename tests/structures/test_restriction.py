"""Rules without some of their symbols, compared with rules in which these have no probability."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from ramify.models.grammar import sample_symbols
from ramify.structures.dense import DensePCFG
from ramify.structures.pcfg import PCFG
from tests.structures.brute_force import dense
from tests.structures.random_rules import inside, marginals, parameters, random_dense_rules, random_rules

N, P, LENGTHS = 5, 6, [6, 1, 4, 2]
KEPT = torch.tensor([0, 2, 3]), torch.tensor([1, 4, 5])


def rules_of(kind: str) -> PCFG:
    if kind.startswith("dense"):
        return random_dense_rules(N, P, LENGTHS, per_sentence=kind.endswith("per sentence"))
    return random_rules(N, P, None if kind == "without a head" else 7, LENGTHS)


def struck_out(rules: PCFG) -> PCFG:
    """The same rules with all symbols, but probability zero for the others."""
    children = torch.cat([KEPT[0], N + KEPT[1]])
    missing = torch.ones(N + P, dtype=torch.bool).index_fill(0, children, False)

    def without(logits: Tensor, mask: Tensor, *dims: int) -> Tensor:
        return logits.masked_fill(mask, -torch.inf).flatten(min(dims)).log_softmax(-1).view_as(logits)

    root = without(rules.root, missing[:N], -1)
    if isinstance(rules, DensePCFG):
        return replace(rules, root=root, binary=without(rules.binary, missing[:, None] | missing, -2, -1))
    left, right = (without(table.mT, missing, -1).mT for table in (rules.left, rules.right))
    return replace(rules, root=root, left=left, right=right)


@pytest.mark.parametrize("kind", ["dense", "dense, per sentence", "low rank", "without a head"])
def test_the_restriction_is_the_grammar_without_the_other_symbols(kind):
    rules = rules_of(kind)
    found, expected = rules.restrict(*KEPT), struck_out(rules)
    assert (found.nonterminals, found.words.shape[-1]) == (3, 3)
    sums = (found.binary.exp() if isinstance(found, DensePCFG) else dense(found)[None]).sum((-2, -1))
    torch.testing.assert_close(sums, torch.ones_like(sums))
    log_z = inside(found)
    torch.testing.assert_close(log_z, inside(expected, engine="reference"))
    torch.testing.assert_close(marginals(found).spans, marginals(expected, engine="reference").spans)
    possible = log_z > -torch.inf
    inputs = list(parameters(rules).values())
    ours = torch.autograd.grad(log_z[possible].sum(), inputs)
    theirs = torch.autograd.grad(inside(expected, engine="reference")[possible].sum(), inputs)
    for gradient, exact in zip(ours, theirs, strict=True):
        torch.testing.assert_close(gradient, exact)


def test_all_symbols_are_the_same_rules():
    rules = rules_of("low rank")
    found = rules.restrict(torch.arange(N), torch.arange(P))
    for name, table in parameters(rules).items():
        torch.testing.assert_close(getattr(found, name), table)


def test_symbols_stay_as_often_as_they_should():
    noise = torch.Generator().manual_seed(0)
    drawn = [sample_symbols(50, 0.3, noise) for _ in range(400)]
    shares = torch.bincount(torch.cat(drawn), minlength=50) / 400
    torch.testing.assert_close(shares, torch.full((50,), 0.7), rtol=0, atol=0.1)  # four standard deviations
    assert all(torch.equal(kept, kept.sort().values) for kept in drawn)
    assert torch.equal(sample_symbols(9, 0.0, noise), torch.arange(9))
    assert all(len(sample_symbols(3, 0.999, noise)) >= 1 for _ in range(100))


def test_an_empty_restriction_stays_empty():
    rules = rules_of("low rank")
    left = rules.left.detach().clone()
    left[torch.cat([KEPT[0], N + KEPT[1]]), 0] = -torch.inf
    table = replace(rules, left=left).restrict(*KEPT).left
    assert (table[:, 0] == -torch.inf).all()
    assert not table.isnan().any()
