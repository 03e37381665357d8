"""Baselines on real treebanks compared with figures of an independent program; the table in the docs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ramify.corpus.cleaning import WordRule, guess_word_rule
from ramify.corpus.reading import SPLITS, Corpus, read_sentences
from ramify.evaluation.baselines import baseline_predictions
from ramify.evaluation.gold import Gold, load_gold
from ramify.evaluation.scores import Scores
from ramify.evaluation.spans import CONVENTIONS, Convention, count_spans
from tests.conftest import PROJECT

pytestmark = pytest.mark.slow

# S-F1 under `tn` of left and right branching and of the oracle, all three splits together.
FIGURES = {
    "en-craft": ("ptb", 12.06, 34.84, 84.60),
    "en-wsj-sample": ("ptb", 8.32, 39.71, 84.35),
    "is-greynir": ("grm", 5.89, 45.61, 82.65),
    "fr-sequoia": ("PONCT", 10.74, 38.24, 76.38),
    "ja-keyaki": ("PU -LRB- -RRB- QUOT", 27.66, 3.73, 71.28),
    "fo-farpahc": ('. , "', 4.08, 34.35, 59.47),
    "osx-helipad": (". , '", 3.27, 30.18, 60.88),
    "grc-macula": ("none", 6.31, 30.68, 76.74),
    "zh-sinica": ("none", 14.80, 20.23, 65.81),
}
# S-F1 under `kim` of right branching, likewise.
RIGHT_UNDER_KIM = {"fr-sequoia": 32.49, "grc-macula": 27.71}


def treebank(folder: Path) -> tuple[Gold, Gold]:
    """The whole set and the test set, both with the rule for words that the whole set suggests."""
    if not folder.is_dir():
        pytest.skip(f"{folder.name} is not among the treebanks")
    corpora = [read_sentences(folder, split=split) for split in SPLITS]
    assert all(corpus.has_trees for corpus in corpora)
    whole: Corpus = replace(corpora[0], parses=[parse for corpus in corpora for parse in corpus.parses])
    rule = guess_word_rule(whole.parses)
    return load_gold(whole, rule), load_gold(corpora[-1], rule)


def f1s(gold: Gold, name: str, conventions: Sequence[Convention] = ("tn",)) -> list[str]:
    """S-F1 of a baseline under each convention."""
    (prediction, *_) = baseline_predictions(name, gold)
    counts = (count_spans(gold.spans, prediction.spans, gold.lengths, convention) for convention in conventions)
    return [f"{Scores.of(each).sentence_f1:.2f}" for each in counts]


def row(name: str, part: str, gold: Gold, figures: Sequence[str]) -> str:
    """A line of the table in docs/scores.md."""
    return f"| {name} | {part} | {len(gold.parses):,} | {' | '.join(figures)} |"


@pytest.mark.parametrize("name", FIGURES)
def test_baselines_reach_the_figures_and_the_docs_show_them(data_folder: Path, name: str) -> None:
    words, *figures = FIGURES[name]
    whole, test = treebank(data_folder / name)
    assert whole.rule == WordRule.from_name(words)
    left, right = (dict(zip(CONVENTIONS, f1s(whole, each, CONVENTIONS), strict=True)) for each in ("left", "right"))
    assert [float(left["tn"]), float(right["tn"]), float(*f1s(whole, "oracle"))] == figures
    if name in RIGHT_UNDER_KIM:
        assert float(right["kim"]) == RIGHT_UNDER_KIM[name]
    reported = (PROJECT / "docs" / "scores.md").read_text(encoding="utf-8").splitlines()
    assert row(name, "whole", whole, [*left.values(), *right.values()]) in reported
    of_test = [figure for each in ("left", "right") for figure in f1s(test, each, CONVENTIONS)]
    assert row(name, "test", test, of_test) in reported


def test_random_trees_score_about_what_is_published_for_the_newspaper(data_folder: Path) -> None:
    whole, _ = treebank(data_folder / "en-wsj-sample")
    assert float(*f1s(whole, "random")) == pytest.approx(18.1, abs=1)
