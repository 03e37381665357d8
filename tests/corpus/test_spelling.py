"""The spelling model compared with brute force, and its file."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.corpus import spelling
from ramify.corpus.spelling import LARGEST_FILE, Spelling
from ramify.errors import RamifyError

WORDS = ["ab", "abb", "b", "babab", "aaaaaa", "abab"]


def oracle(words: list[str], word: str, symbols: int) -> float:
    """p(word) by definition: every n-gram is counted in the words, which have start marks."""
    padded = ["^" + each + "$" for each in words]

    def following(context: str) -> list[str]:
        return [
            each[at + len(context)]
            for each in padded
            for at in range(len(each) - len(context))
            if at + len(context) > 0 and each[at : at + len(context)] == context
        ]

    total = 1.0
    marked = "^" + word + "$"
    for place in range(1, len(marked)):
        p = 1 / symbols
        for length in range(min(4, place) + 1):
            found = following(marked[place - length : place])
            if found:
                p = (found.count(marked[place]) + len(set(found)) * p) / (len(found) + len(set(found)))
        total *= p
    return total


@pytest.mark.parametrize("word", ["", "a", "b", "ab", "ba", "abba", "babab", "aaaaaaaaa", "bbbbbbb"])
def test_probabilities_are_those_of_the_definition(word: str) -> None:
    found = Spelling.learnt_from(WORDS, symbols=3).log_probability(word)
    assert found == pytest.approx(math.log(oracle(WORDS, word, 3)), rel=1e-12)


@pytest.mark.parametrize("words", [[], ["a"], WORDS])
def test_the_probabilities_of_all_strings_add_up_to_one(words: list[str]) -> None:
    model = Spelling.learnt_from(words, symbols=3)
    longest = 9
    ended = sum(
        math.exp(model.log_probability("".join(word)))
        for length in range(longest + 1)
        for word in product("ab", repeat=length)
    )
    going_on = 0.0
    for word in map("".join, product("ab", repeat=longest + 1)):
        p = 1.0
        for place, character in enumerate(word):
            p *= model.probability(word[max(0, place - 4) : place], character)
        going_on += p
    assert ended + going_on == pytest.approx(1, rel=1e-12)
    assert going_on < 0.2


@given(st.text(), st.text(max_size=4))
def test_every_string_has_a_probability(word: str, context: str) -> None:
    model = Spelling.learnt_from(WORDS)
    assert -math.inf < model.log_probability(word) < 0
    assert 0 < model.probability(context, "") < 1


def test_words_similar_to_seen_words_are_more_probable() -> None:
    model = Spelling.learnt_from(["walking", "talking", "walked", "talked", "parking"])
    assert model.log_probability("parked") > model.log_probability("dekrap")
    assert model.log_probability("parked") > model.log_probability("пример")


@given(st.lists(st.text(min_size=1)))
def test_saved_and_loaded_it_is_the_same(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> None:
    folder = tmp_path_factory.mktemp("spelling")
    model = Spelling.learnt_from(words)
    model.save(folder / "first.json")
    Spelling.learnt_from(reversed(words)).save(folder / "second.json")
    assert (folder / "first.json").read_bytes() == (folder / "second.json").read_bytes()
    loaded = Spelling.load(folder / "first.json")
    for word in ["", "new", *words]:
        assert loaded.log_probability(word) == model.log_probability(word)


def test_its_size_is_bounded_whatever_the_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spelling, "MAX_CHARACTERS", 2500)  # a hundredth, so the file is a hundredth as large
    words = [
        "".join(map(chr, range(start, start + 7))) for start in range(0x10000, 0x20000, 7)
    ]  # of four bytes, all different
    Spelling.learnt_from(words).save(tmp_path / "many.json")
    Spelling.learnt_from(["".join(words)]).save(tmp_path / "long.json")
    Spelling.learnt_from(["".join(map(chr, range(0xD800, 0xDFFF)))] * 10).save(tmp_path / "odd.json")
    for name in ("many", "long", "odd"):
        assert (tmp_path / f"{name}.json").stat().st_size < LARGEST_FILE / 100


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "[" * 100_000,
        '{"order": 5}',
        '{"order": 4, "events": {}}',
        '{"order": 5, "events": []}',
        '{"order": 5, "events": {"abcde": {"a": 1}}}',
        '{"order": 5, "events": {"a": ["b"]}}',
        '{"order": 5, "events": {"a": {"bc": 1}}}',
        '{"order": 5, "events": {"a": {"b": 0}}}',
        '{"order": 5, "events": {"a": {"b": -3}}}',
        '{"order": 5, "events": {"a": {"b": 1.5}}}',
        '{"order": 5, "events": {"a": {"b": true}}}',
        '{"order": 5, "events": {"a": {"b": 1000000000000}}}',
        '{"order": 5, "events": {"a": {"b": NaN}}}',
    ],
)
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "spelling.json"
    path.write_text(content)
    with pytest.raises(RamifyError, match=r"spelling\.json"):
        Spelling.load(path)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "spelling.json"
    with path.open("wb") as handle:
        handle.truncate(LARGEST_FILE + 1)
    with pytest.raises(RamifyError, match="larger"):
        Spelling.load(path)


def test_the_file_contains_only_counts(tmp_path: Path) -> None:
    Spelling.learnt_from(["ab", "ab"]).save(tmp_path / "spelling.json")
    assert json.loads((tmp_path / "spelling.json").read_text()) == {
        "order": 5,
        "events": {"": {"a": 2}, "a": {"b": 2}, "ab": {"": 2}},
    }
