"""The Python API: fit, call, pipe, save, tensors, span scores."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from unittest import mock

import nltk
import pytest
import torch

import ramify
from ramify.corpus.builtin import builtin_treebank

SMALL = {"preterminals": 6, "nonterminals": 3, "rank": 5, "embedding": 8, "epochs": 2, "batch_size": 8}


@pytest.fixture(scope="module")
def sentences() -> list[list[str]]:
    return [list(parse.words) for parse in builtin_treebank(0, train=60, dev=1, test=1)["train"]]


@pytest.fixture(scope="module")
def parser(sentences) -> ramify.Parser:
    return ramify.fit(sentences, **SMALL)


def test_fit_in_memory_is_the_model_of_train_in_a_folder(parser, sentences, tmp_path):
    trained = ramify.train(sentences, tmp_path / "run", **SMALL)
    for name, tensor in parser.model.state_dict().items():
        assert torch.equal(tensor, trained.model.state_dict()[name])


def test_strings_are_read_like_lines_of_text(tmp_path):
    lines = ["The dog saw a cat .", "A cat saw the dog !", "the man saw it"] * 6
    (tmp_path / "text.txt").write_text("\n".join(lines))
    from_file = ramify.fit(tmp_path / "text.txt", **SMALL)
    from_list = ramify.fit(lines, **SMALL)
    assert from_file.vocabulary == from_list.vocabulary
    for name, tensor in from_file.model.state_dict().items():
        assert torch.equal(tensor, from_list.model.state_dict()[name])


def test_a_saved_parser_parses_as_before_and_replaces_nothing(parser, tmp_path):
    parser.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    assert str(again.parse("the dog saw a man")) == str(parser.parse("the dog saw a man"))
    with pytest.raises(ramify.RamifyError, match="not empty"):
        parser.save(tmp_path / "model")
    parser.save(tmp_path / "model", overwrite=True)
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(ramify.RamifyError, match="not empty"):
        parser.save(tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "precious"


def test_call_and_pipe(parser):
    one = parser("the dog saw a man")
    assert isinstance(one, ramify.Analysis)
    assert isinstance(one.tree, nltk.Tree)
    several = list(parser.pipe(["the dog saw a man", ["a", "man"], ""]))
    assert str(several[0].tree) == str(one.tree)
    assert [len(each.parse) for each in several] == [5, 2, 0]


def test_the_model_is_a_trainable_module_that_gives_the_distribution(parser):
    word_ids, lengths = torch.tensor([[1, 2, 3, 1], [2, 1, 0, 0]]), torch.tensor([4, 2])
    log_p = parser.model(word_ids, lengths).log_partition()
    log_p.sum().backward()
    assert all(parameter.grad is not None for parameter in parser.model.parameters())


def test_batched_posteriors_of_spans_labels_and_tags(parser):
    given = ["the dog saw a man", "a man saw it"]
    pcfg = parser.distributions(given)
    spans = pcfg.marginals().spans
    for b, sentence in enumerate(given):
        N = len(sentence.split())
        expected = torch.from_numpy(parser.posteriors(sentence))
        torch.testing.assert_close(spans[b, : N + 1, : N + 1], expected, rtol=1e-4, atol=1e-5)
    labels, tags = pcfg.symbol_posteriors()
    assert labels.shape == (2, 6, 6, 3)
    torch.testing.assert_close(tags[0].sum(-1), torch.ones(5))


def test_constraints_by_span_scores(parser):
    pcfg = parser.distributions(["the dog saw a man"])
    scores = torch.zeros(1, 6, 6)
    scores[0, 0, 2] = -torch.inf
    assert [0, 2] not in pcfg.with_span_scores(scores).argmax()[0].spans.tolist()
    scores[0, 0, 2] = 50
    assert [0, 2] in pcfg.with_span_scores(scores).argmax()[0].spans.tolist()


def test_wrong_sentences_are_one_helpful_sentence():
    with pytest.raises(ramify.RamifyError, match="number 2 is 3"):
        ramify.fit([["a", "b"], 3])
    with pytest.raises(ramify.RamifyError, match="the list is empty"):
        ramify.fit([])
    with pytest.raises(ramify.RamifyError, match="not a token"):
        ramify.fit([["a", 3], ["a", "b"]])


def test_errors_in_python_name_no_options_of_the_command_line(sentences, tmp_path):
    ramify.train(sentences, tmp_path / "run", **SMALL)
    with pytest.raises(ramify.RamifyError, match="use resume") as error:
        ramify.train(sentences, tmp_path / "run", **SMALL)
    assert "--" not in str(error.value)


def test_a_notebook_draws_trees_without_another_package(parser):
    with mock.patch.dict(sys.modules, {"svgling": None}):
        tree = parser.parse("the dog saw a man")
        assert "saw" in tree._repr_svg_()
        assert "saw" in parser.analyse("the dog saw a man")._repr_svg_()
    assert tree == nltk.Tree.fromstring(str(tree))
    sent = pickle.loads(pickle.dumps(tree))
    assert sent == tree
    sent[0].set_label("changed")
    assert "changed" in sent._repr_svg_()
    assert "changed" not in tree._repr_svg_()


def test_import_is_light():
    script = "import sys, ramify; assert 'torch' not in sys.modules and 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_saving_never_changes_other_folders(parser, tmp_path):
    for name in ("README.md", "config.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(ramify.RamifyError, match="not empty"):
        parser.save(tmp_path, overwrite=True)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"README.md": "{}", "config.json": "{}"}


def test_a_saved_model_cannot_be_resumed_by_mistake(parser, sentences, tmp_path):
    parser.save(tmp_path / "model")
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    with pytest.raises(ramify.RamifyError, match="has no checkpoint"):
        ramify.train(sentences, tmp_path / "model", resume=True)
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == before


def test_settings_about_files_are_refused_for_lists(sentences):
    with pytest.raises(ramify.RamifyError, match="list of sentences"):
        ramify.fit(sentences, split_sentences=True)


def test_fit_leaves_no_gradients(parser):
    fresh = ramify.fit([["a", "b", "a"]] * 30, **SMALL)
    assert all(parameter.grad is None for parameter in fresh.model.parameters())
    assert not parser.model.training


def test_an_unpaired_surrogate_is_refused_on_input(parser, tmp_path):
    for use in (lambda: ramify.fit([["\ud800x", "b"]] * 4), lambda: parser.parse("\ud800 b")):
        with pytest.raises(ramify.RamifyError, match="surrogate"):
            use()
    with pytest.raises(ramify.RamifyError, match="surrogate"):
        ramify.train([["\ud800x", "b"]] * 4, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("given", [None, 3, b"a b"])
def test_invalid_sentences_are_reported_in_one_sentence(parser, given):
    with pytest.raises(ramify.RamifyError):
        parser.parse(given)
    with pytest.raises(ramify.RamifyError):
        ramify.fit([given, given])
    with pytest.raises(ramify.RamifyError):
        ramify.fit(None)


@pytest.mark.parametrize("change", [("activation", "tanh"), ("gain", 2.0)])
def test_a_config_that_was_changed_after_the_training_is_refused(parser, tmp_path, change):
    parser.save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    config["grammar"][change[0]] = change[1]
    path.write_text(json.dumps(config))
    with pytest.raises(ramify.RamifyError, match="was changed"):
        ramify.load(tmp_path / "model")


def test_the_spelling_of_another_model_is_refused(parser, tmp_path):
    parser.save(tmp_path / "model")
    ramify.fit([["a", "b", "a"]] * 30, **SMALL).save(tmp_path / "other")
    (tmp_path / "model" / "spelling.json").write_bytes((tmp_path / "other" / "spelling.json").read_bytes())
    with pytest.raises(ramify.RamifyError, match="another model"):
        ramify.load(tmp_path / "model")
    (tmp_path / "model" / "spelling.json").unlink()
    with pytest.raises(ramify.RamifyError, match=r"has no spelling\.json"):
        ramify.load(tmp_path / "model")


def test_only_models_are_registered():
    with pytest.raises(TypeError, match="subclass"):
        ramify.register("number")(int)


def test_limits_and_seeds_are_checked(parser, tmp_path):
    (tmp_path / "gold.trees").write_text("(TOP (S (D the) (N dog)))")
    with pytest.raises(ramify.RamifyError, match="longest is 0"):
        ramify.evaluate(parser, tmp_path / "gold.trees", longest=0)
    with pytest.raises(ramify.RamifyError, match="seed is -1"):
        next(parser.generate(1, seed=-1))
