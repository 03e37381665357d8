"""The bundled models: the statements of their cards are true, and trained models can be added."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ramify
from ramify.corpus.brackets import write_brackets
from ramify.corpus.builtin import builtin_treebank
from ramify.model_names import BUNDLED, bundled_models
from ramify.storage.model_files import CARD, checksum
from tools import bundle_model

ATTRIBUTION = ("Colorado Richly Annotated Full Text Corpus", "https://creativecommons.org/licenses/by/3.0/", "Changes:")


@pytest.mark.parametrize("name", ["en"])
def test_a_trained_model_is_compressed_scored_and_put_into_the_package(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bundle_model, "BUNDLED", tmp_path / "bundled")
    treebank = tmp_path / "data" / bundle_model.TREEBANK
    treebank.mkdir(parents=True)
    trees = builtin_treebank(0, 150, 10, 20)
    for split, parses in trees.items():
        (treebank / f"{split}.trees").write_text("".join(write_brackets(parse) + "\n" for parse in parses))
    words = [parse.words for parse in trees["train"]]
    ramify.fit(words, nonterminals=3, preterminals=4, rank=5, epochs=1).save(tmp_path / "trained")
    bundle_model.main(name, tmp_path / "trained", tmp_path / "data")
    folder = tmp_path / "bundled" / name
    text, scores = (folder / CARD).read_text(), json.loads((folder / bundle_model.SCORES).read_text())
    gold = bundle_model.whole_treebank(treebank)
    assert scores["sentences"] == len(gold) == 180
    found = ramify.evaluate(ramify.load(folder), gold).scores.sentence_f1
    assert scores["model"]["sentence_f1"] == pytest.approx(found)
    assert scores["right"]["sentence_f1"] == pytest.approx(ramify.evaluate("right", gold).scores.sentence_f1)
    assert f"| this model | {found:.1f} |" in text
    assert "{" not in text
    assert all(part in text for part in ATTRIBUTION)
    assert "compressing cost" in capsys.readouterr().out
    before = checksum(folder)
    monkeypatch.setattr(bundle_model, "LARGEST", 1000)
    with pytest.raises(SystemExit, match=r"takes .* bytes; at most 0\.1 and 1,000"):
        bundle_model.main(name, tmp_path / "trained", tmp_path / "data")
    assert checksum(folder) == before


def test_bundled_models_are_small_and_attributed():
    assert bundled_models() == ["en"]
    for name in bundled_models():
        folder = BUNDLED / name
        scores = json.loads((folder / bundle_model.SCORES).read_text())
        assert scores["sha256"] == checksum(folder)
        assert (folder / CARD).read_text() == bundle_model.card(name, folder, scores)
        assert all(part in (folder / CARD).read_text() for part in ATTRIBUTION)
        assert sum(file.stat().st_size for file in folder.iterdir()) <= bundle_model.LARGEST
        assert scores["lost_by_compressing"] <= bundle_model.MAX_LOSS


@pytest.mark.slow
def test_cards_have_the_scores_of_the_models(data_folder):
    gold = bundle_model.whole_treebank(data_folder / bundle_model.TREEBANK)
    for name in bundled_models():
        written = json.loads((BUNDLED / name / bundle_model.SCORES).read_text())
        found = bundle_model.scores_of(BUNDLED / name, gold)
        for system in ("model", "right"):
            # Sums in another order may decide a tie between two trees differently.
            assert found[system]["sentence_f1"] == pytest.approx(written[system]["sentence_f1"], abs=0.02)


def test_right_branching_is_the_known_figure(data_folder):
    gold = bundle_model.whole_treebank(data_folder / bundle_model.TREEBANK)
    assert f"{bundle_model.f1_of('right', gold)['sentence_f1']:.2f}" == "39.71"


def test_the_recipe_can_be_read():
    from ramify.lab.plan.recipe import read_recipe

    recipe = read_recipe(Path(bundle_model.MODELS) / "en" / "recipe.toml", {})
    assert recipe.runs == 6
    student = recipe.student.with_seed(0)
    assert (student.tokenise, student.punctuation) == ("penn", "penn")
    assert 2 * (student.vocabulary + 1) * student.preterminals < bundle_model.LARGEST
