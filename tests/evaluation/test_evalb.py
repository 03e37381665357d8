"""EVALB's figures, computed by hand."""

import pytest

from ramify.corpus.brackets import read_brackets
from ramify.corpus.tree import Parse
from ramify.evaluation.evalb import EvalbScores, evalb


def tree(line: str) -> Parse:
    (parse,) = read_brackets([line], "text")
    return parse


GOLD = "(TOP (S (NP-SBJ (DT the) (NN dog)) (, ,) (VP (VBD ran) (PRT (RP away)) (PP (IN from) (NP (PRP me)))) (. .)))"


def test_a_tree_and_one_with_mistakes() -> None:
    # Gold brackets without punctuation: S 0-6, NP 0-2, VP 2-6, PRT 3-4, PP 4-6, NP 5-6.
    # Predicted: S 0-6, NP 0-2, ADVP 3-4 (equal to PRT), NP 5-6 are right; VP 2-5 crosses PP 4-6; X 2-6 is not in gold.
    predicted = "(S (NP (DT the) (NN dog)) (, ,) (X (VP (VBD ran) (ADVP (RB away)) (IN from)) (NP (PRP me))) (. .))"
    found = evalb([(tree(GOLD), tree(predicted))])["all"]
    assert found.recall == pytest.approx(100 * 4 / 6)
    assert found.precision == pytest.approx(100 * 4 / 6)
    assert found.f1 == pytest.approx(100 * 4 / 6)
    assert (found.complete_match, found.average_crossing, found.no_crossing, found.two_or_less_crossing) == (
        0,
        1,
        0,
        100,
    )
    assert found.tagging_accuracy == pytest.approx(100 * 5 / 6)
    assert found.sentences == 1


def test_a_tree_against_itself() -> None:
    assert evalb([(tree(GOLD), tree(GOLD))])["all"] == EvalbScores(100, 100, 100, 100, 0, 100, 100, 100, 1)


def test_a_unary_chain_of_one_label_against_itself() -> None:
    chain = tree("(S (NP (NP (NN dogs))) (VP (VBP bark)))")
    found = evalb([(chain, chain)])["all"]
    assert (found.recall, found.precision, found.complete_match) == (100, 100, 100)


def test_counts_are_pooled_and_each_of_two_equal_brackets_has_to_be_found() -> None:
    # NP over NP: two gold brackets, one predicted. Pooled with the tree above: 4 + 6 gold, 3 + 6 predicted, 9 right.
    pairs = [(tree("(S (NP (NP (NN dogs))) (VP (VBP bark)))"), tree("(S (NP (NN dogs)) (VP (VBP bark)))"))]
    found = evalb([*pairs, (tree(GOLD), tree(GOLD))])["all"]
    assert found.recall == 100 * 9 / 10
    assert found.precision == 100
    assert found.f1 == pytest.approx(100 * 18 / 19)
    assert found.complete_match == 50


def test_brackets_of_punctuation_alone_and_labels_top_do_not_count() -> None:
    gold = tree("(S (NP (NN dogs)) (VP (VBP bark)) (PRN (: --) (, ,)))")
    predicted = tree("(S (TOP (NP (NN dogs))) (VP (VBP bark)) (: --) (, ,))")
    found = evalb([(gold, predicted), (tree("(X (. .) (. .))"), tree("(X (. .) (. .))"))])["all"]
    assert (found.recall, found.precision, found.sentences) == (100, 100, 1)


def test_long_sentences_are_in_all_only_and_punctuation_counts_for_the_limit() -> None:
    def flat(words: int, commas: int = 0) -> Parse:
        return tree(f"(S {'(NN dog) ' * words}{'(, ,)' * commas})")

    found = evalb([(flat(40), flat(40)), (flat(39, 2), flat(39, 2))])
    assert {name: scores.sentences for name, scores in found.items()} == {"all": 2, "up to 40": 1}
