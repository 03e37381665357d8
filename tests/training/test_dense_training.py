"""Whole runs of dense and compound families: training, folder, parser, scores."""

from __future__ import annotations

import json
import math
import shutil
from functools import cache

import pytest
import torch

import ramify
from ramify.corpus.brackets import write_brackets
from ramify.corpus.builtin import builtin_treebank
from ramify.errors import RamifyError, Stopped
from ramify.training.settings import Settings, load_settings

SMALL = {"preterminals": 8, "nonterminals": 4, "epochs": 2, "batch_size": 8}
FAMILIES = {
    "n-pcfg": {"model": "n-pcfg", "embedding": 16},
    "c-pcfg": {"model": "c-pcfg", "embedding": 16},
    "em-pcfg": {"model": "em-pcfg"},
    "compound tn-pcfg": {"model": "tn-pcfg", "rank": 8, "embedding": 16, "compound": True},
}
every_family = pytest.mark.parametrize("family", FAMILIES)


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    folder = tmp_path_factory.mktemp("treebank")
    for name, parses in builtin_treebank(0, train=48, dev=10, test=10).items():
        (folder / f"{name}.trees").write_text("".join(write_brackets(parse) + "\n" for parse in parses))
    return folder


@pytest.fixture(scope="module")
def learnt(treebank, tmp_path_factory):
    """For the name of a family, a folder and its parser; each is trained once."""

    @cache
    def train(family):
        run = tmp_path_factory.mktemp("learnt") / "run"
        parser = ramify.train(treebank, run, **SMALL, **FAMILIES[family])
        (run / "checkpoint.safetensors").unlink()  # 50 MB of a compound grammar
        return run, parser

    return train


@pytest.mark.slow
@every_family
def test_a_model_is_learnt_saved_loaded_and_scored(family, learnt, treebank):
    run, parser = learnt(family)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert lines[1]["dev_perplexity"] < lines[0]["dev_perplexity"]
    loaded = ramify.load(run)
    words = "the dog saw a cat".split()
    assert loaded.parse(words) == parser.parse(words)
    scored = ramify.evaluate(loaded, treebank / "dev.trees")
    assert scored.perplexity == pytest.approx(lines[scored_epoch(lines)]["dev_perplexity"], rel=1e-4)
    assert len(loaded.strongest_rules("NT-1", 5)) == 5
    assert len(loaded.strongest_words("T-3", 5)) == 5
    assert "trained without trees" in (run / "README.md").read_text()


def scored_epoch(lines):
    return lines[-1]["best_epoch"] - 1


@pytest.mark.slow
def test_scores_are_those_of_the_analysis(learnt):
    _, parser = learnt("c-pcfg")
    sentences = [["the", "dog", "saw", "a", "cat"], ["dog"], [], ["a", "cat", "barked"]]
    scores = list(parser.log_probabilities(sentences))
    assert scores == pytest.approx([parser.analyse(words).log_probability for words in sentences], rel=1e-5)
    assert [math.isinf(score) for score in scores] == [False, True, True, False]


@pytest.mark.slow
@every_family
def test_a_stopped_run_resumes_bit_for_bit(family, learnt, treebank, tmp_path):
    def stop_soon(now):
        if now.sentences_done > 16:
            raise Stopped(2, "enough")

    whole, _ = learnt(family)
    parts, settings = tmp_path / "parts", SMALL | FAMILIES[family]
    before = torch.get_rng_state()
    with pytest.raises(Stopped):
        ramify.train(treebank, parts, checkpoint_minutes=0.0, on_progress=stop_soon, **settings)
    ramify.train(treebank, parts, resume=True, checkpoint_minutes=5.0)
    assert torch.equal(torch.get_rng_state(), before), "the caller's random state was changed"
    assert (whole / "model.safetensors").read_bytes() == (parts / "model.safetensors").read_bytes()


def test_the_curriculum_begins_with_short_sentences(treebank, tmp_path):
    seen = {}
    settings = SMALL | {"epochs": 3, "curriculum": 6}
    ramify.train(
        treebank, tmp_path / "run", on_progress=lambda now: seen.update({now.epoch: now}), model="n-pcfg", **settings
    )
    parses = builtin_treebank(0, train=48, dev=1, test=1)["train"]
    for epoch, longest in ((1, 6), (2, 7), (3, 8)):
        expected = sum(2 <= len(parse) <= longest for parse in parses)
        assert seen[epoch].sentences_done == seen[epoch].sentences == expected


def test_only_c_pcfg_has_a_curriculum_by_default():
    assert load_settings(None, {"model": "c-pcfg"}).longest_in(3) == 32
    assert load_settings(None, {"model": "c-pcfg", "curriculum": 10}).longest_in(3) == 12
    assert load_settings(None, {"model": "n-pcfg"}).longest_in(3) is None
    assert Settings(model="tn-pcfg", curriculum=10).longest_in(1) == 10


def test_a_curriculum_without_sentences_is_refused(tmp_path):
    (tmp_path / "text").write_text("a b c d e f\n" * 30)
    with pytest.raises(RamifyError, match="at most 5 words"):
        ramify.train(tmp_path / "text", tmp_path / "run", curriculum=5, **SMALL)


def test_contradictory_settings_are_refused():
    with pytest.raises(RamifyError, match=r"td-pcfg .* compound"):
        Settings(model="td-pcfg", compound=True)
    with pytest.raises(RamifyError, match="curriculum is 1"):
        Settings(curriculum=1)


def test_a_strangers_folder_cannot_ask_for_a_negative_latent_size(learnt, tmp_path):
    shutil.copytree(learnt("n-pcfg")[0], tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    config = json.loads(path.read_text())
    config["grammar"]["latent"] = -1
    path.write_text(json.dumps(config))
    with pytest.raises(RamifyError, match="latent must be a whole number from 0"):
        ramify.load(tmp_path / "run")
