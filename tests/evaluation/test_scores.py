import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.errors import RamifyError
from ramify.evaluation.baselines import left_branching, random_tree, right_branching
from ramify.evaluation.scores import Scores, perplexity, scores_by_length
from ramify.evaluation.spans import CONVENTIONS, Convention, count_spans

Pairs = list[tuple[int, int]]


def array(spans: Pairs) -> np.ndarray:
    return np.array(spans, dtype=np.int32).reshape(-1, 2)


def span_f1(gold, predicted, lengths, convention: Convention = "tn") -> Scores:
    return Scores.of(count_spans(gold, predicted, lengths, convention))


def sentence_f1(gold: Pairs, predicted: Pairs, n: int, convention: Convention = "tn") -> float:
    return span_f1([array(gold)], [array(predicted)], [n], convention).sentence_f1


def test_one_sentence_counted_by_hand() -> None:
    # Gold (0,2) (2,5), predicted (2,5) (3,5): one hit, precision and recall 1/2.
    gold, predicted = [(0, 5), (0, 2), (2, 5), (4, 5)], [(0, 5), (2, 5), (3, 5)]
    scores = span_f1([array(gold)], [array(predicted)], [5])
    assert scores.sentence_f1 == scores.corpus_f1 == scores.precision == scores.recall == 50
    assert (scores.exact_match, scores.sentences) == (0, 1)


def test_sentences_are_averaged_and_counts_are_pooled() -> None:
    gold = [array([(0, 3), (0, 2)]), array([(0, 5), (0, 2), (2, 5), (3, 5)])]
    predicted = [array([(0, 3), (0, 2)]), array([(0, 5), (1, 5), (2, 5), (2, 4)])]
    scores = span_f1(gold, predicted, [3, 5])
    assert scores.sentence_f1 == pytest.approx((100 + 100 / 3) / 2)
    assert scores.corpus_f1 == pytest.approx(100 * 2 / 4)
    assert scores.exact_match == 50


def test_only_equal_sets_match_exactly() -> None:
    gold, both = [array([(0, 2)])], [array([(0, 2), (2, 4)])]
    assert span_f1(gold, both, [5]).exact_match == 0
    assert span_f1(both, gold, [5]).exact_match == 0
    assert span_f1(both, both, [5]).exact_match == 100


def test_corpus_f1_is_the_harmonic_mean_of_precision_and_recall() -> None:
    # One predicted span, and it is right; the second sentence has four gold spans and no prediction.
    gold = [array([(0, 2)]), array([(0, 2), (2, 4), (4, 6), (0, 4)])]
    scores = span_f1(gold, [array([(0, 2)]), array([])], [3, 7])
    assert (scores.precision, scores.recall) == (100, 20)
    assert scores.corpus_f1 == pytest.approx(2 * 100 * 20 / 120)


@pytest.mark.parametrize("convention", ["tn", "kim"])
def test_sides_without_spans(convention: Convention) -> None:
    assert sentence_f1([(0, 2)], [(0, 2)], 2, convention) == 100
    assert sentence_f1([], [], 2, convention) == 100
    assert sentence_f1([(0, 3), (1, 2)], [(0, 3), (1, 3)], 3, convention) == 0
    assert sentence_f1([(0, 3), (1, 3)], [(0, 3)], 3, convention) == 0


def test_the_conventions_differ_only_on_unary_chains_at_the_root() -> None:
    predicted = [(0, 3), (1, 3)]
    assert sentence_f1([(0, 3), (0, 3), (1, 3)], predicted, 3, "tn") == 100
    assert sentence_f1([(0, 3), (0, 3), (1, 3)], predicted, 3, "kim") == pytest.approx(100 * 2 / 3)
    assert sentence_f1([(0, 3), (0, 3), (0, 3), (1, 3)], predicted, 3, "kim") == pytest.approx(100 * 2 / 3)
    assert sentence_f1([(0, 3), (1, 3), (1, 3)], predicted, 3, "kim") == 100
    assert sentence_f1([(0, 2), (0, 2)], [(0, 2)], 2, "kim") == 0


def by_definition(gold: Pairs, predicted: Pairs, n: int, convention: Convention) -> float:
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
    assert scores.sentence_f1 == pytest.approx(np.mean([by_definition(*case, convention) for case in cases]))


@st.composite
def nested_trees(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """Some of the constituents of a random binary tree, some of them twice."""
    n = draw(st.integers(2, 12))
    tree = random_tree(n, np.random.default_rng(draw(st.integers(0, 2**32 - 1))))
    times = draw(st.lists(st.integers(0, 2), min_size=n - 1, max_size=n - 1))
    return np.repeat(tree, times, axis=0), n


many_trees = st.lists(nested_trees(), min_size=1, max_size=5)


@given(many_trees, st.sampled_from(CONVENTIONS))
def test_identical_trees_score_100(trees: list[tuple[np.ndarray, int]], convention: Convention) -> None:
    spans, lengths = [tree for tree, _ in trees], [n for _, n in trees]
    scores = span_f1(spans, [tree[::-1] for tree in spans], lengths, convention)
    assert scores.sentence_f1 == scores.corpus_f1 == scores.precision == scores.recall == scores.exact_match == 100


@given(many_trees, st.sampled_from(CONVENTIONS))
def test_left_and_right_swap_in_the_mirror(trees: list[tuple[np.ndarray, int]], convention: Convention) -> None:
    lengths = [n for _, n in trees]
    gold = [tree for tree, _ in trees]
    mirrored = [n - tree[:, ::-1] for tree, n in trees]
    left, right = ([branching(n) for n in lengths] for branching in (left_branching, right_branching))
    assert span_f1(gold, left, lengths, convention) == span_f1(mirrored, right, lengths, convention)


@given(st.lists(st.tuples(nested_trees(), st.integers(0, 2**32 - 1)), min_size=1, max_size=5))
def test_the_conventions_differ_only_where_a_chain_covers_the_sentence(cases) -> None:
    gold, lengths = [tree for (tree, _), _ in cases], [n for (_, n), _ in cases]
    predicted = [random_tree(n, np.random.default_rng(seed)) for (_, n), seed in cases]
    tn, kim = (count_spans(gold, predicted, lengths, convention) for convention in CONVENTIONS)
    chain = np.array([(tree == (0, n)).all(1).sum() >= 2 for (tree, n), _ in cases])
    assert ((kim.gold - tn.gold) == chain).all()
    assert (tn.hits == kim.hits).all()
    assert (tn.predicted == kim.predicted).all()
    assert (tn.f1[~chain] == kim.f1[~chain]).all()
    assert (tn.f1[chain] >= kim.f1[chain]).all()


def test_scores_by_length_are_those_of_the_sentences_of_that_length() -> None:
    lengths = [2, 10, 11, 40, 41, 60]
    gold = [right_branching(n) for n in lengths]
    predicted = [right_branching(n) if n in (10, 40) else left_branching(n) for n in lengths]
    found = scores_by_length(count_spans(gold, predicted, lengths), lengths)
    assert {name: (scores.sentences, scores.sentence_f1) for name, scores in found.items()} == {
        "2-10": (2, 100), "11-20": (1, 0), "31-40": (1, 100), "41+": (2, 0), "2-40": (4, 75)
    }  # fmt: skip


def test_invalid_trees_are_not_scored() -> None:
    tree = array([(0, 3)])
    with pytest.raises(RamifyError, match="2 gold and 1 predicted"):
        span_f1([tree, tree], [tree], [3, 3])
    with pytest.raises(RamifyError, match="Sentence 2 has a span outside its 2 words"):
        span_f1([tree, array([])], [tree, tree], [3, 2])
    with pytest.raises(RamifyError, match="unknown"):
        span_f1([tree], [tree], [3], "evalb")  # type: ignore[arg-type]
    with pytest.raises(RamifyError, match="two or more words"):
        span_f1([], [], [])
    with pytest.raises(RamifyError, match="two or more words"):
        span_f1([tree, array([])], [tree, array([])], [3, 1])


def test_perplexity_counts_an_end_of_sentence() -> None:
    assert perplexity([3 * math.log(1 / 8), 5 * math.log(1 / 8)], [2, 4]) == pytest.approx(8)
    assert perplexity([-math.inf, -1.0], [2, 4]) == math.inf
    assert perplexity([-1e9], [2]) == math.inf
    with pytest.raises(RamifyError):
        perplexity([], [])
