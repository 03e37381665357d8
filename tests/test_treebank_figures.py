"""Baselines on real treebanks against figures counted by a program written apart from this project."""

from pathlib import Path

import numpy as np
import pytest

from ramify.corpus.cleaning import WordRule, guess_word_rule
from ramify.corpus.reading import SPLITS, read_sentences
from ramify.corpus.tree import Parse
from ramify.evaluation.baselines import BASELINES
from ramify.evaluation.scores import Convention, span_f1

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


def treebank(folder: Path) -> tuple[list[Parse], WordRule]:
    if not folder.is_dir():
        pytest.skip(f"{folder.name} is not among the treebanks")
    corpora = [read_sentences(folder, split=split) for split in SPLITS]
    assert all(corpus.has_trees for corpus in corpora)
    rule = guess_word_rule(parse for corpus in corpora for parse in corpus.parses)
    return [parse for corpus in corpora for parse in corpus.words_only(rule).of_lengths(2).parses], rule


def baseline_f1(name: str, parses: list[Parse], convention: Convention = "tn") -> float:
    rng = np.random.default_rng(0)
    predicted = [BASELINES[name](parse, rng) for parse in parses]
    lengths = [len(parse) for parse in parses]
    return span_f1([parse.spans for parse in parses], predicted, lengths, convention).sentence_f1


@pytest.mark.parametrize("name", FIGURES)
def test_baselines_reach_the_figures(data_folder: Path, name: str) -> None:
    words, *figures = FIGURES[name]
    parses, rule = treebank(data_folder / name)
    assert rule == WordRule.from_name(words)
    assert [round(baseline_f1(baseline, parses), 2) for baseline in ("left", "right", "oracle")] == figures


@pytest.mark.parametrize(("name", "figure"), [("fr-sequoia", 32.49), ("grc-macula", 27.71)])
def test_right_branching_under_kim(data_folder: Path, name: str, figure: float) -> None:
    parses, _ = treebank(data_folder / name)
    assert round(baseline_f1("right", parses, "kim"), 2) == figure


def test_random_trees_score_about_what_is_published_for_the_newspaper(data_folder: Path) -> None:
    parses, _ = treebank(data_folder / "en-wsj-sample")
    assert baseline_f1("random", parses) == pytest.approx(18.1, abs=1)
