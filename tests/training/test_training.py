from __future__ import annotations

import copy
import json
import math
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import ramify
from ramify.corpus.brackets import write_brackets
from ramify.corpus.builtin import builtin_treebank
from ramify.errors import RamifyError
from ramify.models import FAMILIES, adam
from ramify.storage.tensors import save_tensors
from ramify.training.loop import equal_length_batches, train_step
from ramify.training.settings import Settings, load_settings

SMALL = {"preterminals": 8, "nonterminals": 4, "rank": 8, "embedding": 16, "epochs": 2, "batch_size": 8}
FILES = {
    "config.json",
    "vocab.txt",
    "spelling.json",
    "model.safetensors",
    "metrics.jsonl",
    "README.md",
    "checkpoint.safetensors",
}


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    folder = tmp_path_factory.mktemp("treebank")
    for name, parses in builtin_treebank(0, train=200, dev=20, test=20).items():
        (folder / f"{name}.trees").write_text("".join(write_brackets(parse) + "\n" for parse in parses))
    return folder


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "sentences.txt"
    parses = builtin_treebank(1, train=200, dev=1, test=1)["train"]
    path.write_text("".join(" ".join(parse.words) + "\n" for parse in parses))
    return path


def metrics(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_treebank_folder_becomes_a_model_folder(treebank, tmp_path):
    seen = []
    parser = ramify.train(treebank, tmp_path / "run", on_progress=seen.append, **SMALL)
    assert {path.name for path in (tmp_path / "run").iterdir()} == FILES
    lines = metrics(tmp_path / "run")
    assert [line["epoch"] for line in lines] == [1, 2]
    assert all(0 <= line["dev_f1"] <= 100 for line in lines)
    assert lines[1]["dev_perplexity"] < lines[0]["dev_perplexity"]
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["data"]["train"]["sentences"] <= 200
    assert config["data"]["dev"]["sentences"] == 20
    assert seen[-1].sentences_done == seen[-1].sentences == config["data"]["train"]["sentences"]
    loaded = ramify.load(tmp_path / "run")
    words = "the dog saw a cat".split()
    assert loaded.parse(words) == parser.parse(words)
    best = lines[lines[-1]["best_epoch"] - 1]
    scores = ramify.evaluate(loaded, treebank / "dev.trees").scores
    assert best["dev_f1"] == pytest.approx(scores.sentence_f1, abs=0.01)
    assert abs(scores.sentence_f1 - scores.corpus_f1) > 0.1, "the test would not tell them apart"
    assert "trained without trees" in (tmp_path / "run" / "README.md").read_text()


def test_text_alone_is_enough_and_every_20th_sentence_is_held_out(text, tmp_path):
    ramify.train(text, tmp_path / "run", **SMALL)
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["data"]["dev"]["sentences"] == 10
    assert all("dev_f1" not in line for line in metrics(tmp_path / "run"))


def test_without_dropout_training_is_the_same_to_the_bit_and_with_it_another(text, tmp_path):
    for name, more in (("plain", {}), ("none", {"dropout": 0.0}), ("some", {"dropout": 0.3})):
        ramify.train(text, tmp_path / name, **SMALL, **more)
    plain, none, some = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("plain", "none", "some"))
    assert plain == none
    assert plain != some


def options_of(model: str) -> dict:
    """The small settings without options that the family does not have."""
    taken = FAMILIES[model].option_names()
    return {
        name: value
        for name, value in SMALL.items()
        if name in taken or name not in ("preterminals", "nonterminals", "rank", "embedding")
    }


@pytest.mark.parametrize("model", ["tn-pcfg", "n-pcfg", "sn-pcfg", "hol-pcfg"])
@pytest.mark.slow
def test_dropout_goes_with_every_network_and_is_the_same_after_a_stop(model, text, tmp_path):
    settings = options_of(model) | {"model": model, "dropout": 0.5, "epochs": 1}
    ramify.train(text, tmp_path / "once", **settings | {"epochs": 2})
    ramify.train(text, tmp_path / "twice", **settings)
    ramify.train(text, tmp_path / "twice", resume=True, epochs=2)
    once, twice = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("once", "twice"))
    assert once == twice


def test_options_that_a_family_lacks_are_refused():
    for name in ("pre_norm", "unit_rows", "shared_projection", "tied_embeddings"):
        with pytest.raises(RamifyError, match=rf"settings: hol-pcfg .*{name}.*nonterminals"):
            load_settings(None, {"model": "hol-pcfg", name: True})
    with pytest.raises(RamifyError, match=r"pre_norm .*leave out activation"):
        load_settings(None, {"pre_norm": True, "activation": "tanh"})
    assert load_settings(None, {"model": "hol-pcfg"}).learning_rate == 0.0025


def test_invalid_dropout_is_refused():
    with pytest.raises(RamifyError, match="at least 0 and less than 1"):
        Settings(dropout=1.0)
    with pytest.raises(RamifyError, match="does not support dropout"):
        Settings(dropout=0.1, model="em-pcfg")


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(text, tmp_path):
    before = torch.get_rng_state()
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        ramify.train(text, tmp_path / name, seed=seed, **SMALL)
    assert torch.equal(torch.get_rng_state(), before), "the caller's random state was changed"
    a, b, c = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_the_best_epoch_by_dev_likelihood_is_kept(text, tmp_path, monkeypatch):
    perplexities = iter([50.0, 20.0, 30.0, 40.0, 60.0, 10.0])
    weights = []
    monkeypatch.setattr(
        "ramify.training.run.evaluate_dev",
        lambda stored, *_: (
            weights.append({name: value.clone() for name, value in stored.model.state_dict().items()})
            or {"dev_perplexity": next(perplexities)}
        ),
    )
    ramify.train(text, tmp_path / "run", **{**SMALL, "epochs": 6, "patience": 3})
    assert [line["best_epoch"] for line in metrics(tmp_path / "run")] == [1, 2, 2, 2, 2]
    kept = load_file(tmp_path / "run" / "model.safetensors")
    assert all(torch.equal(kept[name], value) for name, value in weights[1].items())


def test_direct_parameters_can_be_trained(text, tmp_path):
    parser = ramify.train(text, tmp_path / "run", model="td-pcfg", **options_of("td-pcfg"))
    assert math.isfinite(next(parser.log_probabilities(["the dog saw a cat"])))


def test_batches_hold_every_sentence_once_and_one_length_each():
    sentences = [np.zeros(length, np.int64) for length in [3, 5, 3, 2, 5, 3, 3, 3]]
    batches = equal_length_batches(sentences, 2, np.random.default_rng(0))
    assert sorted(place for batch in batches for place in batch) == list(range(8))
    assert all(len({len(sentences[place]) for place in batch}) == 1 for batch in batches)
    assert max(map(len, batches)) == 2


@pytest.mark.parametrize("clip", [0.01, 1000.0])
@pytest.mark.parametrize("cores", [1, 3])
def test_a_step_equals_adam_after_clipping_in_torch(clip, cores, monkeypatch):
    """The fast implementation equals torch's."""
    monkeypatch.setattr(adam.threads, "SMALLEST_WORK", -1)
    monkeypatch.setattr(adam.threads, "available", lambda: cores)
    torch.manual_seed(0)
    fast = FAMILIES["tn-pcfg"](3, 5, 4, 20, embedding=8).double()  # Adam would blow up the noise of float32
    plain = copy.deepcopy(fast)
    word_ids = torch.arange(12).reshape(2, 6)
    fast_optimizer = fast.learner(0.001, clip)
    plain_optimizer = torch.optim.Adam(plain.parameters(), lr=0.001, betas=(0.75, 0.999))
    for _ in range(3):
        train_step(fast, fast_optimizer, word_ids)
        plain_optimizer.zero_grad()
        (-plain(word_ids, torch.tensor([6, 6])).log_partition("scaled").mean()).backward()
        torch.nn.utils.clip_grad_norm_(plain.parameters(), clip)
        plain_optimizer.step()
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(fast.state_dict()[name], value, rtol=1e-9, atol=1e-9)


def test_batches_can_be_measured_in_words():
    sentences = [np.zeros(length, np.int64) for length in [3, 5, 3, 2, 5, 3, 3, 3, 12]]
    batches = equal_length_batches(sentences, 4, np.random.default_rng(0), batch_tokens=10)
    assert sorted(place for batch in batches for place in batch) == list(range(9))
    sizes = sorted((len(sentences[batch[0]]), len(batch)) for batch in batches)
    assert sizes == [(2, 1), (3, 2), (3, 3), (5, 2), (12, 1)]  # a longer sentence is a separate batch
    assert Settings(batch_tokens=200).batch_tokens == 200
    with pytest.raises(RamifyError, match="batch_size and batch_tokens exclude each other"):
        Settings(batch_tokens=200, batch_size=16)
    with pytest.raises(RamifyError, match="batch_tokens is 0"):
        Settings(batch_tokens=0)


def test_a_folder_that_is_not_empty_is_refused_and_not_changed(text, tmp_path):
    (tmp_path / "precious").write_text("mine")
    with pytest.raises(RamifyError, match="is not empty"):
        ramify.train(text, tmp_path, **SMALL)
    with pytest.raises(RamifyError, match="contains no ramify run"):
        ramify.train(text, tmp_path, overwrite=True, **SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_overwriting_a_run_leaves_other_files_alone(text, tmp_path):
    ramify.train(text, tmp_path / "run", **SMALL)
    (tmp_path / "run" / "notes.txt").write_text("mine")
    ramify.train(text, tmp_path / "run", overwrite=True, **SMALL)
    assert {path.name for path in (tmp_path / "run").iterdir()} == {*FILES, "notes.txt"}
    assert len(metrics(tmp_path / "run")) == 2


def test_data_without_a_usable_sentence_is_refused_before_a_folder_is_made(tmp_path):
    (tmp_path / "text").write_text("one\nword\n" * 30)
    with pytest.raises(RamifyError, match="no training sentence has 2 to 40 words"):
        ramify.train(tmp_path / "text", tmp_path / "run", **SMALL)
    assert not (tmp_path / "run").exists()


def test_a_handful_of_sentences_is_enough(tmp_path):
    (tmp_path / "text").write_text("a b c\na b\nb c a\n")
    ramify.train(tmp_path / "text", tmp_path / "run", **SMALL)
    data = json.loads((tmp_path / "run" / "config.json").read_text())["data"]
    assert (data["train"]["sentences"], data["dev"]["sentences"]) == (2, 1)


def test_settings_from_file_and_by_hand(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text('preterminals = 100\nlearning-rate = 1\nmodel = "td-pcfg"\n')
    settings = load_settings(path, {"preterminals": 300, "rank": None})
    assert (settings.preterminals, settings.learning_rate, settings.model) == (300, 1.0, "td-pcfg")
    assert settings.model_arguments(7) == {"nonterminals": 150, "preterminals": 300, "rank": 300, "words": 7}


def test_a_grammar_has_at_least_one_nonterminal():
    assert Settings(preterminals=1).sizes == (1, 1, 200)
    assert Settings(preterminals=201).sizes == (100, 201, 201)


def test_the_preset_of_the_paper_has_its_settings():
    settings = load_settings(None, {}, preset="tn-pcfg-60", sentences=1000)
    assert settings.model_arguments(10_001) == {
        "nonterminals": 30, "preterminals": 60, "rank": 200, "words": 10_001,
        "embedding": 256, "activation": "relu", "gain": 1.0, "latent": 0,
        "shared_projection": False, "tied_embeddings": False, "initialisation": "own",
        "pre_norm": False, "unit_rows": False,
    }  # fmt: skip
    assert (settings.learning_rate, settings.batch_size, settings.clip, settings.epochs) == (0.001, 4, 3, 10)
    assert (settings.patience, settings.crossing_penalty) == (5, 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("preterminal = 3", "'preterminal' is not a setting"),
        ("preterminals = 'many'", "preterminals is 'many', but must be a whole number"),
        ("preterminals = true", "preterminals is True, but must be a whole number"),
        ("learning_rate = true", "learning_rate is True, but must be a number"),
        ("preterminals = 0", "preterminals is 0, but must be between 1"),
        ("epochs = -1", "epochs is -1, but must be between 1"),
        ("max_length = 1", "max_length is 1, but"),
        ("learning_rate = nan", "must be a positive number"),
        ("model = 'gpt'", "model 'gpt' is unknown"),
        ("activation = 'swish'", "activation 'swish' is unknown"),
        ("preterminals 3", "cannot be read as a TOML file"),
    ],
)
def test_wrong_settings_are_refused_with_a_sentence(tmp_path, content, message):
    path = tmp_path / "settings.toml"
    path.write_text(content)
    with pytest.raises(RamifyError, match=message):
        load_settings(path, {})


@pytest.fixture(scope="module")
def trained(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    ramify.train(text, folder, **{**SMALL, "epochs": 1, "min_count": 1})
    return folder


@pytest.fixture
def model(trained, tmp_path):
    """A copy that the test damages."""
    return shutil.copytree(trained, tmp_path / "run")


def test_a_missing_or_damaged_part_of_a_model_is_named(model, tmp_path):
    with pytest.raises(RamifyError, match=r"has no config\.json"):
        ramify.load(tmp_path)
    weights = model / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:100])
    with pytest.raises(RamifyError, match="damaged or not a safetensors file"):
        ramify.load(model)
    weights.unlink()
    with pytest.raises(RamifyError, match=r"has no model\.safetensors"):
        ramify.load(model)


def test_weights_of_wrong_shape_or_not_finite_are_refused(model):
    path = model / "model.safetensors"
    state = load_file(path)
    save_file({**state, "head.0.weight": torch.zeros(3, 3)}, path)
    with pytest.raises(RamifyError, match=r"head\.0\.weight is missing or has another shape"):
        ramify.load(model)
    save_file(state, path)
    with pytest.raises(RamifyError, match="its checksum does not match"):
        ramify.load(model)
    state["head.0.weight"][0, 0] = torch.nan
    save_tensors(path, state)
    with pytest.raises(RamifyError, match=r"head\.0\.weight contains numbers that are not finite"):
        ramify.load(model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 99}, "does not have model format"),
        ({"model": "gpt"}, "'gpt' is unknown"),
        ({"grammar": {"nonterminals": 3, "words": 318}}, "does not describe a model"),
        ({"grammar": {"nonterminals": 3}}, "words must be a whole number"),
        ({"grammar": None}, "does not describe a model"),
        ({"words": 5}, "does not describe a model"),
        ({"grammar": {"nonterminals": 10**30}}, "nonterminals must be a whole number"),
        ({"grammar": {"words": 318, "embedding": -1}}, "embedding must be a whole number"),
        ({"grammar": {"rank": 2.5}}, "rank must be a whole number"),
    ],
)
def test_a_config_that_is_not_ours_is_refused(model, change, message):
    path = model / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(RamifyError, match=message):
        ramify.load(model)


def test_weights_of_another_type_are_refused(model):
    path = model / "model.safetensors"
    save_file({name: value.to(torch.int32) for name, value in load_file(path).items()}, path)
    with pytest.raises(RamifyError, match="another shape or type"):
        ramify.load(model)


def test_a_run_that_breaks_down_says_so_and_leaves_no_model(text, tmp_path):
    with pytest.raises(RamifyError, match="diverged in epoch 1"):
        ramify.train(text, tmp_path / "run", gain=1e30, **SMALL)
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_a_refused_run_keeps_the_old_one(text, tmp_path):
    ramify.train(text, tmp_path / "run", **SMALL)
    before = (tmp_path / "run" / "model.safetensors").read_bytes()
    for wrong in ({"embedding": 1_000_000}, {"seed": 10**30}, {"preterminals": "60"}, {"words": "PU"}):
        with pytest.raises(RamifyError):
            ramify.train(text, tmp_path / "run", overwrite=True, **{**SMALL, **wrong})
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == before


def test_an_unknown_device_is_refused(model):
    with pytest.raises(RamifyError, match="device 'meta' is not available"):
        ramify.load(model, "meta")
    with pytest.raises(RamifyError, match="device 'tpu9' is not available"):
        ramify.load(model, "tpu9")
