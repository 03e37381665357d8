"""Trees from distances: both read-outs, and the spans of models of distances."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ramify
from ramify.corpus.vocabulary import Vocabulary
from ramify.models.distances import BIASED, UNBIASED, DistanceModel, split_before_head, split_between_words


def recursive_split(distances, first=0):
    """The spans of [left, right], split before the word with the largest distance, ignoring that of the first word."""
    if len(distances) < 2:
        return set()
    k = max(range(1, len(distances)), key=lambda t: distances[t])
    left, right = recursive_split(distances[:k], first), recursive_split(distances[k:], first + k)
    return {(first, first + len(distances))} | left | right


def published_tree(distances, words):
    """Nested lists, as in the published read-out."""
    t = max(range(len(words)), key=lambda t: distances[t])
    right = words[t] if t == len(words) - 1 else [words[t], published_tree(distances[t + 1 :], words[t + 1 :])]
    return right if t == 0 else [published_tree(distances[:t], words[:t]), right]


def spans_of(tree, first=0):
    """Spans of two words or more of nested lists, and the number of words."""
    if not isinstance(tree, list):
        return set(), 1
    left, n = spans_of(tree[0], first)
    right, m = spans_of(tree[1], first + n)
    return left | right | {(first, first + n + m)}, n + m


different = st.lists(st.integers(-99, 99), min_size=1, max_size=12, unique=True)


@given(different)
def test_a_span_splits_where_the_distance_is_largest(distances):
    found = split_between_words(np.array(distances, np.float32))
    assert set(found) == recursive_split(distances)
    assert len(found) == len(distances) - 1


@given(different)
def test_the_biased_read_out_is_the_published_one(distances):
    found = split_before_head(np.array(distances, np.float32))
    assert set(found) == spans_of(published_tree(distances, list(range(len(distances)))))[0]
    assert len(found) == len(distances) - 1


def test_the_distance_before_word_t_splits_before_word_t():
    distances = np.array([9, 1, 5, 2], np.float32)
    assert set(split_between_words(distances)) == {(0, 4), (0, 2), (2, 4)}
    assert set(split_before_head(distances)) == {(0, 4), (1, 4), (2, 4)}


def test_equal_distances_split_in_the_middle():
    assert set(split_between_words(np.zeros(4, np.float32))) == {(0, 4), (0, 2), (2, 4)}


class Ruler(DistanceModel):
    """The distance before a word is the word's number."""

    read_outs = (UNBIASED, BIASED)

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words = words
        self.scale = torch.nn.Parameter(torch.ones(()))

    def objective(self, word_ids, lengths, noise=None, dropout=0.0):  # noqa: ARG002
        return self.scale.expand(len(word_ids))

    def distances(self, word_ids, lengths):  # noqa: ARG002
        return word_ids * self.scale


@pytest.fixture(scope="module")
def parser():
    return ramify.Parser(Ruler(10), Vocabulary(["<unk>", *"abcdefghi"]))


def test_spans_of_a_ragged_batch_are_those_of_each_sentence(parser):
    found = parser.model.marginals(torch.tensor([[9, 1, 5, 2], [3, 2, 1, 9]]), torch.tensor([4, 3]))
    assert found.spans[0].nonzero().tolist() == [[0, 2], [0, 4], [2, 4]]
    assert found.spans[1].nonzero().tolist() == [[0, 3], [1, 3]]
    assert found.spans[1, 3:].sum() == 0


def test_the_decoder_chooses_the_read_out(parser):
    assert str(parser.analyse("i a e b").tree) != str(parser.analyse("i a e b", decoder="biased").tree)
    spans = parser.analyse("i a e b", decoder="biased").parse.spans
    assert {tuple(span) for span in spans.tolist()} == {(0, 4), (1, 4), (2, 4)}
    with pytest.raises(ramify.RamifyError, match="needs a grammar"):
        parser.analyse("i a e b", decoder="viterbi")


def test_a_forbidden_span_is_not_in_the_tree(parser):
    found = parser.analyse("i a e b", constraints={"must_not": [[2, 4]]}).parse.spans
    assert (2, 4) not in {tuple(span) for span in found.tolist()}
    assert len(found) == 3
