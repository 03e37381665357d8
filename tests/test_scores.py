import math
import time
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.corpus.brackets import read_brackets
from ramify.corpus.cleaning import WordRule
from ramify.errors import RamifyError
from ramify.evaluation.baselines import random_tree, right_branching
from ramify.evaluation.scores import Convention, category, perplexity, recall_by_label, signature, span_f1
from ramify.version import VERSION

Pairs = list[tuple[int, int]]


def array(spans: Pairs) -> np.ndarray:
    return np.array(spans, dtype=np.int32).reshape(-1, 2)


def sentence_f1(gold: Pairs, predicted: Pairs, n: int, convention: Convention = "tn") -> float:
    return span_f1([array(gold)], [array(predicted)], [n], convention).sentence_f1


def test_one_sentence_counted_by_hand() -> None:
    # Gold (0,2) (2,5), predicted (2,5) (3,5): one hit, precision and recall 1/2.
    gold, predicted = [(0, 5), (0, 2), (2, 5), (4, 5)], [(0, 5), (2, 5), (3, 5)]
    scores = span_f1([array(gold)], [array(predicted)], [5])
    assert scores.sentence_f1 == scores.corpus_f1 == scores.precision == scores.recall == 50
    assert (scores.exact_match, scores.sentences, scores.skipped, scores.convention) == (0, 1, 0, "tn")


def test_sentences_are_averaged_and_counts_are_pooled() -> None:
    gold = [array([(0, 3), (0, 2)]), array([(0, 5), (0, 2), (2, 5), (3, 5)])]
    predicted = [array([(0, 3), (0, 2)]), array([(0, 5), (1, 5), (2, 5), (2, 4)])]
    scores = span_f1(gold, predicted, [3, 5])
    assert scores.sentence_f1 == pytest.approx((100 + 100 / 3) / 2)
    assert scores.corpus_f1 == pytest.approx(100 * 2 / 4)
    assert scores.exact_match == 50


@pytest.mark.parametrize("convention", ["tn", "kim"])
def test_sides_without_spans(convention: Convention) -> None:
    assert sentence_f1([(0, 2)], [(0, 2)], 2, convention) == 100
    assert sentence_f1([], [], 2, convention) == 100
    assert sentence_f1([(0, 3), (1, 2)], [(0, 3), (1, 3)], 3, convention) == 0
    assert sentence_f1([(0, 3), (1, 3)], [(0, 3)], 3, convention) == 0


def test_the_conventions_differ_on_unary_chains_at_the_root_alone() -> None:
    predicted = [(0, 3), (1, 3)]
    assert sentence_f1([(0, 3), (0, 3), (1, 3)], predicted, 3, "tn") == 100
    assert sentence_f1([(0, 3), (0, 3), (1, 3)], predicted, 3, "kim") == pytest.approx(100 * 2 / 3)
    assert sentence_f1([(0, 3), (0, 3), (0, 3), (1, 3)], predicted, 3, "kim") == pytest.approx(100 * 2 / 3)
    assert sentence_f1([(0, 3), (1, 3), (1, 3)], predicted, 3, "kim") == 100
    assert sentence_f1([(0, 2), (0, 2)], [(0, 2)], 2, "kim") == 0


def test_sentences_of_one_word_are_skipped_and_counted() -> None:
    one, two = array([(0, 1)]), array([(0, 3), (1, 3)])
    scores = span_f1([one, two, one], [array([]), array([(0, 3), (0, 2)]), array([])], [1, 3, 1])
    assert (scores.sentence_f1, scores.sentences, scores.skipped) == (0, 1, 2)


def judge(gold: Pairs, predicted: Pairs, n: int, convention: Convention) -> float:
    """The definition, word by word."""
    sides = []
    for spans in (gold, predicted):
        wide = [span for span in spans if span[1] - span[0] > 1]
        if convention == "tn":
            wide = [span for span in wide if span != (0, n)]
        elif (0, n) in wide:
            wide.remove((0, n))
        sides.append(set(wide))
    hits = len(sides[0] & sides[1])
    recall = hits / len(sides[0]) if sides[0] else 1.0
    precision = hits / len(sides[1]) if sides[1] else float(not sides[0])
    return 200 * precision * recall / (precision + recall) if precision + recall else 0.0


@st.composite
def pairs_of_trees(draw: st.DrawFn) -> tuple[Pairs, Pairs, int]:
    n = draw(st.integers(2, 6))
    spans = st.lists(st.sampled_from(list(combinations(range(n + 1), 2))), max_size=8)
    return draw(spans), draw(spans), n


@given(st.lists(pairs_of_trees(), min_size=1, max_size=4), st.sampled_from(["tn", "kim"]))
def test_scores_follow_the_definition(cases: list[tuple[Pairs, Pairs, int]], convention: Convention) -> None:
    scores = span_f1(
        [array(gold) for gold, _, _ in cases],
        [array(p) for _, p, _ in cases],
        [n for *_, n in cases],
        convention,
    )
    assert scores.sentence_f1 == pytest.approx(np.mean([judge(*case, convention) for case in cases]))


def test_three_thousand_sentences_take_little_time() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, 60, 3000)
    gold, predicted = ([random_tree(int(n), rng) for n in lengths] for _ in range(2))
    began = time.perf_counter()
    span_f1(gold, predicted, lengths)
    assert time.perf_counter() - began < 2


def test_what_cannot_be_scored_is_refused() -> None:
    tree = array([(0, 3)])
    with pytest.raises(RamifyError, match="2 gold and 1 predicted"):
        span_f1([tree, tree], [tree], [3, 3])
    with pytest.raises(RamifyError, match="Sentence 2 has a span outside its 2 words"):
        span_f1([tree, array([])], [tree, tree], [3, 2])
    with pytest.raises(RamifyError, match="unknown"):
        span_f1([tree], [tree], [3], "evalb")  # type: ignore[arg-type]
    with pytest.raises(RamifyError, match="no sentence"):
        span_f1([], [], [])


def test_recall_by_label_counts_every_label_of_a_chain() -> None:
    trees = "(TOP (S (NP-SBJ (NP=2 (A a) (B b))) (VP (C c) (NP-LOC (D d)) (PP (E e) (F f)))))"
    gold = list(read_brackets([trees], "text"))
    assert recall_by_label(gold, [right_branching(6)]) == {"NP": (0, 2), "VP": (100, 1), "PP": (100, 1)}


@pytest.mark.parametrize(
    ("label", "cut"), [("NP-SBJ-1", "NP"), ("NP=2", "NP"), ("-LRB-", "-LRB-"), ("", ""), ("S", "S")]
)
def test_function_tags_are_cut(label: str, cut: str) -> None:
    assert category(label) == cut


def test_perplexity_counts_an_end_of_sentence() -> None:
    assert perplexity([3 * math.log(1 / 8), 5 * math.log(1 / 8)], [2, 4]) == pytest.approx(8)
    assert perplexity([-math.inf, -1.0], [2, 4]) == math.inf
    assert perplexity([-1e9], [2]) == math.inf
    with pytest.raises(RamifyError):
        perplexity([], [])


def test_the_signature_names_everything_a_score_depends_on() -> None:
    assert signature("tn", WordRule.from_name("ptb"), "ab12cd34ef") == (
        f"ramify {VERSION} | S-F1 tn | words ptb | sentences of 2+ words | data sha256:ab12cd34"
    )
