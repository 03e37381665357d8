"""English divided into tokens as in the Penn Treebank."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ramify
from ramify.corpus.penn import CURRENCY, penn_tokens
from ramify.corpus.punctuation import Punctuation
from ramify.corpus.reading import read_sentences
from ramify.corpus.text import TextRules


def tokens(text: str) -> str:
    return " | ".join(text[i:j] for i, j in penn_tokens(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The dogs, it seems, bark.", "The | dogs | , | it | seems | , | bark | ."),
        ("Don't you, isn't it?", "Do | n't | you | , | is | n't | it | ?"),
        (
            "I'm sure he'd say they've left; we'll see.",
            "I | 'm | sure | he | 'd | say | they | 've | left | ; | we | 'll | see | .",
        ),
        ("The dog’s don’t", "The | dog | ’s | do | n’t"),
        ("Smith Corp.'s plan", "Smith | Corp. | 's | plan"),
        ("I cannot and he's gonna.", "I | can | not | and | he | 's | gon | na | ."),
        ("'Tis the workers' day", "'T | is | the | workers | ' | day"),
        ("say 'the dogs' now", "say | ' | the | dogs | ' | now"),
        ("`` quoted '' and \"quoted\"", "`` | quoted | '' | and | \" | quoted | \""),
        ("well-known and/or S&P", "well-known | and/or | S&P"),
        ("$5,000.50 or 5% at 5:30", "$ | 5,000.50 | or | 5 | % | at | 5:30"),
        ("US$5, C$6 and #7", "US$ | 5 | , | C$ | 6 | and | # | 7"),
        ("word(s) [sic] {x} <y>", "word | ( | s | ) | [ | sic | ] | { | x | } | < | y | >"),
        ("one--two—three...", "one | -- | two | — | three | ..."),
        ("Mr. A. Smith of the U.S. left.", "Mr. | A. | Smith | of | the | U.S. | left | ."),
        ("He lives in the U.S.", "He | lives | in | the | U.S."),
        ("(He said, 'stop.')", "( | He | said | , | ' | stop | . | ' | )"),
        ("See https://example.org/a,b.", "See | https://example.org/a,b | ."),
        ("red,green", "red | , | green"),
        ("...", "..."),
        ("the dog 's , we 'll and they ’ve .", "the | dog | 's | , | we | 'll | and | they | ’ve | ."),
        ("’Tis true", "’T | is | true"),
        ("’" * 3 + "a" + "’" * 3, "’ | ’ | ’ | a | ’ | ’ | ’"),
        ("He's e.g. 5.", "He | 's | e.g. | 5 | ."),
        ("", ""),
        (" \t ", ""),
    ],
)
def test_examples(text: str, expected: str) -> None:
    assert tokens(text) == expected


@given(st.text(alphabet="aN1 .,'’`\"$%-:;()\n…é", max_size=30))
def test_no_character_is_lost_or_twice(text: str) -> None:
    found = penn_tokens(text)
    assert all(i < j for i, j in found)
    assert all(before[1] <= after[0] for before, after in pairwise(found))
    covered = {place for i, j in found for place in range(i, j)}
    assert covered == {place for place, character in enumerate(text) if not character.isspace()}
    assert not any(re.search(r"\s", text[i:j]) for i, j in found)


@pytest.mark.parametrize("name", ["en-wsj-sample", "en-craft"])
def test_tokenised_text_does_not_change(name: str, data_folder: Path) -> None:
    parses = read_sentences(data_folder / name / "dev.trees").parses
    brackets = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]"}
    given = [[brackets.get(word, word) for word in parse.words] for parse in parses]
    same = sum([" ".join(words)[i:j] for i, j in penn_tokens(" ".join(words))] == words for words in given)
    assert same >= 0.999 * len(given)


@pytest.mark.parametrize("unit", ["’", "a.", "''", "a'", ".", "1,", "a,", '"', "$"])
def test_time_is_linear_in_the_length(unit: str) -> None:
    text = unit * 100_000 + "a"
    assert penn_tokens(text)[-1][1] == len(text)  # would take minutes if it were quadratic


def test_currency_signs_are_not_words() -> None:
    rules = TextRules("penn", Punctuation.named("penn"))
    assert rules.sentence("It cost $5 & US$6, 7%.").words == ("It", "cost", "5", "&", "6", "7", "%")
    assert TextRules("penn").sentence("$5").words == ("$", "5")
    assert Punctuation.from_record(Punctuation.named("penn").as_record()) == Punctuation.named("penn")
    assert "." not in Punctuation.named("keep")
    assert all(sign in Punctuation.named("penn") for sign in CURRENCY)


def test_it_is_part_of_a_model() -> None:
    sentences = ["The dog saw $5.", "A dog's tail.", "The man saw a dog.", "It saw the man."] * 5
    parser = ramify.fit(sentences, preterminals=2, epochs=1, tokenise="penn", punctuation="penn")
    assert parser.text_rules.sentence("A man's $5.").words == ("A", "man", "'s", "5")
