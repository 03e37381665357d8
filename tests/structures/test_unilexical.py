"""Rules that depend only on the parent's head word: the reference compared with enumeration of all trees."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch

from ramify.structures.distribution import Tree
from ramify.structures.fallback import reliable_marginals
from ramify.structures.lexicalised import BilexicalPCFG, UnilexicalPCFG
from tests.structures.lexicalised_trees import (
    key,
    labelled,
    random_unilexical,
    unilexical_tensor,
    weights,
)  # fmt: skip
from tests.structures.random_rules import parameters, random_scores

SHAPES = [(2, 3), (1, 1), (1, 3), (3, 1)]


def scored(n: int, p: int, lengths: list[int], **options: float) -> UnilexicalPCFG:
    pcfg = random_unilexical(n, p, lengths, **options)
    return pcfg.with_span_scores(random_scores(pcfg).detach())


@pytest.mark.parametrize("shape", SHAPES)
def test_value_spans_arcs_and_every_gradient_equal_enumeration(shape):
    pcfg = scored(*shape, [5, 1, 2, 3, 4])
    log_z, found = pcfg.log_partition(), pcfg.marginals()
    total = torch.zeros((), dtype=torch.float64)
    for b, length in enumerate(pcfg.lengths.tolist()):
        every = weights(pcfg.sentence(b), pcfg.span_scores[b], unilexical_tensor)
        if not every:
            assert log_z[b] == -torch.inf
            assert not found.arcs[b].any()
            continue
        expected = torch.stack(list(every.values())).sum().log()
        total = total + (b + 1) * expected
        torch.testing.assert_close(log_z[b], expected)
        spans, arcs = torch.zeros_like(found.spans[b]), torch.zeros_like(found.arcs[b])
        for tree, weight in every.items():
            share = (weight.log() - expected).exp().detach()
            for i, j in tree.spans:
                spans[i, j] += share
            for q, head in tree.arcs.items():
                arcs[head, q] += share
        torch.testing.assert_close(found.spans[b], spans)
        torch.testing.assert_close(found.arcs[b], arcs)
        torch.testing.assert_close(arcs[:, :length].sum(0), torch.ones(length, dtype=torch.float64))
    inputs = list(parameters(pcfg).values())
    possible = log_z > -torch.inf
    ours = torch.autograd.grad((log_z * torch.arange(1, 6))[possible].sum(), inputs)
    for name, one, other in zip(parameters(pcfg), ours, torch.autograd.grad(total, inputs), strict=True):
        torch.testing.assert_close(one, other, msg=lambda m, n=name: f"{n}: {m}")


def test_labels_tags_best_trees_and_entropy_equal_enumeration():
    pcfg = scored(2, 2, [4, 1, 3, 2], sharpness=2)
    found, best, several, entropies = pcfg.marginals(), pcfg.argmax(), pcfg.top_k(7), pcfg.entropy()
    all_labels, all_tags = pcfg.symbol_posteriors()
    for b, length in enumerate(pcfg.lengths.tolist()):
        every = labelled(pcfg.sentence(b), pcfg.span_scores[b], unilexical_tensor)
        every = {tree: weight for tree, weight in every.items() if weight > 0}
        if not every:
            assert (best[b], several[b], float(entropies[b])) == (None, [], 0)
            continue
        total = sum(every.values())
        labels = torch.zeros(length + 1, length + 1, 2, dtype=torch.float64)
        tags = torch.zeros(length, 2, dtype=torch.float64)
        for (spans, tree_tags, _), weight in every.items():
            for (i, j), label in spans:
                labels[i, j, label] += weight / total
            for i, tag in enumerate(tree_tags):
                tags[i, tag] += weight / total
        posts = slice(length + 1)
        torch.testing.assert_close(all_labels[b, posts, posts], labels)
        torch.testing.assert_close(all_tags[b, :length], tags)
        assert torch.equal(found.best_label[b, posts, posts], labels.argmax(-1))
        assert torch.equal(found.best_tag[b, :length], tags.argmax(-1))
        expected = sorted(every.values(), reverse=True)[:7]
        assert [math.exp(tree.log_weight) for tree in several[b]] == pytest.approx(expected)
        assert [every[key(tree)] for tree in several[b]] == pytest.approx(expected)
        assert every[key(best[b])] == pytest.approx(expected[0])
        shares = np.array(list(every.values())) / total
        assert float(entropies[b]) == pytest.approx(float(-(shares * np.log(shares)).sum()))
    with pytest.raises(ValueError, match="at least 1"):
        pcfg.top_k(0)


def test_log_prob_and_samples():
    pcfg = scored(1, 2, [3], sharpness=2)
    every = labelled(pcfg.sentence(0), pcfg.span_scores[0], unilexical_tensor)
    total, (tree,) = sum(every.values()), pcfg.argmax()
    assert pcfg.log_prob([tree]).exp().item() == pytest.approx(every[key(tree)] / total)
    spans = {tuple(span) for span in tree.spans.tolist()}
    alike = sum(weight for (labels, *_), weight in every.items() if {span for span, _ in labels} == spans)
    assert pcfg.log_prob([Tree(tree.spans)]).exp().item() == pytest.approx(alike / total)
    rng, draws = np.random.default_rng(0), 500
    found = [pcfg.sample([rng])[0] for _ in range(draws)]
    assert all(math.exp(each.log_weight) == pytest.approx(every[key(each)]) for each in found)
    seen = Counter(map(key, found))
    for each, weight in every.items():
        share = weight / total
        assert abs(seen[each] - draws * share) <= 5 * math.sqrt(draws * share * (1 - share)) + 1


def test_they_are_bilexical_rules_with_an_h_for_every_pair_of_children():
    """H = (side, head child, other child) gives the same numbers in another way."""
    pcfg = random_unilexical(2, 2, [6, 4])
    (B, N, m), n = pcfg.words.shape, 2
    eye = torch.eye(m, dtype=torch.float64)
    head_child = eye[:, None, :, None].expand(m, 2, m, m).flatten(1)
    side = torch.eye(2, dtype=torch.float64)
    other_child = (side[:, None, :, None, None] * eye[None, :, None, None, :]).expand(2, m, 2, m, m).flatten(2)
    words = pcfg.words[:, :, None, None].expand(B, N, 2, m, m).flatten(2)
    same = BilexicalPCFG(
        pcfg.root, pcfg.words[..., :n], pcfg.rules.flatten(3), head_child.log(), other_child.log(), words, pcfg.lengths
    )
    torch.testing.assert_close(same.log_partition(), pcfg.log_partition())
    torch.testing.assert_close(same.arc_posteriors(), pcfg.arc_posteriors())


def test_numbers_far_apart_and_impossible_rules():
    sharp = random_unilexical(2, 2, [6, 2], sharpness=200)
    assert sharp.prepared() is None
    found, _ = reliable_marginals(sharp.to(torch.float32))
    torch.testing.assert_close(found.arcs.double(), sharp.marginals().arcs, rtol=1e-3, atol=1e-3)
    assert sharp.log_partition().isfinite().all()
    pcfg = random_unilexical(2, 2, [4])
    rules = pcfg.rules.detach().clone()
    rules[:, :, 0] = -torch.inf
    only = pcfg.replace(rules=rules.requires_grad_())
    only.log_partition().sum().backward()
    assert rules.grad.isfinite().all()
    every = weights(only.sentence(0), only.scores()[0], unilexical_tensor)
    torch.testing.assert_close(only.log_partition()[0], sum(every.values()).log())
    with pytest.raises(ValueError, match="rules has shape"):
        pcfg.replace(words=pcfg.words[:, :3])
