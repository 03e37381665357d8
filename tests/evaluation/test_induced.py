"""Descriptions of nonterminals, counted by hand."""

from __future__ import annotations

import json
from collections import Counter
from math import log, log2, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.corpus.brackets import read_brackets
from ramify.corpus.tree import Parse
from ramify.errors import RamifyError
from ramify.evaluation.induced import LONGEST_EXAMPLE, Phrases, count_induced
from ramify.evaluation.labels import agreement, labels_of_shared_spans
from ramify.evaluation.subtypes import PRIOR_COUNT, Subtype, distinctive_words, log_odds, subtypes_of


def trees(*lines: str) -> list[Parse]:
    return list(read_brackets(lines, "text"))


GOLD = trees(
    "(TOP (S (NP-SBJ (NX (D The) (N dog))) (VP (V ate) (NP (C 3) (N bones)))))",
    "(TOP (S (NP (D the) (N cat)) (VP (V saw) (NP (C 12) (N bones)))))",
)
PREDICTED = trees(
    "(NT-0 (NT-1 (T-0 The) (T-1 dog)) (NT-2 (T-2 ate) (NT-3 (T-3 3) (T-1 bones))))",
    "(NT-0 (NT-2 (NT-1 (T-0 the) (T-1 cat)) (T-2 saw)) (NT-1 (T-3 12) (T-1 bones)))",
)


def test_use_of_every_symbol():
    found = count_induced(PREDICTED)
    assert list(found.usage.items()) == [("NT-1", 3), ("NT-0", 2), ("NT-2", 2), ("NT-3", 1)]
    assert list(found.tag_usage.items()) == [("T-1", 4), ("T-0", 2), ("T-2", 2), ("T-3", 2)]
    assert found.tags["T-3"] == {"N": 2}
    assert (found.sentences, found.has_gold) == (2, False)
    assert (found.alignment, found.purity, found.entropy, found.subtypes()) == ({}, None, None, {})


def test_first_and_last_words_and_typical_constituents():
    found = count_induced(PREDICTED).phrases["NT-1"]
    assert found.first_words == {"the": 2, "N": 1}
    assert found.last_words == {"dog": 1, "cat": 1, "bones": 1}
    # All occur once; those with the most common first word come first, then shorter ones, then in alphabetical order.
    assert found.typical() == [("The dog", 1), ("the cat", 1), ("N bones", 1)]
    assert found.typical(1) == [("The dog", 1)]


def test_numbers_are_one_phrase_and_long_phrases_are_not_shown():
    phrases = Phrases()
    for words in (["3", "%"], ["1,200.5", "%"], ["the", "end"], ["a"] * (LONGEST_EXAMPLE + 1)):
        phrases.add(words, ["N" if word[0].isdigit() else word for word in words])
    assert phrases.typical() == [("N %", 2), ("the end", 1)]
    assert phrases.count == 4


def test_alignment_counted_by_hand():
    """Shared constituents except whole sentences: The dog, ate 3 bones, 3 bones; the cat, 12 bones."""
    found = count_induced(PREDICTED, GOLD)
    assert found.alignment == {"NP": {"NT-1": 3, "NT-3": 1}, "VP": {"NT-2": 1}}
    assert list(found.alignment) == ["NP", "VP"]
    assert found.gold_labels == {"NT-1": {"NP": 3}, "NT-3": {"NP": 1}, "NT-2": {"VP": 1}}
    assert (found.purity, found.entropy) == (1.0, 0.0)
    assert found.tag_alignment["T-1"] == {"N": 4}


def test_impure_nonterminals():
    predicted = trees(
        "(X (A (T The) (T dog)) (A (T ate) (B (T 3) (T bones))))",
        "(X (A (T the) (T cat)) (B (T saw) (A (T 12) (T bones))))",
    )
    found = count_induced(predicted, GOLD)
    assert found.alignment == {"NP": {"A": 3, "B": 1}, "VP": {"A": 1, "B": 1}}
    assert found.gold_labels == {"A": {"NP": 3, "VP": 1}, "B": {"NP": 1, "VP": 1}}
    assert found.purity == pytest.approx(4 / 6)
    of_a = -(0.75 * log2(0.75) + 0.25 * log2(0.25))
    assert found.entropy == pytest.approx((4 * of_a + 2 * 1) / 6)


@given(st.lists(st.tuples(st.sampled_from(["NP", "VP", "PP"]), st.sampled_from("AB"), st.booleans()), min_size=1))
def test_purity_and_entropy_are_those_of_the_scores(constituents: list[tuple[str, str, bool]]):
    gold = trees(*(f"(S ({label} (T a) (T b)) (T c))" for label, _, _ in constituents))
    predicted = trees(
        *(f"(X ({name} (T a) (T b)) (T c))" if hit else "(X (T a) (Y (T b) (T c)))" for _, name, hit in constituents)
    )
    found = count_induced(predicted, gold)
    labels, names = labels_of_shared_spans(gold, predicted)
    expected = agreement(labels, names)
    if expected is None:
        assert (found.purity, found.entropy) == (None, None)
        return
    assert found.purity == pytest.approx(expected.many_to_one / 100)
    shares = [count / len(labels) for count in Counter(labels).values()]
    of_labels = sum(-share * log2(share) for share in shares)
    assert found.entropy == pytest.approx(of_labels * (1 - expected.homogeneity / 100), abs=1e-9)


def test_log_odds_computed_by_hand():
    # "of" is first in 8 of 10 here and in 2 of 30 elsewhere; the prior adds 10 constituents, a quarter of them "of".
    found, everything = Counter({"of": 8, "in": 2}), Counter({"of": 10, "in": 30})
    prior = PRIOR_COUNT * 10 / 40
    ratio = ((8 + prior) / (2 + PRIOR_COUNT - prior)) / ((2 + prior) / (28 + PRIOR_COUNT - prior))
    expected = log(ratio) / sqrt(1 / (8 + prior) + 1 / (2 + prior))
    assert log_odds("of", found, everything) == pytest.approx(expected)
    # With two words the odds of the one are the inverse of the other's.
    expected = -log(ratio) / sqrt(1 / (2 + PRIOR_COUNT - prior) + 1 / (28 + PRIOR_COUNT - prior))
    assert log_odds("in", found, everything) == pytest.approx(expected)
    assert log_odds("of", Counter({"of": 3}), Counter({"of": 9})) == 0


def test_frequent_and_rare_words_distinguish_nothing():
    everything = Counter({"the": 100, "of": 40, "odd": 1})
    assert distinctive_words(Counter({"the": 50, "of": 20, "odd": 1}), everything) == []
    assert distinctive_words(Counter({"the": 5, "of": 35, "odd": 1}), everything) == [("of", 35)]


def test_subtypes_are_the_nonterminals_of_some_size():
    first_words = {
        "NT-1": Counter({"in": 40, "on": 20}),
        "NT-2": Counter({"of": 35, "in": 3}),
        "NT-3": Counter({"of": 4}),  # too few
    }
    assert subtypes_of(first_words) == [
        Subtype("NT-1", 60, 60 / 102, (("in", 40), ("on", 20))),
        Subtype("NT-2", 38, 38 / 102, (("of", 35),)),
    ]
    assert subtypes_of(first_words, words=1)[0].first_words == (("in", 40),)


def test_a_small_share_is_not_a_subtype():
    first_words = {"NT-1": Counter(the=900), "NT-2": Counter(a=100), "NT-3": Counter(an=15)}
    assert [subtype.nonterminal for subtype in subtypes_of(first_words)] == ["NT-1", "NT-2"]


def test_the_record_is_plain_json_with_the_most_frequent_first():
    gold = trees(*["(S (PP (T of) (T it)) (VP (T a) (T b)))"] * 9, *["(S (PP (T in) (T it)) (VP (T a) (T b)))"] * 6)
    predicted = trees(
        *["(X (NT-7 (T of) (T it)) (NT-1 (T a) (T b)))"] * 9, *["(X (NT-8 (T in) (T it)) (NT-1 (T a) (T b)))"] * 6
    )
    record = count_induced(predicted, gold).as_record()
    assert json.loads(json.dumps(record)) == record
    assert list(record["usage"].items()) == [("NT-1", 15), ("X", 15), ("NT-7", 9), ("NT-8", 6)]
    assert record["alignment"] == {"PP": {"NT-7": 9, "NT-8": 6}, "VP": {"NT-1": 15}}
    assert (record["purity"], record["entropy"]) == (1.0, 0.0)
    assert record["subtypes"] == {
        "PP": [
            {"nonterminal": "NT-7", "count": 9, "share": 0.6, "first_words": [["of", 9]]},
            {"nonterminal": "NT-8", "count": 6, "share": 0.4, "first_words": [["in", 6]]},
        ]
    }


def test_trees_of_other_sentences_are_refused():
    with pytest.raises(RamifyError, match="Sentence 1 has 5 words, but its gold tree has 2"):
        count_induced(PREDICTED[:1], trees("(S (T a) (T b))"))
    with pytest.raises(ValueError, match="zip"):
        count_induced(PREDICTED, GOLD[:1])
