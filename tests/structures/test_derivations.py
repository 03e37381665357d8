"""The best, the k best, samples and the entropy compared with enumeration of all derivations."""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from ramify.structures.dense import DensePCFG
from ramify.structures.derivations.search import sample_with, walk
from ramify.structures.distribution import Tree as FoundTree
from ramify.structures.log_space import SUM
from ramify.structures.low_rank import LowRankPCFG
from tests.structures.brute_force import derivations
from tests.structures.random_rules import inside, random_dense_rules, random_rules

LENGTHS = [4, 1, 3, 2]
Tree = tuple[tuple[tuple[int, int, int], ...], tuple[int, ...]]


def tree_of(derivation: FoundTree) -> Tree:
    spans = zip(derivation.spans.tolist(), derivation.labels.tolist(), strict=True)
    return tuple((i, j, label) for (i, j), label in spans), tuple(derivation.tags.tolist())


def enumerated(rules, b: int) -> dict[Tree, float]:
    """Every derivation of sentence b with its probability."""
    if int(rules.lengths[b]) == 1:
        return {}
    return {
        (tuple((i, j, a) for (i, j), a in sorted(d.labels.items(), key=lambda x: (x[0][0], -x[0][1]))), d.tags):
        d.probability for d in derivations(rules, b)
    }  # fmt: skip


def best_components(rules: LowRankPCFG) -> DensePCFG:
    """Every rule with its best rank component alone."""
    parts = rules.head[:, None, None] + rules.left[None, :, None] + rules.right[None, None]
    return DensePCFG(rules.root, parts.amax(-1), rules.words, rules.lengths)


@pytest.mark.parametrize("kind", ["dense", "dense, per sentence", "without a head"])
@pytest.mark.parametrize(("n", "p"), [(2, 3), (1, 1), (3, 2)])
def test_the_best_and_the_k_best(n, p, kind):
    if kind == "without a head":
        rules = random_rules(n, p, None, LENGTHS, sharpness=2)
    else:
        rules = random_dense_rules(n, p, LENGTHS, per_sentence="per" in kind, sharpness=2)
    best = rules.argmax()
    several = rules.top_k(30)
    for b in range(len(LENGTHS)):
        every = enumerated(rules, b)
        expected = np.log(sorted(every.values(), reverse=True)[:30])
        trees = [tree_of(d) for d in several[b]]
        # Different trees can have the same rules, so compare weights and not the order of equal trees.
        assert len(set(trees)) == len(trees)
        assert [d.log_weight for d in several[b]] == pytest.approx(expected)
        assert np.log([every[tree] for tree in trees]) == pytest.approx(expected)
        if not every:
            assert best[b] is None
            continue
        assert best[b].log_weight == pytest.approx(expected[0])
        assert np.log(every[tree_of(best[b])]) == pytest.approx(expected[0])


@pytest.mark.parametrize("k", [1, 2, 5, 15])
def test_the_k_best_may_all_be_edges_of_one_node(k):
    """A sentence of two words has one rule with two tags: all its derivations are alternatives of the same symbol."""
    rules = random_dense_rules(1, 4, [2], sharpness=2)
    expected = sorted(enumerated(rules, 0).values(), reverse=True)[:k]
    found = rules.top_k(k)[0]
    assert [np.exp(d.log_weight) for d in found] == pytest.approx(expected)


def test_more_than_all_are_all():
    rules = random_dense_rules(1, 2, [3])
    every = enumerated(rules, 0)
    found = rules.top_k(1000)[0]
    assert len(found) == len(every) == 16
    assert {tree_of(d) for d in found} == set(every)
    with pytest.raises(ValueError, match="at least 1"):
        rules.top_k(0)


@pytest.mark.parametrize("rank", [4, None])
def test_the_best_of_low_rank_rules_is_that_of_the_tensor(rank):
    rules = random_rules(2, 3, rank, LENGTHS, sharpness=2)
    for b, found in enumerate(rules.argmax()):
        every = enumerated(rules, b)
        if every:
            assert tree_of(found) == max(every, key=every.get)
            assert found.log_weight == pytest.approx(np.log(max(every.values())))


def test_the_best_in_rank_space_takes_one_component_for_every_rule():
    rules = random_rules(2, 3, 4, LENGTHS, sharpness=2)
    exact = rules.argmax()
    for b, found in enumerate(rules.argmax_with_components()):
        every = enumerated(best_components(rules), b)
        if not every:
            assert found is None
            continue
        assert tree_of(found) == max(every, key=every.get)
        assert found.log_weight == pytest.approx(np.log(max(every.values())))
        assert found.log_weight <= exact[b].log_weight


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["dense", "low rank", "without a head"])
def test_samples_come_as_often_as_they_are_probable(shape):
    """Pearson's chi-square, at a level of one in a thousand, with a fixed seed."""
    if shape == "dense":
        rules = random_dense_rules(2, 2, [3], sharpness=0.5)
    else:
        rules = random_rules(2, 2, 3 if shape == "low rank" else None, [3], sharpness=0.5)
    every = enumerated(rules, 0)
    total, draws = sum(every.values()), 4000
    forest, rng, same = rules.sentence(0).forest(SUM), np.random.default_rng(0), np.random.default_rng(0)
    drawn = [tree_of(walk(forest, sample_with(rng))) for _ in range(draws)]
    # Building the forest for every draw would take most of the time, and it does not change.
    assert drawn[:50] == [tree_of(rules.sample([same])[0]) for _ in range(50)]
    seen = Counter(drawn)
    assert seen.keys() <= every.keys()
    expected = {tree: draws * probability / total for tree, probability in every.items()}
    assert min(expected.values()) > 5
    chi_square = sum((seen[tree] - mean) ** 2 / mean for tree, mean in expected.items())
    freedom = len(every) - 1
    # Wilson and Hilferty's approximation of the quantile of chi-square.
    limit = freedom * (1 - 2 / (9 * freedom) + 3.09 * (2 / (9 * freedom)) ** 0.5) ** 3
    assert chi_square < limit


def test_edges_are_drawn_in_proportion_to_their_weights():
    """A thousand times the weight that the numbers have here makes no difference."""
    weights, draws = np.array([0.1, 0.0, 0.2, 0.7]), 5000
    with np.errstate(divide="ignore"):
        choose, log_weights = sample_with(np.random.default_rng(0)), np.log(1000 * weights)
    seen = Counter(choose(log_weights) for _ in range(draws))
    for edge, weight in enumerate(weights):
        # Four standard deviations.
        assert abs(seen[edge] - draws * weight) <= 4 * (draws * weight * (1 - weight)) ** 0.5


def test_a_sample_knows_its_probability():
    rules = random_dense_rules(2, 3, [4], sharpness=2)
    every = enumerated(rules, 0)
    for seed in range(20):
        found = rules.sample([np.random.default_rng(seed)])[0]
        assert found.log_weight == pytest.approx(np.log(every[tree_of(found)]))


@pytest.mark.parametrize("engine", ["scaled", "reference"])
def test_entropy_of_dense_rules(engine):
    rules = random_dense_rules(2, 3, LENGTHS, sharpness=2)
    for b, entropy in enumerate(rules.entropy(engine).tolist()):
        p = np.array(list(enumerated(rules, b).values()) or [1.0])
        p /= p.sum()
        assert entropy == pytest.approx(float(-(p * np.log(p)).sum()))


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_entropy_without_a_head_is_that_of_the_trees(engine):
    rules = random_rules(2, 3, None, LENGTHS, sharpness=2)
    torch.testing.assert_close(rules.entropy(engine), rules.dense().entropy())


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_entropy_of_low_rank_rules_counts_the_components(engine):
    rules = random_rules(2, 2, 3, LENGTHS, sharpness=2)
    parts = (rules.head[:, None, None] + rules.left[None, :, None] + rules.right[None, None]).exp().detach().numpy()
    share = parts / parts.sum(-1, keepdims=True)
    of_component = -(share * np.log(share)).sum(-1)  # (n, m, m)
    for b, entropy in enumerate(rules.entropy(engine).tolist()):
        every = enumerated(rules, b)
        total = sum(every.values()) or 1.0
        expected = sum(
            q / total * (-np.log(q / total) + sum(of_component[rule] for rule in rules_of(tree, 2)))
            for tree, q in every.items()
        )
        assert entropy == pytest.approx(expected)


def rules_of(tree: Tree, n: int) -> list[tuple[int, int, int]]:
    """(A, B, C) of every binary rule of a derivation."""
    phrases, tags = tree
    label = {(i, j): a for i, j, a in phrases} | {(i, i + 1): n + tag for i, tag in enumerate(tags)}
    split = {(i, j): next(k for k in range(i + 1, j) if (i, k) in label and (k, j) in label) for i, j, _ in phrases}
    return [(a, label[i, split[i, j]], label[split[i, j], j]) for i, j, a in phrases]


def test_a_sentence_without_a_derivation_has_none():
    rules = random_dense_rules(2, 3, [3, 3])
    words = rules.words.detach().clone()
    words[0, 1] = -torch.inf
    impossible = replace(rules, words=words)
    generators = [np.random.default_rng(b) for b in range(2)]
    for decoded in (
        impossible.argmax(), impossible.sample(generators)
    ):  # fmt: skip
        assert decoded[0] is None
        assert decoded[1] is not None
    assert impossible.top_k(3)[0] == []
    assert impossible.entropy()[0] == 0


def test_a_dense_tensor_that_is_too_large_is_refused(monkeypatch):
    rules = random_rules(3, 4, 5, [4])
    torch.testing.assert_close(inside(rules.dense()), inside(rules))
    monkeypatch.setattr("ramify.structures.low_rank.distribution.MOST_RULES", 100)
    with pytest.raises(ValueError, match="3 x 7 x 7"):
        rules.argmax()


def test_the_best_of_many_words():
    rules = random_dense_rules(4, 5, [60], sharpness=3)
    best = rules.argmax()[0]
    assert best.spans.shape == (59, 2)
    several = rules.top_k(5)[0]
    assert tree_of(several[0]) == tree_of(best)
    scores = [d.log_weight for d in several]
    assert scores == sorted(scores, reverse=True)
    assert len({tree_of(d) for d in several}) == 5
    assert best.log_weight < inside(rules)[0]


def test_the_k_best_of_a_deep_tree_need_no_deep_stack():
    rules = random_dense_rules(1, 2, [100])
    binary = rules.binary.clone()
    binary[..., :1, :] = -torch.inf  # all branches to the right
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 80)
    try:
        several = replace(rules, binary=binary).top_k(5)[0]
    finally:
        sys.setrecursionlimit(limit)
    assert len({tuple(d.tags) for d in several}) == 5
    assert (several[0].spans[:, 1] == 100).all()
