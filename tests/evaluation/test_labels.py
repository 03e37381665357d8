import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.corpus.brackets import read_brackets
from ramify.corpus.tree import Parse
from ramify.evaluation.baselines import right_branching
from ramify.evaluation.labels import LabelRecall, agreement, category, labels_of_shared_spans, recall_by_label


def trees(*lines: str) -> list[Parse]:
    return list(read_brackets(lines, "text"))


def test_recall_by_label_counts_every_label_of_a_chain() -> None:
    gold = trees("(TOP (S (NP-SBJ (NP=2 (A a) (B b))) (VP (C c) (NP-LOC (D d)) (PP (E e) (F f)))))")
    assert recall_by_label(gold, [right_branching(6)]) == {
        "NP": LabelRecall(0, 2, 50, 2),
        "VP": LabelRecall(100, 1, 25, 4),
        "PP": LabelRecall(100, 1, 25, 2),
    }


@pytest.mark.parametrize(
    ("label", "cut"),
    [("NP-SBJ-1", "NP"), ("NP=2", "NP"), ("-LRB-", "-LRB-"), ("=", "="), ("", ""), ("S", "S")],
)
def test_function_tags_are_cut(label: str, cut: str) -> None:
    assert category(label) == cut


def test_agreement_computed_by_hand() -> None:
    # X: two NP and one VP; Y: two VP. Three in five of gold are VP, so H(gold) = 0.673 nats; given X it is 0.637,
    # given Y none: H(gold | induced) = 3/5 * 0.637 = 0.382.
    found = agreement(["NP", "NP", "VP", "VP", "VP"], ["X", "X", "X", "Y", "Y"])
    assert found is not None
    assert found.many_to_one == 80
    entropy = -(0.6 * np.log(0.6) + 0.4 * np.log(0.4))
    given_one = 0.6 * -(2 / 3 * np.log(2 / 3) + 1 / 3 * np.log(1 / 3))
    assert found.homogeneity == pytest.approx(100 * (1 - given_one / entropy))
    # Gold and induced divide the five alike, three to two, so completeness is the same.
    assert found.completeness == pytest.approx(found.homogeneity)
    assert found.v_measure == pytest.approx(found.homogeneity)
    assert found.items == 5


def test_agreement_distinguishes_too_many_symbols_from_too_few() -> None:
    fine = agreement(list("aabb"), list("wxyz"))
    assert fine is not None
    assert (fine.many_to_one, fine.homogeneity, fine.completeness) == (100, 100, pytest.approx(50))
    assert fine.v_measure == pytest.approx(200 / 3)
    coarse = agreement(list("wxyz"), list("aabb"))
    assert coarse is not None
    assert (coarse.many_to_one, coarse.homogeneity, coarse.completeness) == (50, pytest.approx(50), pytest.approx(100))
    one = agreement(list("aab"), list("XXX"))
    assert one is not None
    assert (one.many_to_one, one.homogeneity, one.completeness) == (pytest.approx(200 / 3), 0, 100)
    assert agreement([], []) is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), min_size=1))
def test_agreement_is_unchanged_by_renaming(pairs: list[tuple[str, str]]) -> None:
    gold, induced = [a for a, _ in pairs], [b for _, b in pairs]
    names = {"x": "NT-7", "y": "NT-1", "z": ""}
    assert agreement(gold, induced) == agreement(gold, [names[symbol] for symbol in induced])


def test_labels_are_compared_on_spans_that_both_trees_have() -> None:
    gold = trees("(S (NP-SBJ (NX (D the) (N dog))) (VP (V saw) (NP (D a) (N cat))) (ADV (R now)))")
    predicted = trees("(NT-1 (NT-2 (T-1 the) (T-2 dog)) (NT-3 (NT-4 (T-3 saw) (T-1 a)) (NT-5 (T-2 cat) (T-4 now))))")
    assert labels_of_shared_spans(gold, predicted) == (["NP"], ["NT-2"])
    assert sorted(zip(*labels_of_shared_spans(gold, gold), strict=True)) == [
        ("NP", "NP"), ("NP", "NP-SBJ"), ("VP", "VP")
    ]  # fmt: skip
