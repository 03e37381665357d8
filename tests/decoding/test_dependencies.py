"""Heads from arc posteriors, compared with all projective trees of short sentences."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.decoding.heads import POSTERIOR_STEPS, heads_within, projective_heads
from tests.structures.brute_force import bracketings, spans_of

Heads = tuple[int, ...]


def is_tree(heads: Heads) -> bool:
    """Whether every word reaches the single root."""
    for word in range(1, len(heads) + 1):
        place = word
        for _ in heads:
            place = heads[place - 1] if place else 0
        if place:
            return False
    return heads.count(0) == 1


def is_projective(heads: Heads) -> bool:
    """Whether all words between a word and its head descend from that head, including the root."""

    def descends(word: int, head: int) -> bool:
        while word and word != head:
            word = heads[word - 1]
        return word == head

    return all(
        descends(between, head)
        for word, head in enumerate(heads, start=1)
        if head
        for between in range(min(word, head) + 1, max(word, head))
    )


@cache
def projective_trees(length: int) -> tuple[Heads, ...]:
    every = product(range(length + 1), repeat=length)
    return tuple(heads for heads in every if heads.count(0) == 1 and is_tree(heads) and is_projective(heads))


def test_the_judge_counts_projective_trees_right():
    assert [len(projective_trees(length)) for length in range(1, 6)] == [1, 2, 7, 30, 143]


def rank(heads: Heads, steps: np.ndarray) -> tuple[int, int, int, int]:
    """The criteria of the best tree: rounded posteriors, then short arcs, then a root near the middle."""
    score = sum(int(steps[head, word]) for word, head in enumerate(heads))
    length = sum(abs(head - word) for word, head in enumerate(heads, start=1) if head)
    root = heads.index(0)
    return score, -length, -abs(2 * root - (len(heads) - 1)), -root


def posteriors(length: int, values: list[float]) -> np.ndarray:
    return np.array(values[: (length + 1) * length]).reshape(length + 1, length)


tables = st.integers(1, 5).flatmap(
    lambda length: st.lists(
        st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1)),
        min_size=(length + 1) * length,
        max_size=(length + 1) * length,
    ).map(lambda values: posteriors(length, values))
)


@given(tables)
def test_no_projective_tree_is_better(table):
    steps = np.rint(table * POSTERIOR_STEPS).astype(int)
    found = tuple(projective_heads(table).tolist())
    assert found in projective_trees(table.shape[1])
    assert rank(found, steps) == max(rank(heads, steps) for heads in projective_trees(table.shape[1]))


def fits(heads: Heads, spans: list[tuple[int, int]]) -> bool:
    """Whether one word of every constituent has its head outside, and no other word has a dependent outside."""
    for i, j in spans:
        inside = range(i + 1, j + 1)
        tops = {word for word in inside if heads[word - 1] not in inside}
        governors = {head for word, head in enumerate(heads, start=1) if word not in inside and head in inside}
        if len(tops) != 1 or not governors <= tops:
            return False
    return True


@given(tables, st.data())
def test_no_tree_that_fits_the_constituents_is_better(table, data):
    length = table.shape[1]
    tree = data.draw(st.sampled_from(bracketings(0, length)))
    spans = sorted((span for span in spans_of(tree) if span[1] - span[0] > 1), key=lambda span: (span[0], -span[1]))
    steps = np.rint(table * POSTERIOR_STEPS).astype(int)
    found = tuple(heads_within(table, np.array(spans, np.int32).reshape(-1, 2)).tolist())
    fitting = [heads for heads in projective_trees(length) if fits(heads, spans)]
    assert len(fitting) == 2 ** (length - 1)
    assert found in fitting
    assert rank(found, steps) == max(rank(heads, steps) for heads in fitting)


def test_without_evidence_arcs_are_short_and_leave_the_middle():
    assert projective_heads(np.full((6, 5), 0.2)).tolist() == [2, 3, 0, 3, 4]
    assert projective_heads(np.full((5, 4), 0.25)).tolist() == [2, 0, 2, 3]
    # Sums of tenths depend on the order of addition in floating point.
    assert projective_heads(np.full((12, 11), 0.1)).tolist() == [2, 3, 4, 5, 6, 0, 6, 7, 8, 9, 10]


@pytest.mark.parametrize("length", [1, 2, 3, 8, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_tree_that_is_certain_is_found(length, dtype):
    rng = np.random.default_rng(length)
    heads = projective_heads(rng.random((length + 1, length)))
    certain = np.zeros((length + 1, length), dtype)
    certain[heads, np.arange(length)] = 1
    before = certain.copy()
    assert projective_heads(certain).tolist() == heads.tolist()
    assert np.array_equal(certain, before)
    assert is_tree(tuple(heads.tolist()))
    assert is_projective(tuple(heads.tolist()))


def test_the_mirror_image_has_the_mirrored_heads():
    table = np.random.default_rng(0).random((8, 7))
    mirrored = table[[0, *range(7, 0, -1)]][:, ::-1]
    heads = projective_heads(table)
    assert projective_heads(mirrored).tolist() == [8 - head if head else 0 for head in heads[::-1]]


def test_a_word_between_two_equally_good_heads_goes_to_the_right_one():
    table = np.zeros((5, 4))
    table[0, 1] = 1  # the second word is the root
    table[2, [0, 3]] = 1
    table[[2, 4], 2] = 0.5
    assert projective_heads(table).tolist() == [2, 0, 4, 2]


def test_an_empty_sentence_has_no_heads():
    assert projective_heads(np.zeros((1, 0))).tolist() == []
    assert heads_within(np.zeros((1, 0)), np.empty((0, 2), np.int32)).tolist() == []


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros((3, 3)), "N\\+1, N"),
        (np.full((3, 2), np.nan), "between 0 and 1"),
        (np.full((3, 2), 2.0), "between 0 and 1"),
    ],
)
def test_other_arrays_are_refused(table, message):
    with pytest.raises(ValueError, match=message):
        projective_heads(table)


@pytest.mark.parametrize(
    "spans",
    [[], [(0, 3)], [(0, 3), (1, 3), (0, 2)], [(1, 3), (0, 3)], [(0, 3), (0, 3)], [(0, 4), (0, 3)], [(0, 3), (2, 3)]],
)
def test_spans_that_are_not_a_binary_tree_are_refused(spans):
    with pytest.raises(ValueError, match="not those of a binary tree"):
        heads_within(np.zeros((4, 3)), np.array(spans, np.int32).reshape(-1, 2))
