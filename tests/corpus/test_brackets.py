from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.corpus.brackets import read_brackets, write_brackets
from ramify.corpus.tree import UNTAGGED, Parse, make_parse, parse_of_words
from ramify.errors import RamifyError


def read(text: str) -> list[Parse]:
    return list(read_brackets(text.splitlines(), "some.trees"))


def read_one(text: str) -> Parse:
    (parse,) = read(text)
    return parse


def constituents(parse: Parse) -> list[tuple[str, int, int]]:
    return [(label, i, j) for label, (i, j) in zip(parse.labels, parse.spans.tolist(), strict=True)]


DOG = make_parse(["the", "dog", "barks"], ["DT", "NN", "VBZ"], [(0, 3), (0, 2), (2, 3)], ["S", "NP-SBJ", "VP"])
DOG_TEXT = "(S (NP-SBJ (DT the) (NN dog)) (VP (VBZ barks)))"


@pytest.mark.parametrize(
    "text",
    [
        DOG_TEXT,
        f"( {DOG_TEXT} )",
        f"({DOG_TEXT})",
        f"(TOP {DOG_TEXT})",
        f"(ROOT {DOG_TEXT})",
        f"(VROOT {DOG_TEXT})",
        "( (S \n (NP-SBJ (DT the)\n(NN\n\tdog) )\n\n(VP (VBZ barks))) )",
        "( S ( NP-SBJ ( DT the ) ( NN dog ) ) ( VP ( VBZ barks ) ) )",
    ],
)
def test_the_usual_forms_of_one_tree_read_alike(text: str) -> None:
    assert read_one(text) == DOG
    assert read_one(text).spans.dtype == np.int32


def test_several_trees_on_a_line_and_across_lines() -> None:
    assert read(f"{DOG_TEXT} (TOP {DOG_TEXT})( (S\n(NP-SBJ (DT the) (NN dog)) (VP (VBZ barks))))\n\n") == [DOG] * 3


def test_only_the_outermost_bracket_may_not_be_a_constituent() -> None:
    assert constituents(read_one("(TOP (TOP (ROOT (NN a) (NN b))))")) == [("TOP", 0, 2), ("ROOT", 0, 2)]
    assert constituents(read_one("(S ( (NN a) (NN b)) (NN c))")) == [("S", 0, 3), ("", 0, 2)]


def test_a_forest_under_the_outermost_bracket() -> None:
    assert constituents(read_one("( (S (NN a) (NN b)) (. .) (FRAG (NN c)))")) == [("S", 0, 2), ("FRAG", 3, 4)]


def test_words_beside_other_words_or_brackets_have_no_tag() -> None:
    parse = read_one("(S (NP the dog) (VP barks (ADVP (RB very) loudly)) .)")
    assert parse.words == ("the", "dog", "barks", "very", "loudly", ".")
    assert parse.tags == (UNTAGGED, UNTAGGED, UNTAGGED, "RB", UNTAGGED, UNTAGGED)
    assert constituents(parse) == [("S", 0, 6), ("NP", 0, 2), ("VP", 2, 5), ("ADVP", 3, 5)]


@pytest.mark.parametrize(("text", "tag"), [("(NN dog)", "NN"), ("(TOP dog)", UNTAGGED), ("(TOP (TOP dog))", "TOP")])
def test_a_tree_of_one_word(text: str, tag: str) -> None:
    assert read_one(text) == make_parse(["dog"], [tag], [], [])


def test_unusual_characters_stay_inside_their_word() -> None:
    parse = read_one("(NP (-LRB- -LRB-) (CD 1\u00a0000) (X \x00) (, ,))")
    assert parse.words == ("-LRB-", "1\u00a0000", "\x00", ",")
    assert parse.tags == ("-LRB-", "CD", "X", ",")


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ("(S (NN a))\n(S (NN a)))", 2, "no matching"),
        ("(S (NN a))\n\n(S (NN a)\n(NN b)\n", 3, "is not closed"),
        ("(S (NN a))\n(S (NN", 2, "is not closed"),
        ("dog (S (NN a))", 1, "'dog' is outside"),
        ("(S (NN a)) dog", 1, "'dog' is outside"),
        ("\n()", 2, "'()' contains no word"),
        ("(S\n(NP) (NN a))", 2, "'(NP)' contains no word"),
        ("(S (NN a) (VP (NP)))", 1, "contains no word"),
        ("w" * 1000, 1, "...' is outside"),
    ],
)
def test_malformed_brackets_are_named_by_file_and_line(text: str, line: int, complaint: str) -> None:
    with pytest.raises(RamifyError) as caught:
        read(text)
    assert str(caught.value).startswith(f"some.trees, line {line}: ")
    assert complaint in str(caught.value)
    assert len(str(caught.value)) < 200


def test_trees_before_a_mistake_are_returned_first() -> None:
    stream = read_brackets([DOG_TEXT, ")"], "some.trees")
    assert next(stream) == DOG
    with pytest.raises(RamifyError):
        next(stream)


def test_written_on_one_line_with_escaped_parentheses() -> None:
    assert write_brackets(DOG) == f"(TOP {DOG_TEXT})"
    assert write_brackets(parse_of_words(["(a)", "b"])) == "(TOP (_ -LRB-a-RRB-) (_ b))"
    assert write_brackets(parse_of_words([])) == ""
    assert write_brackets(make_parse(["a"], [""], [], [])) == "(TOP (_ a))"


@pytest.mark.parametrize("word", ["", "New York", "a\nb"])
def test_words_that_would_not_read_back_are_refused(word: str) -> None:
    with pytest.raises(RamifyError):
        write_brackets(parse_of_words([word]))


def test_a_hundred_thousand_nested_brackets_need_no_deep_stack() -> None:
    depth = 100_000
    text = "(X " * depth + "(NN a) (NN b)" + ")" * depth
    parse = read_one(text)
    assert parse.spans.shape == (depth, 2)
    assert (parse.spans == [0, 2]).all()
    assert read_one(write_brackets(parse)) == parse
    left = make_parse(["w"] * 3000, ["T"] * 3000, [(0, end) for end in range(3000, 1, -1)], ["X"] * 2999)
    assert read_one(write_brackets(left)) == left


def test_nltk_gets_the_same_tree() -> None:
    assert " ".join(str(DOG.to_nltk()).split()) == write_brackets(DOG)
    assert DOG.to_nltk().leaves() == ["the", "dog", "barks"]
    assert str(parse_of_words(["a", "b"]).to_nltk()) == "(TOP (_ a) (_ b))"
    assert str(read_one("( (A (X a)) (B (Y b)))").to_nltk()) == "(TOP (A (X a)) (B (Y b)))"


symbols = st.text(
    st.characters(exclude_characters="() \t\n\r\f\v\0", exclude_categories=["Cs"]), min_size=1, max_size=4
)


@st.composite
def parses(draw: st.DrawFn) -> Parse:
    """Any parse: forests, unary chains, constituents of one word, empty labels."""
    n = draw(st.integers(1, 8))
    spans: list[tuple[int, int]] = []
    waiting = [(0, n)]
    while waiting:
        start, end = waiting.pop()
        spans += [(start, end)] * draw(st.integers(0, 2))
        if end - start > 1:
            middle = draw(st.integers(start + 1, end - 1))
            waiting += [(start, middle), (middle, end)]
    words, tags = (draw(st.lists(symbols, min_size=n, max_size=n)) for _ in range(2))
    labels = draw(st.lists(symbols | st.just(""), min_size=len(spans), max_size=len(spans)))
    return make_parse(words, tags, spans, labels)


@given(parses())
def test_plain_trees_are_written_as_all_others(tree: Parse) -> None:
    with mock.patch("ramify.corpus.brackets._is_plain", return_value=False):
        slowly = write_brackets(tree)
    assert write_brackets(tree) == slowly


@given(st.lists(parses(), max_size=3))
def test_written_trees_are_read_back_unchanged(trees: list[Parse]) -> None:
    assert list(read_brackets(map(write_brackets, trees), "written")) == trees
    assert list(read_brackets([" ".join(map(write_brackets, trees))], "written")) == trees


@given(st.text("() ab\n", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        trees = read(text)
    except RamifyError:
        return
    assert sum(len(tree) for tree in trees) <= text.count("a") + text.count("b")
    assert text.count("(") == text.count(")")
    for tree in trees:
        assert read_one(write_brackets(tree)) == tree
