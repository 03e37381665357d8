"""Tests shared by all kinds of distributions, compared with enumeration: every method respects span scores."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch

from ramify.structures.distribution import Tree, TreeDistribution
from ramify.structures.engines import Engine, engines_of, register_engine
from ramify.structures.fallback import reliable_log_partition, reliable_marginals
from ramify.structures.low_rank import LowRankPCFG
from ramify.structures.pcfg import PCFG
from tests.structures.brute_force import bracketings, derivations, spans_of
from tests.structures.random_rules import random_dense_rules, random_rules, random_scores

LENGTHS = [4, 1, 3, 2]
KINDS = ["dense", "dense, per sentence", "low rank", "without a head"]
every_kind = pytest.mark.parametrize("kind", KINDS)


def scored(kind: str, lengths=LENGTHS, n: int = 2, p: int = 2) -> PCFG:
    if kind.startswith("dense"):
        pcfg = random_dense_rules(n, p, lengths, per_sentence=kind.endswith("per sentence"), sharpness=2)
    else:
        pcfg = random_rules(n, p, None if kind == "without a head" else 3, lengths, sharpness=2)
    return pcfg.with_span_scores(random_scores(pcfg).detach())


def enumerated(pcfg: PCFG, b: int) -> dict[tuple, float]:
    """Every labelled tree of sentence b with its weight: (labels by span, tags) -> weight."""
    if int(pcfg.lengths[b]) == 1:
        return {}
    scores = pcfg.span_scores[b]
    found = {}
    for d in derivations(pcfg.with_span_scores(None), b):
        spans = [*d.labels, *((i, i + 1) for i in range(len(d.tags)))]
        weight = d.probability * math.exp(sum(float(scores[i, j]) for i, j in spans))
        found[tuple(sorted(d.labels.items(), key=lambda item: (item[0][0], -item[0][1]))), d.tags] = weight
    return found


def key(tree: Tree) -> tuple:
    spans = map(tuple, tree.spans.tolist())
    return tuple(zip(spans, tree.labels.tolist(), strict=True)), tuple(tree.tags.tolist())


@every_kind
def test_partition_argmax_top_k_and_entropy(kind):
    pcfg = scored(kind)
    log_z, best, several, entropies = pcfg.log_partition().detach(), pcfg.argmax(), pcfg.top_k(7), pcfg.entropy()
    for b in range(len(LENGTHS)):
        every = {tree: weight for tree, weight in enumerated(pcfg, b).items() if weight > 0}
        if not every:
            assert (float(log_z[b]), best[b], several[b], float(entropies[b])) == (-math.inf, None, [], 0)
            continue
        total = sum(every.values())
        assert float(log_z[b]) == pytest.approx(math.log(total))
        assert math.exp(best[b].log_weight) == pytest.approx(max(every.values()))
        assert every[key(best[b])] == pytest.approx(max(every.values()))
        expected = sorted(every.values(), reverse=True)[:7]
        assert [math.exp(tree.log_weight) for tree in several[b]] == pytest.approx(expected)
        assert [every[key(tree)] for tree in several[b]] == pytest.approx(expected)
        if kind != "low rank":  # whose derivations have rank components too
            shares = np.array(list(every.values())) / total
            assert float(entropies[b]) == pytest.approx(float(-(shares * np.log(shares)).sum()))


@every_kind
def test_log_prob_of_labelled_trees_and_of_brackets(kind):
    pcfg = scored(kind, [4, 3])
    every = [enumerated(pcfg, b) for b in range(2)]
    labelled = [tree for tree, *_ in pcfg.top_k(1)]
    brackets = [Tree(tree.spans) for tree in labelled]
    for b, (log_prob, of_brackets) in enumerate(
        zip(pcfg.log_prob(labelled).tolist(), pcfg.log_prob(brackets).tolist(), strict=True)
    ):
        total = sum(every[b].values())
        assert math.exp(log_prob) == pytest.approx(every[b][key(labelled[b])] / total)
        spans = {tuple(span) for span in labelled[b].spans.tolist()}
        alike = sum(weight for (labels, _), weight in every[b].items() if {span for span, _ in labels} == spans)
        assert math.exp(of_brackets) == pytest.approx(alike / total)


@every_kind
def test_log_prob_is_differentiable(kind):
    pcfg = scored(kind, [3])
    tree = pcfg.argmax()[0]
    for given in (tree, Tree(tree.spans)):
        pcfg.log_prob([given]).sum().backward()
        assert all(tensor.grad.isfinite().all() for tensor in pcfg.tensors().values() if tensor.requires_grad)


@every_kind
def test_samples_follow_the_scores(kind):
    pcfg = scored(kind, [3])
    every = enumerated(pcfg, 0)
    total, rng = sum(every.values()), np.random.default_rng(0)
    seen = Counter(key(pcfg.sample([rng])[0]) for _ in range(300))
    assert all(every[tree] > 0 for tree in seen)
    likeliest = max(every, key=every.get)
    share = every[likeliest] / total
    assert seen[likeliest] / 300 == pytest.approx(share, abs=5 * math.sqrt(share * (1 - share) / 300))


@every_kind
def test_symbol_posteriors_add_up_to_the_marginals(kind):
    pcfg = scored(kind)
    labels, tags = pcfg.symbol_posteriors()
    found = pcfg.marginals()
    wide = torch.ones_like(found.spans).triu(2)
    torch.testing.assert_close(labels.sum(-1) * wide, found.spans * wide)
    torch.testing.assert_close(tags.sum(-1), found.spans.diagonal(1, 1, 2))
    torch.testing.assert_close(labels.amax(-1) * wide, found.best_label_posterior)


@every_kind
def test_a_selection_is_the_same_distribution_of_fewer_sentences(kind):
    pcfg = scored(kind)
    chosen = torch.tensor([True, False, False, True])
    torch.testing.assert_close(pcfg.select(chosen).log_partition(), pcfg.log_partition()[chosen])
    for b in range(len(pcfg)):
        torch.testing.assert_close(pcfg.sentence(b).log_partition()[0], pcfg.log_partition()[b])


@every_kind
def test_a_second_backward_pass_is_the_same(kind):
    pcfg = scored(kind, [4, 3])
    total, inputs = pcfg.log_partition().sum(), [t for t in pcfg.tensors().values() if t.requires_grad]
    first = torch.autograd.grad(total, inputs, retain_graph=True)
    second = torch.autograd.grad(total, inputs)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def underflowing() -> PCFG:
    """Float32 loses some derivations of the first sentence and all of the second."""
    pcfg = random_rules(3, 4, 5, [10, 10], sharpness=300, seed=4)
    return pcfg.to(torch.float32)


def test_underflow_is_recomputed_in_log_space():
    pcfg = underflowing()
    exact = pcfg.to(torch.float64).marginals("reference")
    found, _ = reliable_marginals(pcfg)
    torch.testing.assert_close(found.spans.double(), exact.spans, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(reliable_log_partition(pcfg)[0], exact.log_partition, rtol=1e-5, atol=1e-3)


class Bracketings(TreeDistribution):
    """Not a PCFG: unlabelled trees, each weighted by the scores of its spans alone."""

    def __init__(self, lengths, span_scores) -> None:
        self.lengths, self.span_scores = lengths, span_scores

    @property
    def longest(self) -> int:
        return self.span_scores.shape[1] - 1

    def tensors(self):
        return {"span_scores": self.span_scores}

    def replace(self, **tensors):
        return Bracketings(**{"lengths": self.lengths, "span_scores": self.span_scores} | tensors)


def log_sum_over_trees(distribution: Bracketings) -> torch.Tensor:
    result = []
    for b, length in enumerate(distribution.lengths.tolist()):
        trees = bracketings(0, length)
        weights = [sum(distribution.span_scores[b, i, j] for i, j in spans_of(tree) if j - i > 1) for tree in trees]
        result.append(torch.stack([torch.as_tensor(weight) for weight in weights]).logsumexp(0))
    return torch.stack(result)


def test_another_kind_needs_an_engine_and_nothing_else():
    register_engine(Bracketings, "reference", Engine(log_sum_over_trees))
    assert list(engines_of(Bracketings)) == ["reference"]
    with pytest.raises(ValueError, match="already has an engine"):
        register_engine(Bracketings, "reference", Engine(log_sum_over_trees))
    lengths = torch.tensor([5, 3])
    scores = torch.randn(2, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    distribution = Bracketings(lengths, scores)
    found = distribution.marginals()
    torch.testing.assert_close(found.spans.triu(2).sum((1, 2)), torch.tensor([4.0, 2.0], dtype=torch.float64))
    assert found.best_label is None
    assert torch.equal(reliable_marginals(distribution)[0].spans, found.spans)
    uniform = Bracketings(lengths, torch.zeros_like(scores))
    torch.testing.assert_close(uniform.log_partition().exp(), torch.tensor([14.0, 2.0], dtype=torch.float64))  # Catalan
    torch.testing.assert_close(uniform.entropy().exp(), torch.tensor([14.0, 2.0], dtype=torch.float64))
    right = [Tree(np.array([[i, n] for i in range(n - 1)], np.int32)) for n in (5, 3)]
    torch.testing.assert_close(uniform.log_prob(right).exp(), torch.tensor([1 / 14, 1 / 2], dtype=torch.float64))
    with pytest.raises(ValueError, match="Bracketings"):
        uniform.top_k(2)


@pytest.mark.parametrize("seed", [10, 53, 99])
def test_a_sentence_that_is_lost_although_every_number_fits_is_found_in_log_space(seed):
    """No log-probability is below -79, so none underflows alone, but their products do."""
    generator = torch.Generator().manual_seed(seed)

    def table(*shape: int) -> torch.Tensor:
        return -79 * torch.randint(0, 2, shape, generator=generator).float()

    pcfg = LowRankPCFG(table(2), table(2, 2), table(4, 2), table(4, 2), table(1, 6, 2), torch.tensor([6]))
    assert pcfg.log_partition()[0] == -torch.inf
    found, in_log_space = reliable_log_partition(pcfg)
    torch.testing.assert_close(found, pcfg.to(torch.float64).log_partition("reference"), rtol=1e-6, atol=1e-4)
    assert in_log_space.tolist() == [True]
