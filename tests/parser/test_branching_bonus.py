"""Ensembles that favour the side to which their members' trees branch."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import ramify
from ramify.cli import app
from ramify.corpus.brackets import write_brackets
from ramify.corpus.builtin import builtin_treebank
from ramify.corpus.sentence import Sentence
from ramify.errors import RamifyError
from ramify.evaluation.baselines import left_branching, right_branching
from ramify.evaluation.gold import unlabelled_parse
from ramify.storage.ensemble_folder import checksum_of
from ramify.structures.branching import Branching, side_of
from tests.structures.brute_force import bracketings, spans_of

TINY = {"preterminals": 6, "rank": 6, "embedding": 8, "epochs": 1, "batch_size": 8, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small grammars, and right-branching and left-branching trees of the same sentences."""
    folder = tmp_path_factory.mktemp("branching")
    treebank = builtin_treebank(0, train=60, dev=10, test=40)
    for name, parses in treebank.items():
        (folder / f"{name}.trees").write_text("".join(write_brackets(parse) + "\n" for parse in parses))
    for seed in (0, 1):
        ramify.train(folder / "train.trees", folder / f"tn-{seed}", seed=seed, **TINY)
    for name, branching in (("left", left_branching), ("right", right_branching)):
        trees = (unlabelled_parse(parse.words, branching(len(parse))) for parse in treebank["test"])
        (folder / f"{name}.trees").write_text("".join(write_brackets(tree) + "\n" for tree in trees))
    return folder


@pytest.fixture(scope="module")
def sentences() -> list[Sentence]:
    return [Sentence.from_tokens(parse.words) for parse in builtin_treebank(0, train=60, dev=10, test=40)["test"]]


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_tree_has_the_highest_sum_of_posteriors_and_bonuses(folder, sentences, side):
    plain = ramify.Ensemble([folder / "tn-0", folder / "tn-1"])
    favouring = ramify.Ensemble(plain.members, branching=Branching(side, 0.3))
    changed = 0
    for sentence in [each for each in sentences if 3 <= len(each.words) <= 8]:
        N = len(sentence.words)
        found, before = favouring.analyse(sentence), plain.analyse(sentence)
        np.testing.assert_array_equal(found.posteriors, before.posteriors)  # the bonus is not a probability

        def total(spans, N=N, table=found.posteriors):
            at_end = [(i, j) for i, j in spans if j - i > 1 and (j == N if side == "right" else i == 0)]
            return sum(float(table[i, j]) for i, j in spans if j - i > 1) + 0.3 * len(at_end)

        best = max(total(spans_of(tree)) for tree in bracketings(0, N))
        assert total(found.parse.spans) == pytest.approx(best, abs=1e-5)
        changed += found.parse != before.parse
    assert changed


def test_the_members_decide_the_side(folder, sentences):
    sides = {}
    for names in ("left", "right", "left right"):
        ensemble = ramify.Ensemble([folder / f"{name}.trees" for name in names.split()])
        branching = ensemble.favouring_branching(0.3, sentences).branching
        sides[names] = branching and branching.side
    assert sides == {"left": "left", "right": "right", "left right": None}
    assert ramify.Ensemble([folder / "right.trees"]).favouring_branching(0, sentences).branching is None
    with pytest.raises(RamifyError, match="finite"):
        ramify.Ensemble([folder / "right.trees"]).favouring_branching(math.nan, sentences)


def test_every_sentence_counts_the_same_for_the_side():
    long, short = np.zeros((41, 41)), np.zeros((5, 5))
    long[:39, 40] = 1
    short[0, 2:] = 1
    assert side_of([long]) == "right"
    assert side_of([long, short, short]) == "left"
    assert side_of([long, short]) is None
    assert side_of([np.zeros((3, 3))]) is None  # a sentence of two words has only one tree
    three = np.zeros((4, 4))
    three[0, 2] = 1
    assert side_of([three]) == "left"
    assert side_of([three, three, three, 0.9 * three[::-1, ::-1].T, three[::-1, ::-1].T, three[::-1, ::-1].T]) is None


def test_a_saved_ensemble_keeps_the_bonus(folder, sentences, tmp_path):
    plain = ramify.Ensemble([folder / "tn-0", folder / "tn-1"])
    favouring = ramify.Ensemble(plain.members, branching=Branching("left", 0.5))
    plain.save(tmp_path / "plain")
    favouring.save(tmp_path / "favouring")
    loaded = ramify.load(tmp_path / "favouring")
    assert loaded.branching == Branching("left", 0.5)
    assert [each.parse for each in loaded.pipe(sentences)] == [each.parse for each in favouring.pipe(sentences)]
    assert checksum_of(tmp_path / "plain") != checksum_of(tmp_path / "favouring")
    assert "branching bonus 0.5 left" in str(ramify.evaluate(loaded, folder / "test.trees").signature)


@pytest.mark.parametrize(
    "value", [7, {}, {"side": "up", "bonus": 1}, {"side": "left", "bonus": True}, {"side": "left"}]
)
def test_an_invalid_bonus_in_a_folder_is_refused(folder, tmp_path, value):
    ramify.Ensemble([folder / "tn-0"]).save(tmp_path / "one")
    config = json.loads((tmp_path / "one" / "config.json").read_text())
    (tmp_path / "one" / "config.json").write_text(json.dumps(config | {"branching": value}))
    with pytest.raises(RamifyError, match="branching bonus"):
        ramify.load(tmp_path / "one")


def test_the_command_reports_the_side_and_needs_sentences(folder, tmp_path):
    def run(*arguments):
        return CliRunner().invoke(app, ["ensemble", *map(str, arguments)])

    result = run("-m", folder / "tn-0", "-m", folder / "tn-1", "--branching", 0.3, "--out", tmp_path / "none")
    assert isinstance(result.exception, RamifyError)
    assert "--branching" in str(result.exception)
    models = ["-m", folder / "tn-0", "-m", folder / "tn-1"]
    result = run(*models, "--branching", 0.3, folder / "test.trees", "--out", tmp_path / "both")
    assert result.exit_code == 0, result.exception
    branching = ramify.load(tmp_path / "both").branching
    assert (branching.side if branching else "neither side") in result.stdout
