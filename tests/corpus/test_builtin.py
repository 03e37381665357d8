"""The built-in corpus is a fair test, and its grammar is valid."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

import nltk
import numpy as np
import pytest

from ramify.corpus.builtin import MAX_LENGTH, builtin_grammar, builtin_treebank
from ramify.corpus.pcfg import BinaryGrammar
from ramify.corpus.tree import Parse
from ramify.errors import RamifyError

Treebank = dict[str, list[Parse]]
Spans = set[tuple[int, int]]

TOY = BinaryGrammar(
    start={"S": 1.0},
    binary=(("S", "N", "V", 0.6), ("S", "S", "N", 0.4)),
    lexical=(("N", "plans", 0.5), ("N", "dogs", 0.5), ("V", "plans", 1.0)),
)


@pytest.fixture(scope="module", params=[0, 1, 2])
def treebank(request: pytest.FixtureRequest) -> Treebank:
    return builtin_treebank(request.param)


def sentence_f1(gold: Spans, predicted: Spans, length: int) -> float:
    gold, predicted = (
        {(i, j) for i, j in spans if 1 < j - i < length} for spans in (gold, predicted)
    )  # neither words nor the whole sentence count
    hits = len(gold & predicted)
    recall = hits / len(gold) if gold else 1.0
    precision = hits / len(predicted) if predicted else float(not gold)
    return 2 * precision * recall / (precision + recall) if hits or not gold else 0.0


def branching_f1(parses: Sequence[Parse], *, right: bool) -> float:
    scores = []
    for parse in parses:
        length = len(parse)
        chain = {(i, length) if right else (0, length - i) for i in range(length)}
        scores.append(sentence_f1({(int(i), int(j)) for i, j in parse.spans}, chain, length))
    return 100 * fmean(scores)


def ambiguous_share(tagged_words: Sequence[tuple[str, str]]) -> float:
    tags = defaultdict(set)
    for word, tag in tagged_words:
        tags[word].add(tag)
    return fmean(len(found) > 1 for found in tags.values())


@pytest.mark.parametrize(("tag", "exponent"), [("DTS", 1.2), ("NN", 1.4), ("IN", 1.2)])
def test_word_frequencies_of_a_tag_follow_the_lexicon(tag: str, exponent: float) -> None:
    """Frequencies as in `lexicon.txt`: proportional to 1 / rank ^ exponent."""
    found = [probability for name, _, probability in builtin_grammar().lexical if name == tag]
    total = sum(rank**-exponent for rank in range(1, len(found) + 1))
    assert found == pytest.approx([rank**-exponent / total for rank in range(1, len(found) + 1)])


def test_split_sizes(treebank: Treebank) -> None:
    assert {name: len(parses) for name, parses in treebank.items()} == {
        "train": 10_000,
        "dev": 300,
        "test": 500,
    }


def test_sentences_are_long_enough(treebank: Treebank) -> None:
    for parses in treebank.values():
        lengths = [len(parse) for parse in parses]
        assert fmean(lengths) >= 12
        assert min(lengths) >= 2
        assert max(lengths) <= MAX_LENGTH


def test_branching_baselines_do_not_pass(treebank: Treebank) -> None:
    right = branching_f1(treebank["test"], right=True)
    assert right >= 30
    assert branching_f1(treebank["test"], right=False) < right - 10


def test_many_words_have_several_tags(treebank: Treebank) -> None:
    grammar = builtin_grammar()
    assert ambiguous_share([(word, tag) for tag, word, _ in grammar.lexical]) >= 0.15
    seen = [pair for parse in treebank["train"] for pair in zip(parse.words, parse.tags, strict=True)]
    assert ambiguous_share(seen) >= 0.15


def test_test_sentences_are_new(treebank: Treebank) -> None:
    known = {parse.words for parse in treebank["train"]}
    assert fmean(parse.words not in known for parse in treebank["test"]) >= 0.9


def test_trees_are_binary_and_in_preorder(treebank: Treebank) -> None:
    grammar = builtin_grammar()
    rules = {rule[:3] for rule in grammar.binary}
    for parse in treebank["dev"]:
        assert len(parse.spans) == len(parse) - 1
        keys = [(int(i), -int(j)) for i, j in parse.spans]
        assert keys == sorted(keys)
        [tree] = parse.to_nltk()
        assert tree.label() in grammar.start
        assert tree.leaves() == list(parse.words)
        for node in tree.subtrees(lambda node: node.height() > 2):
            assert (node.label(), *(child.label() for child in node)) in rules


def test_builtin_grammar_has_the_promised_size() -> None:
    grammar = builtin_grammar()
    assert 60 <= len(grammar.binary) + len(grammar.start) <= 150
    assert len(grammar.words) >= 1000
    assert all(word == word.lower() and not any(map(str.isdigit, word)) for word in grammar.words)


def test_builtin_probabilities_sum_to_one() -> None:
    grammar = builtin_grammar()
    sums: dict[str, float] = defaultdict(float)
    for symbol, *_, probability in (*grammar.binary, *grammar.lexical):
        sums[str(symbol)] += float(probability)
    assert set(sums) == {*grammar.nonterminals, *grammar.preterminals}
    assert list(sums.values()) == pytest.approx([1.0] * len(sums), abs=1e-9)
    assert sum(grammar.start.values()) == pytest.approx(1.0, abs=1e-9)


def test_every_symbol_can_be_reached() -> None:
    grammar = builtin_grammar()
    children = {child for _, left, right, _ in grammar.binary for child in (left, right)}
    assert {*grammar.nonterminals, *grammar.preterminals} == children | set(grammar.start)


def test_treebank_is_deterministic_and_splits_are_independent() -> None:
    first, again, other = (
        builtin_treebank(5, 20, 5, 5),
        builtin_treebank(5, 10, 5, 5),
        builtin_treebank(6, 20, 5, 5),
    )
    for name in ("dev", "test"):
        for one, two in zip(first[name], again[name], strict=True):
            assert (one.words, one.tags, one.labels) == (two.words, two.tags, two.labels)
            np.testing.assert_array_equal(one.spans, two.spans)
    assert [parse.words for parse in first["train"][:10]] == [parse.words for parse in again["train"]]
    assert [parse.words for parse in first["train"]] != [parse.words for parse in other["train"]]
    assert [parse.words for parse in first["dev"]] != [parse.words for parse in first["test"]]


def test_negative_seed_is_refused() -> None:
    with pytest.raises(RamifyError, match="seed"):
        builtin_treebank(-1, 1, 1, 1)


def test_sampling_follows_the_probabilities() -> None:
    rng = np.random.default_rng(0)
    parses = [TOY.sample(rng, max_length=30) for _ in range(4000)]
    assert fmean(len(parse) == 2 for parse in parses) == pytest.approx(0.6, abs=0.03)
    assert fmean(parse.words[0] == "dogs" for parse in parses) == pytest.approx(0.5, abs=0.03)
    assert TOY.sample(np.random.default_rng(3), 2).tags == ("N", "V")


def test_sampling_without_a_short_sentence_gives_up() -> None:
    endless = BinaryGrammar({"S": 1.0}, (("S", "S", "S", 1.0),), ())
    with pytest.raises(RamifyError, match="max_length"):
        endless.sample(np.random.default_rng(0), 10)
    with pytest.raises(RamifyError, match="max_length is 1"):
        TOY.sample(np.random.default_rng(0), 1)


@pytest.mark.parametrize(
    ("start", "binary", "lexical", "message"),
    [
        ({"S": 0.9}, TOY.binary, TOY.lexical, "start rules sum to 0.9"),
        ({"N": 1.0}, TOY.binary, TOY.lexical, "no binary rule"),
        ({"S": 1.0}, (("S", "N", "V", 0.6),), TOY.lexical, "'S' sum to 0.6"),
        ({"S": 1.0}, (("S", "N", "X", 1.0),), TOY.lexical, "'X', which has no rule"),
        ({"S": 1.0}, TOY.binary, (*TOY.lexical, ("S", "go", 1.0)), "both binary and lexical"),
        ({"S": 1.0}, TOY.binary, (*TOY.lexical, ("V", "go", 0.5)), "'V' sum to 1.5"),
        ({"S": 1.0}, TOY.binary, (("N", "a", 1.5), ("N", "b", -0.5), ("V", "c", 1.0)), "between 0 and 1"),
        ({"S": 1.0}, (("S", "N", "V", 0.5),) * 2, TOY.lexical, "given twice"),
    ],
)
def test_unsound_grammars_are_refused(
    start: dict[str, float],
    binary: tuple[tuple[str, str, str, float], ...],
    lexical: tuple[tuple[str, str, float], ...],
    message: str,
) -> None:
    with pytest.raises(RamifyError, match=message):
        BinaryGrammar(start, binary, lexical)


MIXED = nltk.PCFG.fromstring("""
    S -> NP VP [0.7] | S S [0.1] | 'go' [0.2]
    NP -> NP PP [0.3] | 'dogs' [0.5] | 'plans' [0.2]
    VP -> V NP [0.5] | VP PP [0.2] | 'plans' [0.3]
    PP -> P NP [1.0]
    V -> 'plans' [0.6] | 'like' [0.4]
    P -> 'like' [1.0]
""")


def derivation_probabilities(grammar: BinaryGrammar, symbol: str, words: Sequence[str]) -> list[float]:
    """The probability of every derivation of `words` from `symbol`, by plain enumeration."""
    if len(words) == 1:
        return [p for tag, word, p in grammar.lexical if (tag, word) == (symbol, words[0])]
    return [
        p * left_p * right_p
        for parent, left, right, p in grammar.binary
        if parent == symbol
        for cut in range(1, len(words))
        for left_p in derivation_probabilities(grammar, left, words[:cut])
        for right_p in derivation_probabilities(grammar, right, words[cut:])
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "dogs plans",
        "dogs like plans",
        "dogs like dogs like plans",
        "plans plans plans like dogs like dogs",
        "go dogs plans go",
        "like dogs",
    ],
)
def test_from_nltk_keeps_sentence_probabilities(sentence: str) -> None:
    words = sentence.split()
    grammar = BinaryGrammar.from_nltk(MIXED)
    ours = math.fsum(derivation_probabilities(grammar, "S", words))
    theirs = math.fsum(tree.prob() for tree in nltk.InsideChartParser(MIXED).parse(words))
    start_mass = 0.8  # S also yields one word; that part is left out
    assert ours == pytest.approx(theirs / start_mass, rel=1e-12)
    assert (ours > 0) == (sentence != "like dogs")


def test_from_nltk_splits_mixed_symbols() -> None:
    grammar = BinaryGrammar.from_nltk(MIXED)
    assert grammar.nonterminals == ("S", "NP", "VP", "PP")
    assert set(grammar.preterminals) == {"S_word", "NP_word", "VP_word", "V", "P"}
    assert {rule[:3]: rule[3] for rule in grammar.binary}["PP", "P", "NP_word"] == pytest.approx(0.7)
    assert set(grammar.sample(np.random.default_rng(0), 20).words) <= set(grammar.words)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("S -> A A [1.0]\nA -> B [1.0]\nB -> 'b' [1.0]", "Chomsky"),
        ("S -> A A A [1.0]\nA -> 'a' [1.0]", "Chomsky"),
        ("S -> A 'b' [1.0]\nA -> 'a' [1.0]", "Chomsky"),
        ("S -> 'a' [1.0]", "no binary rule"),
        ("S -> A B [1.0]\nA -> 'a' [1.0]", "'B', which has no rule"),
        ("S -> S S [0.5] | S_word S [0.2] | 'a' [0.3]\nS_word -> 'b' [1.0]", "rename"),
    ],
)
def test_from_nltk_refuses_unsupported_grammars(rules: str, message: str) -> None:
    with pytest.raises(RamifyError, match=message):
        BinaryGrammar.from_nltk(nltk.PCFG.fromstring(rules))
