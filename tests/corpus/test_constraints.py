"""Spans that must or must not be constituents: reading, writing, checking, and conversion to forbidden spans."""

from __future__ import annotations

import gzip
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ramify
from ramify.corpus.breaks import crossing_spans, phrase_breaks
from ramify.corpus.cleaning import ALL_WORDS
from ramify.corpus.constraint_reading import (
    ConstrainedStream,
    InlineRules,
    constrain_by_punctuation,
    text_sentences,
)
from ramify.corpus.constraints import Constraints, forbidden_spans, spans_with_trees
from ramify.corpus.reading import AS_IS
from ramify.corpus.sentence import Sentence
from ramify.corpus.streaming import Pause, SentenceStream
from ramify.corpus.text import CommonTextRules, TextRules
from ramify.errors import RamifyError
from tests.structures.brute_force import bracketings, spans_of

INLINE = InlineRules.of(TextRules())
PROSE = InlineRules.of(TextRules("en"))


def sentence(words: int | str, must=(), must_not=(), where: str = "") -> Sentence:
    text = " ".join("abcdefghij"[:words]) if isinstance(words, int) else words
    return replace(TextRules().sentence(text, "text, line 3"), constraints=Constraints(must, must_not, where))


def trees(N: int) -> list[frozenset[tuple[int, int]]]:
    return [frozenset(span for span in spans_of(tree) if span[1] - span[0] > 1) for tree in bracketings(0, N)]


def trees_that_meet(N: int, must, must_not) -> list[frozenset[tuple[int, int]]]:
    wide = {(i, j) for i, j in must if j - i > 1}
    return [spans for spans in trees(N) if wide <= spans and not spans & set(must_not)]


def trees_without(forbidden) -> list[frozenset[tuple[int, int]]]:
    return [spans for spans in trees(len(forbidden) - 1) if not any(forbidden[i, j] for i, j in spans)]


def test_trees_without_forbidden_spans_are_those_that_meet_the_constraints():
    every = list(combinations(range(6), 2))
    rng = np.random.default_rng(0)
    met = refused = 0
    for _ in range(400):
        chosen = [every[k] for k in rng.choice(len(every), rng.integers(1, 5), replace=False)]
        cut = int(rng.integers(len(chosen) + 1))
        must = chosen[:cut]
        must_not = [(i, j) for i, j in chosen[cut:] if 1 < j - i < 5]
        expected = trees_that_meet(5, must, must_not)
        if not expected:
            with pytest.raises(RamifyError):
                forbidden_spans(sentence(5, must, must_not))
            refused += 1
        elif must or must_not:
            assert trees_without(forbidden_spans(sentence(5, must, must_not))) == expected
            met += 1
    assert met > 50
    assert refused > 50


def test_spans_with_trees_against_every_tree():
    rng = np.random.default_rng(1)
    for N in (1, 2, 3, 6):
        for _ in range(30):
            forbidden = np.triu(rng.random((N + 1, N + 1)) < 0.4, 2)
            possible = spans_with_trees(forbidden)
            for i, j in combinations(range(N + 1), 2):
                expected = any(
                    not any(forbidden[a, b] for a, b in spans_of(tree) if b - a > 1) for tree in bracketings(i, j)
                )
                assert possible[i, j] == expected


def test_no_constraints_forbid_nothing():
    assert forbidden_spans(sentence(4)) is None
    assert forbidden_spans(TextRules().sentence("a b")) is None
    assert not forbidden_spans(sentence(4, must=[(0, 4), (1, 2)])).any()
    assert not forbidden_spans(sentence(1, must=[(0, 1)])).any()


@pytest.mark.parametrize(
    ("given_sentence", "expected"),
    [
        (
            sentence(5, must=[(1, 3), (0, 2)]),
            "text, line 3: 'b c' (tokens 1-3) and 'a b' (tokens 0-2) must be constituents but cross; remove one",
        ),
        (
            sentence(5, must=[(0, 5), (2, 5), (1, 3)]),
            "'c d e' (tokens 2-5) and 'b c' (tokens 1-3) must be constituents but cross",
        ),
        (sentence(4, [(1, 3)], [(1, 3)]), "'b c' (tokens 1-3) both must and must not be a constituent"),
        (sentence(4, (), [(0, 4)]), "'a b c d' (tokens 0-4) must not be a constituent, but the whole sentence always"),
        (sentence(4, (), [(2, 3)]), "'c' (tokens 2-3) must not be a constituent, but a single word always is one"),
        (sentence(1, (), [(0, 1)]), "a single word always is one"),
        (sentence(3, (), [(0, 2), (1, 3)]), "no binary tree over 'a b c' (tokens 0-3) meets all its constraints"),
        (
            sentence(6, [(0, 4), (1, 4)], [(4, 6), (1, 3), (2, 4)]),
            "over 'b c d' (tokens 1-4) meets all its constraints; these must not be constituents: 'b c' (tokens 1-3), "
            "'c d' (tokens 2-4); remove some of them.",
        ),
        (sentence(5, (), [(0, 2), (1, 3), (2, 4), (3, 5)]), "'c d' (tokens 2-4) and 1 more; remove some"),
        (sentence(3, [(1, 4)]), "[1, 4] in must is outside the sentence, which has 3 tokens"),
        (sentence("", [(0, 1)]), "[0, 1] in must is outside the sentence, which has 0 tokens"),
        (sentence("a , ! b", (), [(1, 3)]), "', !' (tokens 1-3) contains no word"),
        (sentence("a , b c", (), [(0, 2)]), "'a ,' (tokens 0-2) must not be a constituent, but a single word"),
        (sentence("a b c .", (), [(0, 3)]), "but the whole sentence always is one"),
        (sentence("a b , c", [(0, 2)], [(0, 3)]), "'a b' (tokens 0-2) both must and must not be a constituent"),
        (sentence(3, [(0, 4)], where="file, line 9"), "file, line 9: [0, 4] in must"),
        (sentence("x" * 300 + " y z", (), [(0, 3)]), "x..." + "' (tokens 0-3)"),
    ],
)  # fmt: skip
def test_contradictory_constraints_are_named(given_sentence, expected):
    with pytest.raises(RamifyError) as error:
        forbidden_spans(given_sentence)
    assert expected in str(error.value)
    assert len(str(error.value)) < 300


def test_spans_shrink_to_the_words_inside_them():
    shrunk = sentence('" the man , " saw it .', must=[(0, 5)], must_not=[(2, 7)])
    of_words = sentence("the man saw it", must=[(0, 2)], must_not=[(1, 4)])
    assert np.array_equal(forbidden_spans(shrunk), forbidden_spans(of_words))


@pytest.mark.parametrize(
    ("given_record", "expected"),
    [
        ([[0, 3]], "are not constraints"),
        (None, "are not constraints"),
        ({"must": [[0, 2]], "mustnot": []}, "'mustnot' is unknown; give must, must_not or both"),
        ({"must": 3}, "must is 3; give a list of spans"),
        ({"must": "ab"}, "must is 'ab'"),
        ({"must_not": None}, "must_not is None"),
        ({"must": [3]}, "3 in must is not a span; give the number"),
        ({"must": [[0, 1, 2]]}, r"\[0, 1, 2\] in must "),
        ({"must": [[2, 2]]}, r"\[2, 2\] in must "),
        ({"must_not": [[-1, 2]]}, r"\[-1, 2\] in must_not "),
        ({"must": [[0.0, 2]]}, r"\[0.0, 2\] in must "),
        ({"must": [[False, True]]}, r"\[False, True\] in must "),
        ({"must": ["ab"]}, "'ab' in must "),
    ],
)
def test_constraints_that_are_not_lists_of_spans_are_refused(given_record, expected):
    with pytest.raises(RamifyError, match=f"The constraints: .*{expected}"):
        Constraints.of(given_record)


def test_constraints_in_python():
    made = ramify.Constraints(must=[[0, 2]], must_not=[(1, 4)])
    assert made == Constraints.of({"must": [[0, 2]], "must_not": [[1, 4]]}, "file, line 1")
    assert made.must == ((0, 2),)
    assert Constraints.of(made) is made
    assert hash(made) == hash(Constraints(((0, 2),), ((1, 4),)))
    assert not Constraints()


@pytest.mark.parametrize(
    ("text", "plain", "must", "must_not"),
    [
        ("[the old man] saw {it in} the park", "the old man saw it in the park", [(0, 3)], [(4, 6)]),
        ("[ the old man ] saw", " the old man  saw", [(0, 3)], []),
        ("[[the {old man}] saw] it", "the old man saw it", [(0, 3), (0, 4)], [(1, 3)]),
        ("[the] [man saw it]", "the man saw it", [(0, 1), (1, 4)], []),
        (r"\[the man\] saw {\{ it}", "[the man] saw { it", [], [(3, 5)]),
        (r"a\b [c\ d]", r"a\b c\ d", [(1, 3)], []),
        ("no brackets", "no brackets", [], []),
        ("", "", [], []),
    ],
)
def test_inline_constraints(text, plain, must, must_not):
    read = INLINE.sentence(text, "text, line 1")
    assert read.text == plain
    assert read.tokens == tuple(plain.split())
    if not must and not must_not:
        assert read.constraints is None
        return
    assert sorted(read.constraints.must) == sorted(must)
    assert sorted(read.constraints.must_not) == sorted(must_not)
    assert read.constraints.where == "text, line 1"


@pytest.mark.parametrize(
    ("text", "must"),
    [
        ("a b , c d .", [(0, 2), (3, 5)]),
        (", a b , c d ; e f", [(1, 3), (4, 6), (7, 9)]),
        ("a , b c", [(2, 4)]),
        ("a , b", []),
        ("( a b ) , c d", [(1, 3), (5, 7)]),
        ("a b c .", []),
        ("a b - c d", []),
        (". , .", []),
        ("", []),
    ],
)
def test_constraints_by_punctuation(text, must):
    read = constrain_by_punctuation(TextRules().sentence(text, "text, line 1"))
    if not must:
        assert read.constraints is None
        return
    assert read.constraints == Constraints(tuple(must))
    assert read.constraints.where == "text, line 1"


@given(st.lists(st.sampled_from(["a", "b", ",", "-", ".", "("]), max_size=14))
def test_constraints_by_punctuation_forbid_the_spans_that_cross_it(tokens):
    read = TextRules().sentence(" ".join(tokens))
    found = forbidden_spans(constrain_by_punctuation(read))
    breaks = phrase_breaks(read.tokens, ("",) * len(tokens), read.is_word)
    expected = crossing_spans(len(read.words), breaks)
    assert np.array_equal(np.zeros_like(expected) if found is None else found, expected)


@pytest.mark.needs("spacy")
def test_inline_constraints_of_prose_follow_the_tokeniser():
    text = "[The well-known man], it seems, {didn't say} that."
    read = PROSE.sentence(text)
    plain = TextRules("en").sentence("The well-known man, it seems, didn't say that.")
    assert replace(read, constraints=None) == plain
    names = [" ".join(read.tokens[i:j]) for i, j in (*read.constraints.must, *read.constraints.must_not)]
    assert names == ["The well-known man", "did n't say"]
    split = PROSE.sentence("he did{n't say} it")
    assert [" ".join(split.tokens[i:j]) for i, j in split.constraints.must_not] == ["n't say"]


def test_inline_constraints_for_parsers_that_read_text_in_different_ways():
    rules = InlineRules.of(CommonTextRules.of([TextRules(), AS_IS]))
    assert rules.sentence("the [man saw]").constraints.must == ((1, 3),)
    with pytest.raises(RamifyError, match="find different words in 'the man , saw'"):
        rules.sentence("the [man , saw]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the man] saw", r"text, line 2: the '\]' at character 8 does not close any bracket; put a backslash"),
        ("the [man saw", r"the '\[' at character 5 is not closed"),
        ("[the {man] saw}", r"the '\]' at character 10 does not close the '{' before it"),
        ("the} man", "the '}' at character 4 does not close any bracket"),
        (r"[the man\] saw", "character 1 is not closed"),
        ("th[e man] saw", "a bracket is inside the token 'the'"),
        ("[the ma]n saw", "a bracket is inside the token 'man'"),
        ("dog[ the man] saw", None),
        ("dog[the man] saw", "a bracket is inside the token 'dogthe'"),
        ("the [ ] man", "a pair of brackets contains no token"),
        ("the [] man", "a pair of brackets contains no token"),
        ("th[]e man", "a bracket is inside the token 'the'"),
        ("[]", "a pair of brackets contains no token"),
    ],
)
def test_wrong_brackets_are_refused(text, expected):
    if expected is None:
        assert INLINE.sentence(text).constraints.must == ((1, 3),)
        return
    with pytest.raises(RamifyError, match=expected):
        INLINE.sentence(text, "text, line 2")


WORDS = st.lists(st.text(st.sampled_from("ab[]{}\\"), min_size=1, max_size=3), min_size=1, max_size=6)


@given(words=WORDS, data=st.data())
def test_inline_constraints_are_read_back(words, data):
    """Escaped words with brackets around some of them: the words are the tokens, the bracketed words the spans."""
    i = data.draw(st.integers(0, len(words) - 1))
    j = data.draw(st.integers(i + 1, len(words)))
    # A backslash of the text right before a bracket would escape it, so a space keeps them apart.
    escaped = ["".join("\\" + c if c in "[]{}" else c for c in word) for word in words]
    text = " ".join([*escaped[:i], "[", *escaped[i:j], "]", *escaped[j:]])
    read = InlineRules.of(AS_IS).sentence(text)
    assert read.constraints.must == ((i, j),)
    assert read.tokens == tuple(words)


@given(text=st.text(st.sampled_from("ab []{}\\,.")))
def test_any_line_is_read_or_refused(text):
    try:
        read = INLINE.sentence(text)
    except RamifyError:
        return
    if "\\" not in text:
        assert read.text == "".join(c for c in text if c not in "[]{}")
        brackets = sum(text.count(sign) for sign in "[{")
        given_spans = read.constraints or Constraints()
        assert brackets == len(given_spans.must) + len(given_spans.must_not)


def stream_of(folder: Path, text: str, lines: str | bytes) -> ConstrainedStream:
    (folder / "text").write_text(text)
    content = lines.encode() if isinstance(lines, str) else lines
    (folder / "constraints.jsonl").write_bytes(content)
    return ConstrainedStream(
        SentenceStream(folder / "text", "auto", TextRules(), ALL_WORDS), folder / "constraints.jsonl"
    )


def test_a_line_of_json_for_each_sentence(tmp_path):
    lines = '{"must": [[0, 2]]}\n\n{}\n{"must_not": [[1, 3]], "must": []}\n'
    for content in (lines, lines.rstrip("\n"), gzip.compress(lines.encode())):
        found = [item.constraints for item in stream_of(tmp_path, "a b c\n\nd e\nf g h\n", content)]
        assert found == [Constraints([(0, 2)]), None, None, Constraints((), [(1, 3)])]
        assert found[3].where == f"{tmp_path / 'constraints.jsonl'}, line 4"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("(S (D the) (N [dog]))\n", "trees"),
        ("1\tthe\t_\t_\t_\t_\t2\t_\t_\t_\n2\t[dog]\t_\t_\t_\t_\t0\t_\t_\t_\n\n", "CoNLL-U"),
    ],
)
def test_trees_and_conllu_may_have_constraints_in_a_file_but_not_inline(tmp_path, text, kind):
    [read] = stream_of(tmp_path, text, '{"must": [[0, 2]]}')
    assert (read.tokens, read.constraints.must) == (("the", "[dog]"), ((0, 2),))
    stream = SentenceStream(tmp_path / "text", "auto", INLINE, ALL_WORDS)
    with pytest.raises(RamifyError, match=f"contains {kind}, but inline constraints need text"):
        list(text_sentences(stream))


def test_pauses_are_passed_on(tmp_path):
    stream = stream_of(tmp_path, "", '{"must": [[0, 2]]}\n\n')
    one, two = (TextRules().sentence(text) for text in ("a b c", "d e"))

    class Paused:
        source = "pipe"

        def __iter__(self):
            return iter([one, Pause(), two, Pause()])

    stream._stream = Paused()
    found = list(stream)
    assert [isinstance(item, Pause) for item in found] == [False, True, False, True]
    assert [found[0].constraints, found[2].constraints] == [Constraints([(0, 2)]), None]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("{}\n", r"constraints.jsonl: has only 1 lines, but .*text has at least 2 sentences"),
        ("", "has only 0 lines"),
        ("{}\n{}\n\n", r"has more than 2 lines, but .*text has 2 sentences"),
        ("{}\nmust\n", r"constraints.jsonl, line 2: this line is not JSON; give {\"must\""),
        ("[" * 100_000 + "\n\n", "line 1: this line is not JSON"),
        ("{}\n[]\n", r"line 2: \[\] are not constraints"),
        ('{}\n{"must": [[1, ' + "9" * 5000 + "]]}\n", "line 2: this line is not JSON"),
        ('{}\n{"must": [[1, 1]]}\n', r"line 2: \[1, 1\] in must "),
        (b"\xff\n", "line 1: this is not UTF-8"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path, lines, expected):
    with pytest.raises(RamifyError, match=expected) as error:
        list(stream_of(tmp_path, "a b\nc d\n", lines))
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300 + 2 * len(str(tmp_path))
