"""Decoders compared with the best of all trees."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ramify.decoding.best_trees import best_trees, mbr, mbr_labelled
from ramify.structures.distribution import Marginals
from tests.structures.brute_force import bracketings, spans_of
from tests.structures.random_rules import marginals, random_rules


def wide(spans) -> set[tuple[int, int]]:
    return {(i, j) for i, j in spans if j - i > 1}


@pytest.mark.parametrize(("decoder", "field"), [(mbr, "spans"), (mbr_labelled, "best_label_posterior")])
def test_no_tree_has_a_higher_expected_score(decoder, field):
    rules = random_rules(4, 5, 6, lengths=[7, 3, 2, 1, 5], sharpness=3)
    found = marginals(rules)
    scores = getattr(found, field)
    for b, spans in enumerate(decoder(found, rules.lengths)):
        length = int(rules.lengths[b])
        best = max(sum(float(scores[b, i, j]) for i, j in wide(spans_of(tree))) for tree in bracketings(0, length))
        assert spans.shape == (length - 1, 2)
        assert sum(float(scores[b, i, j]) for i, j in spans) == pytest.approx(best)


def test_the_best_spans_and_the_best_labels_can_give_different_trees():
    """A more probable span may have less probable labels."""
    spans, labels = torch.zeros(1, 4, 4), torch.zeros(1, 4, 4)
    spans[0, 0, 2], spans[0, 1, 3] = 0.6, 0.4
    labels[0, 0, 2], labels[0, 1, 3] = 0.2, 0.35
    numbers, tags = torch.zeros(1, 4, 4, dtype=torch.long), torch.zeros(1, 3, dtype=torch.long)
    found = Marginals(torch.zeros(1), spans, numbers, labels, tags, torch.ones(1, 3))
    assert mbr(found, torch.tensor([3]))[0].tolist() == [[0, 3], [0, 2]]
    assert mbr_labelled(found, torch.tensor([3]))[0].tolist() == [[0, 3], [1, 3]]


def test_the_result_is_a_tree_in_preorder():
    lengths = torch.tensor([6, 4])
    scores = torch.rand(2, 7, 7, generator=torch.Generator().manual_seed(3))
    for spans, length in zip(best_trees(scores, lengths), [6, 4], strict=True):
        assert wide(map(tuple, spans.tolist())) in [wide(spans_of(tree)) for tree in bracketings(0, length)]
        assert spans.tolist() == sorted(spans.tolist(), key=lambda s: (s[0], -s[1]))


def test_ties_go_to_the_middle():
    assert best_trees(torch.zeros(1, 5, 5), torch.tensor([4]))[0].tolist() == [[0, 4], [0, 2], [2, 4]]


def test_ties_favour_neither_branching():
    """With equal scores, the numbers of spans at the two ends of the sentence are equal."""
    lengths = torch.arange(2, 60)
    trees = best_trees(torch.zeros(len(lengths), 60, 60), lengths)
    at_the_start = sum(int((spans[:, 0] == 0).sum()) for spans in trees)
    at_the_end = sum(int((spans[:, 1] == len(spans) + 1).sum()) for spans in trees)
    assert at_the_start == pytest.approx(at_the_end, rel=0.1)


def test_the_bonus_is_added_to_spans_at_one_end_of_the_sentence():
    lengths = torch.tensor([6, 4])
    scores = torch.rand(2, 7, 7, generator=torch.Generator().manual_seed(5))
    right, left = scores.clone(), scores.clone()
    for b, length in enumerate(lengths):
        right[b, :, length] += 0.4
        left[b, 0] += 0.4
    for bonus, added in ((0.4, right), (-0.4, left)):
        expected = [spans.tolist() for spans in best_trees(added, lengths)]
        assert [spans.tolist() for spans in best_trees(scores, lengths, bonus)] == expected
    assert best_trees(scores, lengths, 10.0)[1].tolist() == [[0, 4], [1, 4], [2, 4]]
    assert best_trees(scores, lengths, -10.0)[1].tolist() == [[0, 4], [0, 3], [0, 2]]


def test_scores_are_left_alone():
    scores = torch.rand(1, 5, 5)
    before = scores.clone()
    best_trees(scores, torch.tensor([4]))
    assert np.array_equal(scores, before)


def vectorised_best_trees(scores: torch.Tensor, lengths: torch.Tensor) -> list[list[list[int]]]:
    """The reference: the same dynamic programme, one width at a time in numpy."""
    best = scores.double().numpy().copy()
    B, posts, _ = best.shape
    split = np.zeros((B, posts, posts), dtype=np.int32)
    for width in range(2, posts):
        starts = np.arange(posts - width)[:, None]
        ends, middles = starts + width, starts + np.arange(1, width)
        halves = best[:, starts, middles] + best[:, middles, ends]
        # Ties go to the nearest to the middle; of two equally near ones, to the second if the middle is odd.
        distance = np.abs(2 * middles - starts - ends)
        of_two = np.where((starts + ends) // 2 % 2 == 1, -middles, middles)
        order = np.lexsort((np.broadcast_to(of_two, distance.shape), distance), axis=-1)
        first = np.take_along_axis(halves, np.broadcast_to(order, halves.shape), -1).argmax(-1)
        choice = np.take_along_axis(np.broadcast_to(order, halves.shape), first[..., None], -1)[..., 0]
        rows, columns = starts[:, 0], ends[:, 0]
        best[:, rows, columns] += np.take_along_axis(halves, choice[..., None], -1)[..., 0]
        split[:, rows, columns] = rows + 1 + choice

    def follow(b: int, i: int, j: int) -> list[list[int]]:
        k = int(split[b, i, j])
        return [] if j - i < 2 else [[i, j], *follow(b, i, k), *follow(b, k, j)]

    return [follow(b, 0, int(length)) for b, length in enumerate(lengths)]


@pytest.mark.parametrize("steps", [2, 5, 1000])
def test_the_compiled_programme_equals_the_vectorised_one(steps):
    """With few different scores, there are many ties."""
    generator = torch.Generator().manual_seed(steps)
    lengths = torch.randint(1, 24, (40,), generator=generator)
    longest = int(lengths.max())
    scores = torch.randint(steps, (40, longest + 1, longest + 1), generator=generator).float() / steps
    found = [spans.tolist() for spans in best_trees(scores, lengths)]
    assert found == vectorised_best_trees(scores, lengths)
