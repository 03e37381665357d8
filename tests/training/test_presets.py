"""Settings of published models: each is loaded, checked and built."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import ramify
from ramify.errors import RamifyError
from ramify.models import FAMILIES, GenerativeModel
from ramify.training.checks import check_size
from ramify.training.settings import Settings, load_settings, presets

MILLIONS = {
    "tn-pcfg-60": 3.6, "tn-pcfg-500": 4.2, "n-pcfg": 5.3, "c-pcfg": 15.3, "tn-pcfg-9000": 18.3,
    "sn-pcfg-256": 7.9, "sn-pcfg-1024": 8.5, "sn-pcfg-4096": 10.9, "sn-pcfg-8192": 14.0,
    "nbl-pcfg": 6.2, "nl-pcfg": 14.6, "on-lstm": 25.2, "prpn": 4.3, "structformer": 38.5,
    "sc-pcfg-256": 17.5, "sc-pcfg-1024": 18.1, "sc-pcfg-4096": 20.4, "sc-pcfg-8192": 23.6,
    "diora": 5.6,
}  # fmt: skip
"""Parameters with 10,002 words"""


def test_all_presets_exist():
    assert presets().keys() == MILLIONS.keys()


@pytest.mark.parametrize("name", presets())
def test_a_preset_is_loaded_and_built(name):
    settings = load_settings(None, {}, preset=name)
    if issubclass(FAMILIES[settings.model], GenerativeModel):
        family, _, preterminals = name.partition("-pcfg")
        assert settings.model == f"{family}-pcfg"
        assert settings.preterminals == int(preterminals.removeprefix("-") or {"nbl": 30}.get(family, 60))
        assert settings.nonterminals == settings.preterminals // 2
    else:
        assert settings.model == name
    arguments = settings.model_arguments(10_002)
    check_size(settings.model, arguments)
    with torch.device("meta"):
        grammar = FAMILIES[settings.model](**arguments)
    assert sum(x.numel() for x in grammar.parameters()) / 1e6 == pytest.approx(MILLIONS[name], abs=0.05)


@pytest.mark.parametrize("sentences", [None, 100, 1_000_000])
def test_the_settings_of_the_paper_do_not_depend_on_the_amount_of_text(sentences):
    paper = Settings(embedding=256, batch_size=4, learning_rate=0.001, punctuation_penalty=0.0, branching=0.0)
    small = replace(paper, nonterminals=30, rank=200)
    large = replace(paper, nonterminals=250, preterminals=500, rank=500)
    assert load_settings(None, {}, preset="tn-pcfg-60", sentences=sentences) == small
    assert load_settings(None, {}, preset="tn-pcfg-500", sentences=sentences) == large


@pytest.mark.parametrize("preset", presets())
def test_a_preset_leaves_nothing_to_the_amount_of_text(preset):
    assert load_settings(None, {}, preset=preset, sentences=50) == load_settings(None, {}, preset=preset)


def test_defaults_follow_the_amount_of_text():
    few, many = load_settings(None, {}, sentences=9_999), load_settings(None, {}, sentences=10_000)
    assert (few.batch_size, few.epochs, few.initialisation, few.tied_embeddings) == (8, 10, "xavier-normal", True)
    assert (many.batch_size, many.epochs, many.initialisation, many.tied_embeddings) == (16, 4, "own", False)
    chosen = load_settings(None, {"epochs": 7, "initialisation": "own"}, sentences=10)
    assert (chosen.epochs, chosen.initialisation, chosen.batch_size) == (7, "own", 8)
    assert load_settings(None, {"batch_tokens": 300}, sentences=10).batch_tokens == 300
    assert load_settings(None, {"model": "structformer"}, sentences=10).epochs == 20


def test_config_and_options_override_a_preset(tmp_path):
    config = tmp_path / "mine.toml"
    config.write_text("epochs = 2\nbatch-size = 8\n")
    settings = load_settings(config, {"batch_size": 9}, preset="sn-pcfg-1024")
    assert (settings.nonterminals, settings.epochs, settings.batch_size) == (512, 2, 9)


def test_an_unknown_preset_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(RamifyError, match=r"preset 'tn-pcfg-501' is unknown; choose one of .*tn-pcfg-500"):
        ramify.train(tmp_path, tmp_path / "run", preset="tn-pcfg-501")
    assert not (tmp_path / "run").exists()


def test_training_with_a_preset(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the dog barks\na cat sleeps\n" * 20)
    ramify.train(text, tmp_path / "run", preset="sn-pcfg-256", nonterminals=4, preterminals=8, embedding=8, epochs=1)
    parser = ramify.load(tmp_path / "run")
    assert parser.grammar.is_simple
    assert len(parser.parse("the dog barks".split()).leaves()) == 3
