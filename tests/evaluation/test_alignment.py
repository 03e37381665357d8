from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.corpus.brackets import read_brackets
from ramify.corpus.cleaning import PTB_WORDS
from ramify.corpus.reading import Corpus
from ramify.errors import RamifyError
from ramify.evaluation.alignment import comparison_form, read_prediction
from ramify.evaluation.evaluation import score
from ramify.evaluation.gold import Gold, load_gold

GOLD = [
    "(TOP (S (NP (DT The) (NN dog)) (, ,) (VP (VBD saw) (NP (CD 1,200) (NNS cats))) (. .)))",
    "(TOP (FRAG (NN Yes)))",
    "(TOP (X (. .)))",
    "(TOP (S (NP (PRP He)) (-LRB- -LRB-) (VP (VBZ does)) (-RRB- -RRB-) (: --) (. .)))",
]


@pytest.fixture(name="gold")
def _gold() -> Gold:
    return gold_of(GOLD)


def gold_of(lines: list[str]) -> Gold:
    return load_gold(Corpus(list(read_brackets(lines, "gold")), "brackets", "gold.trees", "0" * 64), PTB_WORDS)


def spans_of(tmp_path: Path, gold: Gold, *lines: str) -> list[list[tuple[int, ...]]]:
    file = tmp_path / "predicted"
    file.write_text("\n".join(lines) + "\n")
    prediction = read_prediction(file, gold)
    assert [len(parse) for parse in prediction.parses] == gold.lengths
    return [[tuple(span) for span in parse.spans.tolist()] for parse in prediction.parses]


RIGHT = [(0, 5), (1, 5), (2, 5), (3, 5)]


@pytest.mark.parametrize(
    "lines",
    [
        # labelled, only words, only the sentences that are scored
        ["(A (T the) (A (T dog) (A (T saw) (A (T 1,200) (T cats)))))", "(A (T he) (T does))"],
        # the same for every sentence with words, blank lines between them
        ["(A (T the) (A (T dog) (A (T saw) (A (T 1,200) (T cats)))))", "(TOP (T yes))", "", "(A (T he) (T does))"],
        # only brackets, numbers normalised, unknown words
        ["(the (<unk> (saw (N cats))))", "(he does)"],
        ["( ( the ( dog ( saw ( N cats ) ) ) ) )", "(Yes)", "(he does)"],
        # with all punctuation, other spellings of brackets, tags unknown
        [
            "(S (_ THE) (A (_ dog) (_ ,) (A (_ saw) (A (_ N) (_ cats)))) (_ .))",
            "(_ Yes)", "(_ .)", "(S (_ He) (P (_ -lrb-) (_ does) (_ -RRB-)) (_ --) (_ .))",
        ],
        # with some of the punctuation, and some that gold does not have
        ["(the (dog (saw ((N !) cats))))", "(he (does .))"],
    ],
)  # fmt: skip
def test_trees_of_all_kinds_are_aligned(tmp_path: Path, gold: Gold, lines: list[str]) -> None:
    first, second = spans_of(tmp_path, gold, *lines)
    assert {span for span in first if span[1] - span[0] > 1} == set(RIGHT)
    assert (0, 2) in second


def test_trees_over_several_lines_and_flat_ones(tmp_path: Path, gold: Gold) -> None:
    first, second = spans_of(tmp_path, gold, "(S (NP (D the)", "  (N dog)) (V saw) (C N) (N cats))", "(S he does)")
    assert first == [(0, 5), (0, 2)]
    assert second == [(0, 2)]


def test_unlabelled_chains_do_not_count_under_kim(tmp_path: Path, gold: Gold) -> None:
    file = tmp_path / "predicted"
    file.write_text("((the dog) (saw (N cats)))\n((he does))\n")
    found = score(gold, read_prediction(file, gold, "other"), "kim", with_evalb=True)
    assert found.scores.sentence_f1 == 100
    assert (found.system, found.labels, found.tags, found.evalb, found.perplexity) == ("other", None, None, None, None)


def test_evalb_sees_the_punctuation_and_the_short_sentences(tmp_path: Path, gold: Gold) -> None:
    file = tmp_path / "predicted"
    file.write_text("\n".join(GOLD))
    found = score(gold, read_prediction(file, gold), with_evalb=True).evalb
    assert found is not None
    # The brackets around `Yes` count; the sentence of a full stop is skipped.
    assert (found["all"].sentences, found["all"].f1) == (3, 100)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["(the (dog (saw (N cats))))", "(he (does it))"],
            r"line 2: word 3, 'it', is not in the gold sentence \(tree 4 of",
        ),
        (["(the (dog (saw (N cats))))", "", "(he did)"], r"line 3: word 2 is 'did', but the gold sentence has 'does'"),
        (["(S (A the) (B dog) (C saw) (D N))", "(S he does)"], "line 1: it ends before the gold word 'cats'"),
        (["(the (dog (saw (N cats))))"], r"has 1 trees, but .*gold.trees has 4, 2 of them"),
        (["(S he does)"], "line 1: word 1 is 'he', but the gold sentence has 'The'.* has 1 trees, but"),
        (["(the (dog (saw (N cats))", "(he does)"], "line 1: the tree that starts here"),
        (["the dog"], "line 1: 'the' is outside"),
        ([""], "has 0 trees"),
    ],
)
def test_mismatches_are_named_by_line(tmp_path: Path, gold: Gold, lines: list[str], message: str) -> None:
    with pytest.raises(RamifyError, match=message):
        spans_of(tmp_path, gold, *lines)


def test_a_missing_file_is_reported(gold: Gold) -> None:
    with pytest.raises(RamifyError, match="nowhere: cannot be read"):
        read_prediction("nowhere", gold)


@pytest.mark.parametrize(
    ("one", "other"),
    [("-LRB-", "("), ("``", '"'), ("''", "”"), ("1\\/2", "N/N"), ("1,200.5", "N"), ("N", "n"), ("Dog", "dog")],
)
def test_spellings_of_one_word(one: str, other: str) -> None:
    assert comparison_form(one) == comparison_form(other)


@given(st.lists(st.sampled_from(["(NN dog)", "(, ,)", "(POS ')", "('' ')"]), min_size=2, max_size=8))
def test_punctuation_is_distinguished_from_words_that_look_like_it(tmp_path_factory, leaves: list[str]) -> None:
    words = [leaf for leaf in leaves if leaf in ("(NN dog)", "(POS ')")]
    if len(words) < 2:
        return
    file = tmp_path_factory.mktemp("aligned") / "predicted"
    gold = gold_of([f"(S {' '.join(leaves)})"])
    for kept in (leaves, words):
        file.write_text(f"(S {' '.join(kept)})\n")
        prediction = read_prediction(file, gold)
        assert prediction.parses == gold.parses


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ("((A dog) (saw (200 cats)))", "word 1 is 'A', but the gold sentence has 'The'"),
        (
            "(S (NP (DT A) (NN dog)) (VP (VBD saw) (NP (CD 200) (NNS cats))))",
            "word 1 is 'A', but the gold sentence has",
        ),
    ],
)
def test_the_first_word_that_differs_is_named_with_labels_or_without(tmp_path, tree, message):
    with pytest.raises(RamifyError, match=message):
        spans_of(tmp_path, gold_of(GOLD[:1]), tree)
