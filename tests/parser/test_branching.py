"""The bonus for the side to which a language branches: learnt from text, stored with the model, used in decoding."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ramify
from ramify.errors import RamifyError
from ramify.models import FAMILIES
from ramify.storage.ensemble_folder import checksum_of
from ramify.training.settings import recorded_settings
from tests.command import ramify as command
from tests.corpus.test_word_order import ARTICLES_FIRST, PARTICLES_LAST
from tests.structures.brute_force import bracketings, spans_of

TINY = {"preterminals": 6, "rank": 6, "embedding": 8, "epochs": 1, "batch_size": 16, "learning_rate": 0.01}
LONG = ["the", "k", "the", "a", "l", "the", "b"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A grammar for each side."""
    folder = tmp_path_factory.mktemp("branching")
    for name, sentences in (("right", ARTICLES_FIRST), ("left", PARTICLES_LAST)):
        ramify.train(sentences, folder / name, dev=sentences[:5], **TINY)
    return folder


def test_the_text_decides_the_side(folder):
    assert ramify.load(folder / "right").branching == 0.3
    assert ramify.load(folder / "left").branching == -0.3
    assert json.loads((folder / "left" / "config.json").read_text())["branching"] == -0.3
    assert "| Trees favour | left branching, bonus 0.3 |" in (folder / "left" / "README.md").read_text()
    unclear = ramify.fit(ARTICLES_FIRST + PARTICLES_LAST, dev=ARTICLES_FIRST[:5], **TINY)
    assert unclear.branching == 0


def test_a_bonus_can_be_chosen_for_training(tmp_path):
    for chosen in (0.0, 1.5):
        parser = ramify.fit(PARTICLES_LAST, dev=PARTICLES_LAST[:5], branching=chosen, **TINY)
        assert parser.branching == chosen
    with pytest.raises(RamifyError, match="branching is nan"):
        ramify.fit(PARTICLES_LAST, branching=float("nan"), **TINY)
    (tmp_path / "text").write_text("".join(" ".join(words) + "\n" for words in PARTICLES_LAST * 2))
    options = ["--preterminals", "4", "--rank", "4", "--epochs", "1"]
    shown = command("train", tmp_path / "text", *options, "--out", tmp_path / "model")
    assert "favour left branching (bonus 0.3)" in shown.stdout + shown.stderr
    shown = command("train", tmp_path / "text", *options, "--branching", "0", "--out", tmp_path / "plain")
    assert "branching (bonus" not in shown.stdout + shown.stderr


def test_models_without_posteriors_have_no_bonus():
    assert not FAMILIES["structformer"].has_posteriors
    sizes = {"width": 8, "layers": 1, "epochs": 1}
    assert ramify.fit(ARTICLES_FIRST, dev=ARTICLES_FIRST[:5], model="structformer", **sizes).branching == 0


@pytest.mark.parametrize("name", ["left", "right"])
@pytest.mark.parametrize("several", [False, True])
def test_the_tree_has_the_highest_sum_of_posteriors_and_bonuses(folder, name, several):
    parser = ramify.load(folder / name)
    parser = ramify.Ensemble([parser, parser]) if several else parser
    parser.branching *= 2
    N = len(LONG)
    found, (plain,) = parser.analyse(LONG), parser.analyse_many([LONG], branching=0.0)
    np.testing.assert_array_equal(found.posteriors, plain.posteriors)  # the bonus is not a probability
    assert found.parse != plain.parse

    def total(spans) -> float:
        at_end = [(i, j) for i, j in spans if j - i > 1 and (j == N if name == "right" else i == 0)]
        return sum(float(found.posteriors[i, j]) for i, j in spans if j - i > 1) + 0.6 * len(at_end)

    best = max(total(spans_of(tree)) for tree in bracketings(0, N))
    assert total([*map(tuple, found.parse.spans.tolist())]) == pytest.approx(best, abs=1e-5)


def test_the_bonus_is_for_decoders_that_use_posteriors(folder, tmp_path):
    parser = ramify.load(folder / "right")
    assert [parser.bonus_for(each) for each in ("mbr", "mbr-labelled", "viterbi", "sample")] == [0.3, 0.3, 0, 0]
    assert parser.bonus_for("mbr", 0.1) == 0.1
    gold = tmp_path / "gold.trees"
    gold.write_text("(S (D the) (X (V a) (N k)))\n" * 3)
    assert "| branching 0.3 |" in str(ramify.evaluate(parser, gold).signature)
    for options in ({"branching": 0.0}, {"decoder": "viterbi"}):
        assert "branching" not in str(ramify.evaluate(parser, gold, **options).signature)


def test_an_average_has_the_mean_bonus_of_its_members(folder, tmp_path):
    right, left = folder / "right", folder / "left"
    assert ramify.Ensemble([right, right]).branching == pytest.approx(0.3)
    assert ramify.Ensemble([right, left]).branching == pytest.approx(0)
    assert ramify.Ensemble([right, left], weights=[3, 1]).branching == pytest.approx(0.15)
    ensemble = ramify.Ensemble([right, left], weights=[3, 1])
    ensemble.save(tmp_path / "saved")
    loaded = ramify.load(tmp_path / "saved")
    assert loaded.branching == pytest.approx(0.15)
    # Whether a member collapsed is judged by its trees without the bonus.
    (view,) = ensemble.members[0].views([ramify.load(right).analyse(LONG).sentence])
    (plain,) = ramify.load(right).analyse_many([LONG], branching=0.0)
    np.testing.assert_array_equal(view.spans, plain.parse.spans)


def test_a_saved_exported_or_compressed_model_keeps_the_bonus(folder, tmp_path):
    parser = ramify.load(folder / "left")
    parser.branching = -0.7
    parser.save(tmp_path / "saved")
    assert ramify.load(tmp_path / "saved").branching == -0.7
    assert checksum_of(tmp_path / "saved") != checksum_of(folder / "left")
    assert command("export", "-m", tmp_path / "saved", "--out", tmp_path / "rules.pcfg").returncode == 0
    assert ramify.load(tmp_path / "rules.pcfg").branching == -0.7
    assert command("compress", "-m", tmp_path / "saved", "--out", tmp_path / "small").returncode == 0
    assert ramify.load(tmp_path / "small").branching == -0.7


def test_a_run_of_an_earlier_version_had_no_bonus():
    assert recorded_settings({"model": "tn-pcfg"}).branching == 0


@pytest.mark.parametrize("value", [7, None, "0.3", True, 1e999])
def test_an_invalid_bonus_is_refused(folder, tmp_path, value):
    ramify.load(folder / "left").save(tmp_path / "one")
    config = json.loads((tmp_path / "one" / "config.json").read_text())
    (tmp_path / "one" / "config.json").write_text(json.dumps(config | {"branching": value}))
    with pytest.raises(RamifyError, match="branching is"):
        ramify.load(tmp_path / "one")
    (tmp_path / "one" / "config.json").write_text(json.dumps(config | {"branching": 0.1}))
    with pytest.raises(RamifyError, match="changed after training"):
        ramify.load(tmp_path / "one")
