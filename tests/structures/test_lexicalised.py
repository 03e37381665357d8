"""Lexicalised rules: the reference compared with enumeration of all trees, the fast path with the reference."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from ramify.structures.distribution import Tree
from ramify.structures.fallback import reliable_log_partition, reliable_marginals
from ramify.structures.lexicalised import BilexicalPCFG
from ramify.structures.lexicalised.distribution import head_of_span
from tests.structures.lexicalised_trees import by_component, derivations, key, labelled, random_bilexical, weights
from tests.structures.random_rules import inside, marginals, parameters

ALL = ["reference", "compiled"]
SHAPES = [(3, 4, 7), (1, 1, 1), (1, 3, 2), (4, 1, 5), (5, 2, 3), (2, 2, 17)]
MANY = [(4, 1, 3), (8, 2, 3), (13, 1, 4), (3, 2, 70)]
"""Products take four nonterminals at a time, and rows have a block of 32 or 64 numbers or more"""
LENGTHS = [[6, 4, 2, 5], [1], [1, 2, 1], [9], [2, 2], [7, 1, 3]]


def random_scores(pcfg: BilexicalPCFG, seed: int = 1) -> torch.Tensor:
    """Span scores with a forbidden span, one that does not make any of the sentences impossible."""
    B, N, _ = pcfg.words.shape
    scores = torch.randn(B, N + 1, N + 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    if N > 2:
        scores[pcfg.lengths > 2, 0, 2] = -torch.inf
    return scores.to(pcfg.root.dtype).requires_grad_()


def gradients(pcfg: BilexicalPCFG, scores: torch.Tensor, log_z: torch.Tensor) -> dict[str, torch.Tensor]:
    upstream = torch.linspace(-1, 2, len(log_z), dtype=log_z.dtype)  # different per sentence, one negative
    possible = log_z > -torch.inf
    inputs = {**parameters(pcfg), "span_scores": scores}
    if not possible.any():
        return {}
    values = torch.autograd.grad((log_z * upstream)[possible].sum(), list(inputs.values()))
    return dict(zip(inputs, values, strict=True))


def assert_same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], tolerance: float) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(
            found[name].double(), value, rtol=tolerance, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
        )


@pytest.mark.parametrize("engine", ALL)
@pytest.mark.parametrize("shape", SHAPES)
def test_value_spans_arcs_and_every_gradient_equal_enumeration(engine, shape):
    pcfg = random_bilexical(*shape, [5, 1, 2, 3, 4])
    scores = random_scores(pcfg)
    log_z, found = inside(pcfg, scores, engine), marginals(pcfg, scores, engine)
    totals = []
    for b, length in enumerate(pcfg.lengths.tolist()):
        every = weights(pcfg.sentence(b), scores[b])
        if not every:
            totals.append(torch.tensor(-torch.inf, dtype=torch.float64))
            assert not found.arcs[b].any()
            continue
        totals.append(torch.stack(list(every.values())).sum().log())
        spans, arcs = torch.zeros_like(found.spans[b]), torch.zeros_like(found.arcs[b])
        for tree, weight in every.items():
            share = (weight.log() - totals[-1]).exp().detach()
            for i, j in tree.spans:
                spans[i, j] += share
            for q, head in tree.arcs.items():
                arcs[head, q] += share
        torch.testing.assert_close(found.spans[b], spans)
        torch.testing.assert_close(found.arcs[b], arcs)
        torch.testing.assert_close(arcs[:, :length].sum(0), torch.ones(length, dtype=torch.float64))
    expected = torch.stack(totals)
    torch.testing.assert_close(log_z, expected)
    enumerated = gradients(pcfg, scores, expected)
    enumerated["span_scores"] = enumerated["span_scores"].nan_to_num()  # 0 * inf at the forbidden span
    assert_same(gradients(pcfg, scores, log_z), enumerated, 1e-10)


@pytest.mark.parametrize("engine", ALL)
def test_labels_and_tags_equal_enumeration_of_all_labelled_trees(engine):
    pcfg = random_bilexical(2, 2, 3, [4, 3, 2], sharpness=2)
    scores = random_scores(pcfg).detach()
    found = marginals(pcfg, scores, engine)
    all_labels, all_tags = pcfg.with_span_scores(scores).symbol_posteriors()
    for b, length in enumerate(pcfg.lengths.tolist()):
        labels = torch.zeros(length + 1, length + 1, 2, dtype=torch.float64)
        tags = torch.zeros(length, 2, dtype=torch.float64)
        every = labelled(pcfg.sentence(b), scores[b])
        total = sum(every.values())
        for (spans, tree_tags, _), weight in every.items():
            for (i, j), label in spans:
                labels[i, j, label] += weight / total
            for i, tag in enumerate(tree_tags):
                tags[i, tag] += weight / total
        assert found.log_partition[b].exp().item() == pytest.approx(total)
        posts = slice(length + 1)
        torch.testing.assert_close(all_labels[b, posts, posts], labels)
        torch.testing.assert_close(all_tags[b, :length], tags)
        torch.testing.assert_close(found.best_label_posterior[b, posts, posts], labels.amax(-1))
        assert torch.equal(found.best_label[b, posts, posts], labels.argmax(-1))
        torch.testing.assert_close(found.best_tag_posterior[b, :length], tags.amax(-1))
        assert torch.equal(found.best_tag[b, :length], tags.argmax(-1))


@pytest.mark.parametrize("engine", ALL)
@pytest.mark.parametrize("length", range(2, 9))
def test_with_all_weights_one_the_lexicalised_trees_are_counted(engine, length):
    """Catalan's number of trees, and two choices of a head at each of their N - 1 nodes."""
    ones = torch.zeros(1, length, 1, dtype=torch.float64)
    pcfg = BilexicalPCFG(
        ones[0, 0], ones, ones[..., None], ones[0, :2], ones[0, :2].expand(2, 2, 1), ones, torch.tensor([length])
    )  # fmt: skip
    catalan = math.comb(2 * (length - 1), length - 1) // length
    assert inside(pcfg, engine=engine).exp().item() == pytest.approx(catalan * 2 ** (length - 1))


@pytest.mark.parametrize("engine", ALL)
def test_the_probabilities_of_all_sentences_sum_to_one(engine):
    """A grammar whose derivations end: the first nonterminal has the second and tags below it, the second only tags."""
    generator, words, n, p, r = torch.Generator().manual_seed(0), 3, 2, 2, 4

    def logits(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    inner = torch.arange(r) < 2  # the values of H that the second nonterminal has
    components = logits(words, n, r)
    components[:, 0, inner] = components[:, 1, ~inner] = -torch.inf
    head_child, other_child = logits(n + p, r), logits(2, n + p, r)
    for table in (head_child, other_child):
        table[..., 0, :] = -torch.inf
        table[..., 1, inner] = -torch.inf
    head_child, other_child = head_child.log_softmax(0), other_child.flatten(0, 1).log_softmax(0).view(2, n + p, r)
    root, root_words = logits(n).log_softmax(0), logits(words, n).log_softmax(0)
    total = 0.0
    for length in (2, 3, 4):
        ids = torch.tensor(list(product(range(words), repeat=length)))
        pcfg = BilexicalPCFG(
            root, root_words[ids], components.log_softmax(-1)[ids], head_child, other_child,
            word_table(words, r)[ids], torch.full((len(ids),), length),
        )  # fmt: skip
        found = float(inside(pcfg, engine=engine).exp().sum())
        assert found > 0.01
        total += found
    assert total == pytest.approx(1, abs=1e-12)


def word_table(words: int, r: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(words, r, generator=generator, dtype=torch.float64).log_softmax(0)


@pytest.mark.parametrize("shape", SHAPES + MANY)
@pytest.mark.parametrize("lengths", [*LENGTHS, [12, 11]])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 2e-5)])
def test_the_compiled_path_equals_the_reference(shape, lengths, dtype, tolerance):
    pcfg = random_bilexical(*shape, lengths, dtype=dtype)
    scores = random_scores(pcfg)
    exact = pcfg.replace(**{name: t.detach().double().requires_grad_() for name, t in parameters(pcfg).items()})
    exact_scores = scores.detach().double().requires_grad_()
    expected, found = inside(exact, exact_scores, "reference"), inside(pcfg, scores, "compiled")
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)
    assert_same(gradients(pcfg, scores, found), gradients(exact, exact_scores, expected), tolerance)


@pytest.mark.parametrize("shape", SHAPES + MANY)
def test_marginals_equal_the_reference(shape):
    pcfg = random_bilexical(*shape, [10, 3, 1, 5, 2], sharpness=2)
    scores = random_scores(pcfg).detach()
    expected, found = marginals(pcfg, scores, "reference"), marginals(pcfg, scores, "compiled")
    for name, value in expected.tensors().items():
        torch.testing.assert_close(
            getattr(found, name), value, rtol=1e-10, atol=1e-12, msg=lambda m, n=name: f"{n}: {m}"
        )


def test_gradients_by_finite_differences():
    pcfg = random_bilexical(2, 2, 3, [4, 3])
    scores = torch.zeros(2, 5, 5, dtype=torch.float64, requires_grad=True)

    def total(*tensors: torch.Tensor) -> torch.Tensor:
        *rest, span_scores = tensors
        return inside(BilexicalPCFG(*rest, pcfg.lengths), span_scores, "compiled")

    assert torch.autograd.gradcheck(total, (*parameters(pcfg).values(), scores))


@pytest.mark.parametrize("cores", [2, 5])
def test_the_cores_share_the_sentences(on_cores, cores):
    pcfg = random_bilexical(3, 4, 6, [6, 4, 1, 5, 2])
    scores = random_scores(pcfg)
    alone = gradients(pcfg, scores, inside(pcfg, scores, "compiled"))
    on_cores(cores)
    together = gradients(pcfg, scores, inside(pcfg, scores, "compiled"))
    assert all(torch.equal(together[name], value) for name, value in alone.items())


@pytest.mark.parametrize("engine", ALL)
def test_a_batch_equals_its_sentences_one_by_one(engine):
    pcfg = random_bilexical(3, 4, 5, [8, 4, 1, 2, 6])
    together, trees = inside(pcfg, engine=engine), marginals(pcfg, engine=engine)
    for b, length in enumerate(pcfg.lengths.tolist()):
        alone = pcfg.sentence(b).without_padding()
        assert alone.longest == length
        torch.testing.assert_close(inside(alone, engine=engine)[0], together[b])
        found = marginals(alone, engine=engine)
        torch.testing.assert_close(found.spans[0], trees.spans[b, : length + 1, : length + 1])
        torch.testing.assert_close(found.arcs[0], trees.arcs[b, : length + 1, :length])
    chosen = torch.tensor([3, 0])
    torch.testing.assert_close(inside(pcfg.select(chosen), engine=engine), together[chosen])


def test_every_word_has_one_head_in_longer_sentences():
    pcfg = random_bilexical(4, 5, 11, [25, 13], sharpness=3, dtype=torch.float32)
    arcs = pcfg.arc_posteriors()
    assert arcs.shape == (2, 26, 25)
    for b, length in enumerate(pcfg.lengths.tolist()):
        expected = torch.zeros(25)
        expected[:length] = 1
        torch.testing.assert_close(arcs[b].sum(0), expected, rtol=1e-4, atol=1e-4)
        assert arcs[b, 0].sum().item() == pytest.approx(1, abs=1e-4)
        assert not arcs[b, 1:].diagonal().any()


def test_the_best_tree_is_that_of_the_best_derivation_with_an_h_at_every_rule():
    pcfg = random_bilexical(2, 2, 3, [4, 1, 3, 2], sharpness=2)
    pcfg = pcfg.with_span_scores(random_scores(pcfg).detach())

    def best(*at):
        return by_component(*at).amax(0)

    for b, found in enumerate(pcfg.argmax()):
        every = labelled(pcfg.sentence(b), pcfg.span_scores[b], best)
        if not every:
            assert found is None
            continue
        assert math.exp(found.log_weight) == pytest.approx(max(every.values()))
        assert every[key(found)] == pytest.approx(max(every.values()))


def test_log_prob_of_labelled_trees_and_of_brackets():
    pcfg = random_bilexical(2, 2, 3, [4, 3], sharpness=2)
    pcfg = pcfg.with_span_scores(random_scores(pcfg).detach())
    trees = pcfg.argmax()
    with_labels, brackets = pcfg.log_prob(trees), pcfg.log_prob([Tree(tree.spans) for tree in trees])
    for b, tree in enumerate(trees):
        every = labelled(pcfg.sentence(b), pcfg.span_scores[b])
        total = sum(every.values())
        assert with_labels[b].exp().item() == pytest.approx(every[key(tree)] / total)
        spans = {tuple(span) for span in tree.spans.tolist()}
        alike = sum(weight for (labels, *_), weight in every.items() if {span for span, _ in labels} == spans)
        assert brackets[b].exp().item() == pytest.approx(alike / total)
    with_labels.sum().backward()
    assert all(tensor.grad.isfinite().all() for tensor in parameters(pcfg).values())
    with pytest.raises(ValueError, match="give heads"):
        pcfg.log_prob([Tree(tree.spans, tree.labels, tree.tags) for tree in trees])
    with pytest.raises(ValueError, match="k best"):
        pcfg.top_k(2)


def test_samples_come_as_often_as_they_are_probable():
    pcfg = random_bilexical(1, 2, 2, [3], sharpness=2)
    pcfg = pcfg.with_span_scores(random_scores(pcfg).detach())
    every, rng, draws = labelled(pcfg.sentence(0), pcfg.span_scores[0]), np.random.default_rng(0), 600
    total = sum(every.values())
    found = [pcfg.sample([rng])[0] for _ in range(draws)]
    seen = Counter(map(key, found))
    assert all(every[tree] > 0 for tree in seen)
    for tree, weight in every.items():
        share = weight / total
        # Five standard deviations, and one draw for the rare ones.
        assert abs(seen[tree] - draws * share) <= 5 * math.sqrt(draws * share * (1 - share)) + 1
    for tree in found[:20]:
        weights_with_h = derivations(pcfg.sentence(0), pcfg.span_scores[0])[key(tree)]
        assert any(math.exp(tree.log_weight) == pytest.approx(weight) for weight in weights_with_h)
    with pytest.raises(ValueError, match="generators"):
        pcfg.sample([])


@pytest.mark.parametrize("engine", ALL)
def test_the_entropy_is_that_of_derivations(engine):
    pcfg = random_bilexical(1, 2, 2, [3, 1, 2], sharpness=2)
    pcfg = pcfg.with_span_scores(random_scores(pcfg).detach())
    for b, entropy in enumerate(pcfg.entropy(engine).tolist()):
        found = derivations(pcfg.sentence(b), pcfg.span_scores[b]).values()
        p = np.array([weight for of_tree in found for weight in of_tree if weight > 0] or [1.0])
        p /= p.sum()
        assert entropy == pytest.approx(float(-(p * np.log(p)).sum()))


def test_a_sentence_without_a_tree_has_none():
    pcfg = random_bilexical(2, 3, 4, [3, 3])
    scores = torch.zeros(2, 4, 4, dtype=torch.float64)
    scores[0, 1, 2] = -torch.inf
    impossible = pcfg.with_span_scores(scores)
    for engine in ALL:
        log_z = impossible.log_partition(engine)
        assert log_z[0] == -torch.inf
        log_z[1].backward(retain_graph=True)
        assert not impossible.marginals(engine).arcs[0].any()
        assert all(tensor.grad.isfinite().all() for tensor in parameters(pcfg).values())
    assert impossible.argmax()[0] is None
    assert impossible.sample([np.random.default_rng(0)] * 2)[0] is None
    assert impossible.entropy()[0] == 0


@pytest.mark.parametrize("engine", ALL)
def test_a_word_that_no_head_emits_makes_its_sentence_impossible(engine):
    pcfg = random_bilexical(2, 3, 4, [3, 3])
    root_words, words = pcfg.root_words.detach().clone(), pcfg.words.detach().clone()
    root_words[0, 1] = words[0, 1] = -torch.inf
    impossible = replace(pcfg, root_words=root_words, words=words)
    log_z = impossible.log_partition(engine)
    assert log_z[0] == -torch.inf
    torch.testing.assert_close(log_z[1], pcfg.log_partition(engine)[1])
    found, expected = impossible.marginals(engine), pcfg.marginals(engine)
    assert not found.arcs[0].any()
    torch.testing.assert_close(found.arcs[1], expected.arcs[1])


def test_gradients_and_posteriors_stay_finite_where_numbers_underflow():
    for seed in range(6):
        pcfg = random_bilexical(4, 5, 6, [25, 2], seed=seed, sharpness=60, dtype=torch.float32)
        scores = torch.zeros(2, 26, 26, requires_grad=True)
        log_z = inside(pcfg, scores, "compiled")
        assert not log_z.isnan().any()
        inputs = {**parameters(pcfg), "span_scores": scores}
        found = torch.autograd.grad(log_z, list(inputs.values()), torch.ones_like(log_z))
        for name, gradient in zip(inputs, found, strict=True):
            assert gradient.isfinite().all(), (seed, name)
        for name, value in marginals(pcfg, engine="compiled").tensors().items():
            assert not value.isnan().any(), (seed, name)
            assert name == "log_partition" or value.isfinite().all(), (seed, name)


@pytest.mark.parametrize("seed", [0, 3])
def test_underflow_is_recomputed_in_log_space(seed):
    pcfg = random_bilexical(3, 4, 5, [8, 8], sharpness=200, seed=seed).to(torch.float32)
    exact = pcfg.to(torch.float64).marginals("reference")
    found, in_log_space = reliable_marginals(pcfg)
    assert in_log_space.any()
    torch.testing.assert_close(found.spans.double(), exact.spans, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.arcs.double(), exact.arcs, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(reliable_log_partition(pcfg)[0], exact.log_partition, rtol=1e-5, atol=1e-3)


def test_tensors_that_do_not_fit_together_are_refused():
    pcfg = random_bilexical(2, 3, 4, [4, 3])
    with pytest.raises(ValueError, match="root_words has shape"):
        pcfg.replace(words=pcfg.words[:, :3])
    with pytest.raises(ValueError, match="span_scores has shape"):
        pcfg.with_span_scores(torch.zeros(2, 4, 4))
    with pytest.raises(ValueError, match="lengths must lie between 1 and 4"):
        pcfg.replace(lengths=torch.tensor([5, 1]))
    with pytest.raises(ValueError, match="2 heads"):
        head_of_span(np.array([0, 1, 1]), 1, 3)


def test_the_compiled_engine_refuses_unsupported_tensors():
    with pytest.raises(ValueError, match="takes float32 or float64"):
        random_bilexical(1, 1, 1, [2]).to(torch.float16).log_partition("compiled")


def test_any_word_at_a_place_is_the_sum_over_words_that_head_nothing_else():
    """With components that do not depend on the head word, which may be any word then too."""
    torch.manual_seed(0)
    n, p, r, words = 2, 2, 3, 4
    root, root_words = torch.randn(n).log_softmax(0), torch.randn(words, n).log_softmax(0)
    components = torch.randn(n, r).log_softmax(-1).expand(words, n, r)
    head_child = torch.randn(n + p, r).log_softmax(0)
    other_child = torch.randn(2 * (n + p), r).log_softmax(0).view(2, n + p, r)
    table = torch.randn(words, r).log_softmax(0)
    ids = torch.tensor([[1, word, 3] for word in range(words)])
    every = BilexicalPCFG(
        root, root_words[ids], components[ids], head_child, other_child, table[ids], torch.full((words,), 3)
    )
    opened = every.sentence(0).with_any_word(torch.tensor([[False, True, False]]))
    torch.testing.assert_close(opened.log_partition()[0], every.log_partition().logsumexp(0))
