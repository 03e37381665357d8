"""Breaks at punctuation, and the spans that cross them."""

from itertools import product

import numpy as np
import pytest

from ramify.corpus.breaks import crossing_spans, phrase_breaks
from ramify.corpus.cleaning import PTB_WORDS, WordRule
from ramify.corpus.reading import corpus_from_sentences, read_sentences
from ramify.corpus.text import TextRules


def breaks(text: str, words: str) -> tuple[int, ...]:
    """The breaks of a sentence of tokens whose words are in `words`."""
    tokens = text.split()
    return phrase_breaks(tokens, ["_"] * len(tokens), [token in words.split() for token in tokens])


def test_commas_brackets_quotes_and_dashes_are_breaks() -> None:
    assert breaks("a , b -LRB- c -RRB- d « e » f — g", "a b c d e f g") == (1, 2, 3, 4, 5, 6)


def test_the_ends_of_the_sentence_are_not_listed() -> None:
    assert breaks('" a b . "', "a b") == ()


def test_several_marks_are_one_break() -> None:
    assert breaks("a , ' b", "a b") == (1,)


@pytest.mark.parametrize("token", ["-", "/", "'", "’", "$", "#", "%"])
def test_joiners_and_signs_that_are_read_aloud_are_not_breaks(token: str) -> None:
    assert breaks(f"a {token} b", "a b") == ()


def test_traces_are_not_breaks() -> None:
    assert phrase_breaks(["a", "*", "b"], ["NN", "-NONE-", "NN"], [True, False, True]) == ()


@pytest.mark.parametrize("length", range(1, 8))
def test_crossing_spans_by_definition(length: int) -> None:
    for chosen in product([False, True], repeat=length - 1):
        places = tuple(place for place, is_break in enumerate(chosen, start=1) if is_break)
        ends = {0, length, *places}
        found = crossing_spans(length, places)
        for i, j in product(range(length + 1), repeat=2):
            has_break_inside = any(i < place < j for place in places)
            assert found[i, j] == (has_break_inside and not {i, j} <= ends)


def test_some_binary_tree_crosses_nothing() -> None:
    from ramify.corpus.constraints import spans_with_trees

    for places in [(1,), (2, 5), (1, 2, 3, 4, 5, 6), (3,)]:
        assert spans_with_trees(crossing_spans(7, places))[0, 7]


def test_text_and_trees_keep_their_breaks(tmp_path) -> None:
    from ramify.corpus.reading import TEXT_WORDS

    text = corpus_from_sentences(["The man , who ran , slept ."], TextRules()).words_only(TEXT_WORDS)
    assert text.parses[0].breaks == (2, 4)
    assert text.words_only(WordRule()).parses[0].breaks == (2, 4)
    file = tmp_path / "one.trees"
    file.write_text("(TOP (S (NP (DT The) (NN man) (, ,) (SBAR (WP who) (VBD ran)) (, ,)) (VBD slept) (. .)))\n")
    assert read_sentences(file).words_only(PTB_WORDS).parses[0].breaks == (2, 4)
    assert np.array_equal(read_sentences(file).words_only(PTB_WORDS).parses[0].spans, [(0, 5), (0, 4), (2, 4)])
