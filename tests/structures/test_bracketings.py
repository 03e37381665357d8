"""The tree CRF compared with enumeration: values, posteriors and gradients of both engines, and single trees."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from torch import Tensor

from ramify.runtime import threads
from ramify.structures.bracketings import Bracketings, compiled
from ramify.structures.distribution import Tree
from ramify.structures.fallback import reliable_marginals
from tests.structures.brute_force import bracketings, spans_of

LENGTHS = [6, 1, 3, 5, 2]
ENGINES = ["compiled", "reference"]
every_engine = pytest.mark.parametrize("engine", ENGINES)
Spans = frozenset[tuple[int, int]]


def random_trees(lengths=LENGTHS, *, seed: int = 0, sharpness: float = 2.0, forbidden: float = 0.0) -> Bracketings:
    """With random potentials and span scores; a share of the longer spans is forbidden by one of them."""
    generator = torch.Generator().manual_seed(seed)
    shape = (len(lengths), max(lengths) + 1, max(lengths) + 1)

    def table() -> Tensor:
        values = sharpness * torch.randn(shape, generator=generator, dtype=torch.float64)
        out = torch.rand(shape, generator=generator) < forbidden / 2
        return values.masked_fill(out.triu(2), -torch.inf).requires_grad_()

    return Bracketings(table(), torch.tensor(lengths), table())


def enumerated(trees: Bracketings, b: int) -> dict[Spans, Tensor]:
    """Every tree of sentence b, as its set of spans, single words included, with its log-weight; differentiable."""
    weights = trees.log_potentials[b] + trees.span_scores[b]
    every = {}
    for tree in bracketings(0, int(trees.lengths[b])):
        spans = spans_of(tree)
        log_weight = torch.stack([weights[i, j] for i, j in spans]).sum()
        if log_weight > -torch.inf:
            every[spans] = log_weight
    return every


def key(tree: Tree, length: int) -> Spans:
    words = {(i, i + 1) for i in range(length)}
    return frozenset({(int(i), int(j)) for i, j in tree.spans} | words)


@every_engine
@pytest.mark.parametrize("forbidden", [0.0, 0.4])
def test_partition_posteriors_and_gradients(engine, forbidden):
    """Each sentence is differentiated with another weight."""
    trees = random_trees(forbidden=forbidden, seed=3)
    log_z, upstream = trees.log_partition(engine), torch.tensor([1.0, -2.0, 0.5, 3.0, 0.25], dtype=torch.float64)
    found = trees.marginals(engine)
    expected_spans = torch.zeros_like(found.spans)
    expected_total = torch.zeros((), dtype=torch.float64)
    possible = []
    for b, length in enumerate(LENGTHS):
        every = enumerated(trees, b)
        possible.append(bool(every))
        if not every:
            assert log_z[b] == found.log_partition[b] == -torch.inf
            continue
        total = torch.stack(list(every.values())).logsumexp(0)
        torch.testing.assert_close(log_z[b], total)
        torch.testing.assert_close(found.log_partition[b], total.detach())
        for spans, log_weight in every.items():
            for i, j in spans:
                expected_spans[b, i, j] += (log_weight - total).exp().detach()
        assert expected_spans[b].triu(2).sum() == pytest.approx(length - 1)
        expected_total = expected_total + upstream[b] * total
    torch.testing.assert_close(found.spans, expected_spans)
    if forbidden:
        assert len(set(possible)) == 2  # some sentences have trees, some have none
    inputs = [trees.log_potentials, trees.span_scores]
    expected = torch.autograd.grad(expected_total, inputs)
    for ours, theirs in zip(torch.autograd.grad((upstream * log_z).sum(), inputs), expected, strict=True):
        torch.testing.assert_close(ours, theirs)


@every_engine
def test_argmax_top_k_and_entropy(engine):
    trees = random_trees()
    best, several, entropies = trees.argmax(), trees.top_k(5), trees.entropy(engine)
    for b, length in enumerate(LENGTHS):
        every = {spans: weight.item() for spans, weight in enumerated(trees, b).items()}
        ordered = sorted(every.values(), reverse=True)[:5]
        assert best[b].log_weight == pytest.approx(ordered[0])
        assert every[key(best[b], length)] == pytest.approx(ordered[0])
        assert [tree.log_weight for tree in several[b]] == pytest.approx(ordered)
        assert [every[key(tree, length)] for tree in several[b]] == pytest.approx(ordered)
        shares = np.exp(np.array(list(every.values())) - trees.log_partition()[b].item())
        assert float(entropies[b]) == pytest.approx(float(-(shares * np.log(shares)).sum()), abs=1e-9)
        for tree in (best[b], *several[b]):
            assert tree.labels is None
            assert tree.tags is None


def test_the_best_tree_need_not_have_the_split_with_the_most_weight():
    """The balanced tree weighs 1.96, and 1.4 + 1 the two trees that split after the first word."""
    scores = torch.zeros(1, 5, 5)
    scores[0, 0, 2] = scores[0, 2, 4] = math.log(1.4)
    assert Bracketings(scores, torch.tensor([4])).argmax()[0].spans.tolist() == [[0, 4], [0, 2], [2, 4]]


def test_spans_are_listed_in_preorder():
    tree = random_trees([6]).argmax()[0]
    assert sorted(tree.spans.tolist(), key=lambda span: (span[0], -span[1])) == tree.spans.tolist()


@every_engine
def test_log_prob(engine):
    lengths = [5, 1, 4]
    trees = random_trees(lengths)
    given = [found[-1] for found in trees.top_k(3)]
    log_prob = trees.log_prob(given, engine)
    for b, length in enumerate(lengths):
        expected = enumerated(trees, b)[key(given[b], length)] - trees.log_partition()[b]
        torch.testing.assert_close(log_prob[b], expected)
    log_prob.sum().backward()
    assert trees.log_potentials.grad.isfinite().all()


def test_samples_have_the_frequencies_of_the_trees():
    trees = random_trees([4], sharpness=0.7)
    every = {spans: weight.exp().item() for spans, weight in enumerated(trees, 0).items()}
    total, rng, draws = sum(every.values()), np.random.default_rng(0), 1000
    seen = Counter(key(trees.sample([rng])[0], 4) for _ in range(draws))
    for spans, weight in every.items():
        share = weight / total
        assert seen[spans] / draws == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / draws))


@pytest.mark.parametrize("span", [(0, 3), (1, 2)])
def test_sentences_without_a_tree_give_none(span):
    forbidden = torch.zeros(2, 4, 4, dtype=torch.bool)
    forbidden[0, span[0], span[1]] = True
    trees = random_trees([3, 2]).forbid(forbidden)
    assert [trees.log_partition(engine)[0] for engine in ENGINES] == [-torch.inf] * 2
    assert not trees.marginals().spans[0].any()
    assert trees.argmax()[0] is None
    assert trees.top_k(2)[0] == []
    assert trees.sample([np.random.default_rng(0)] * 2)[0] is None
    assert trees.entropy()[0] == 0
    assert len(trees.argmax()[1].spans) == 1


@every_engine
def test_uniform_trees_are_counted_by_catalan_numbers(engine):
    lengths = torch.tensor([10, 5, 1])
    trees = Bracketings(torch.zeros(3, 11, 11, dtype=torch.float64), lengths)
    torch.testing.assert_close(trees.log_partition(engine).exp(), torch.tensor([4862.0, 14.0, 1.0]).double())
    mirrored = trees.marginals(engine).spans[0].flip(0, 1).T
    torch.testing.assert_close(trees.marginals(engine).spans[0], mirrored)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sharpness", [1.0, 300.0])
def test_the_compiled_engine_is_the_reference_on_longer_sentences(dtype, sharpness):
    """Even if the scores of trees differ extremely."""
    trees = random_trees([23, 40, 9, 1, 31], sharpness=sharpness, forbidden=0.1, seed=1).to(dtype)
    trees = trees.replace(**{name: tensor.detach().requires_grad_() for name, tensor in trees.tensors().items()})
    exact = trees.to(torch.float64)
    ours, expected = trees.marginals("compiled"), exact.marginals("reference")
    assert ours.spans.dtype == ours.log_partition.dtype == dtype
    torch.testing.assert_close(ours.log_partition, expected.log_partition.to(dtype))
    torch.testing.assert_close(ours.spans, expected.spans.to(dtype), rtol=1e-5, atol=1e-6)
    assert expected.log_partition.isfinite().any()
    found = torch.autograd.grad(trees.log_partition("compiled").sum(), trees.log_potentials)[0]
    torch.testing.assert_close(found, ours.spans)
    assert not reliable_marginals(trees)[1].any()


def test_padding_does_not_count():
    alone, together = random_trees([4]), random_trees([4, 7])
    for name in ("log_potentials", "span_scores"):
        getattr(together, name).data[0] = torch.inf  # would be noticed
        getattr(together, name).data[0, :5, :5] = getattr(alone, name).data[0]
    found = together.marginals("compiled")
    torch.testing.assert_close(found.spans[0, :5, :5], alone.marginals().spans[0])
    assert found.spans[0].sum() == pytest.approx(7)


def test_each_core_takes_some_of_the_sentences(monkeypatch):
    trees = random_trees([7, 3, 8, 1, 5, 6, 2])
    expected = trees.marginals()
    monkeypatch.setattr(compiled, "WORK_OF_SPLIT", 1e9)
    monkeypatch.setattr(threads, "available", lambda: 3)
    found = trees.marginals("compiled")
    assert torch.equal(found.spans, expected.spans)
    assert torch.equal(found.log_partition, expected.log_partition)


def test_the_reference_serves_other_dtypes_and_the_compiled_engine_says_why_not():
    trees = random_trees([4, 3]).to(torch.bfloat16)
    assert trees.log_partition().dtype == torch.bfloat16
    with pytest.raises(ValueError, match="takes float32 or float64 on a CPU"):
        trees.log_partition("compiled")


def test_wrong_arguments_are_refused():
    scores = torch.zeros(2, 4, 4)
    for potentials, lengths, message in (
        (torch.zeros(2, 4, 5), [3, 2], "log_potentials has shape"),
        (scores, [3], "lengths has shape"),
        (scores, [4, 2], "between 1 and 3"),
        (scores, [3, 0], "between 1 and 3"),
    ):
        with pytest.raises(ValueError, match=message):
            Bracketings(potentials, torch.tensor(lengths))
    trees = Bracketings(scores, torch.tensor([3, 2]))
    with pytest.raises(ValueError, match="at least 1"):
        trees.top_k(0)
    with pytest.raises(ValueError, match="1 generators for 2 sentences"):
        trees.sample([np.random.default_rng(0)])
