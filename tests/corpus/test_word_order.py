"""The side to which trees of a language branch, from its frequent words."""

from __future__ import annotations

import pytest

from ramify.corpus.prepare.manifest import word_rule_for
from ramify.corpus.reading import read_sentences
from ramify.corpus.word_order import CLEAR_SHARE, FEWEST_SENTENCES, branching_side

ARTICLES_FIRST = [["the", noun, verb] for noun in "abcdefghij" for verb in "klmnopqrst"]
PARTICLES_LAST = [sentence[::-1] for sentence in ARTICLES_FIRST]


def test_frequent_words_show_the_side():
    assert branching_side(ARTICLES_FIRST) == 1
    assert branching_side(PARTICLES_LAST) == -1
    assert branching_side(ARTICLES_FIRST + PARTICLES_LAST) == 0


def test_capital_letters_do_not_make_a_word_rare():
    assert branching_side([["The", noun, verb] for _, noun, verb in ARTICLES_FIRST[:95]] + ARTICLES_FIRST[95:]) == 1
    kept_apart = [[f"The{noun}{verb}", noun, "end"] for _, noun, verb in ARTICLES_FIRST]
    assert branching_side(kept_apart) == -1


def test_few_sentences_show_nothing():
    assert len(ARTICLES_FIRST) == FEWEST_SENTENCES
    assert branching_side(ARTICLES_FIRST[:-1]) == 0
    assert branching_side([]) == 0
    # Two words have only one tree, and if both ends are equally frequent there is nothing to compare.
    assert branching_side([["the", noun] for noun in "abcdefghij"] * 20) == 0
    assert branching_side([["the", noun, "the"] for noun in "abcdefghij"] * 20) == 0


@pytest.mark.parametrize("others", [30, 60])
def test_the_side_must_be_clear(others):
    share = 100 / (100 + others)
    mixed = ARTICLES_FIRST + [[f"x{place}", "y", "the"] for place in range(others)]
    assert branching_side(mixed) == (1 if share >= CLEAR_SHARE else 0)
    assert branching_side([sentence[::-1] for sentence in mixed]) == (-1 if share >= CLEAR_SHARE else 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("treebank", "side"),
    [("en-craft", 1), ("en-wsj-sample", 1), ("fr-sequoia", 1), ("fo-farpahc", 1), ("grc-macula", 1), ("ja-keyaki", -1)],
)
def test_the_sides_of_treebanks(data_folder, treebank, side):
    corpus = read_sentences(data_folder / treebank, split="train")
    words = corpus.words_only(word_rule_for(corpus))
    assert branching_side([parse.words for parse in words.parses]) == side
