"""Extending the package from outside: a distribution, a family that uses it, and a distribution in a custom loss."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import ramify
from ramify.models import FAMILIES, Model, register
from ramify.models.adam import AdamLearner
from tests.conftest import PROJECT
from tests.structures.brute_force import bracketings, spans_of

TREES = "(TOP (S (NP (D the) (N dog)) (VP (V saw) (NP (D a) (N cat)))))\n"


def example(name: str):
    spec = importlib.util.spec_from_file_location(name, PROJECT / "examples" / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def family():
    return example("new_family")


def test_the_distribution_is_that_of_all_trees(family):
    lengths = torch.tensor([5, 3])
    scores = torch.randn(2, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    trees = family.SpanTrees(scores, lengths)
    found = trees.marginals()
    for b, length in enumerate(lengths.tolist()):
        every = [[(i, j) for i, j in spans_of(tree) if j - i > 1] for tree in bracketings(0, length)]
        weights = np.exp([sum(float(scores[b, i, j]) for i, j in spans) for spans in every])
        assert float(trees.log_partition()[b]) == pytest.approx(np.log(weights.sum()))
        expected = sum(w for w, spans in zip(weights, every, strict=True) if (0, 2) in spans) / weights.sum()
        assert float(found.spans[b, 0, 2]) == pytest.approx(expected)


def test_the_family_is_trained_saved_loaded_parsed_with_and_scored(family, tmp_path):
    sentences = [line.split() for line in family.SENTENCES] * 4
    parser = ramify.fit(sentences, model="contrastive", epochs=3, size=4, seed=1)
    assert isinstance(parser.model, family.ContrastiveBrackets)
    parser.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    analysis = again("the dog saw a cat")
    assert str(analysis.tree) == str(parser("the dog saw a cat").tree)
    assert analysis.failure is None
    assert len(analysis.parse.spans) == 4
    gold = tmp_path / "gold.trees"
    gold.write_text(TREES)
    result = ramify.evaluate(again, gold)
    assert 0 <= result.scores.sentence_f1 <= 100
    assert result.perplexity is None
    with pytest.raises(ramify.RamifyError, match="needs a grammar"):
        again.strongest_rules()
    with pytest.raises(ramify.RamifyError, match="needs a grammar"):
        again.analyse("the dog saw a cat", decoder="viterbi")


def test_the_family_trains_in_a_folder_and_resumes(family, tmp_path):  # noqa: ARG001
    data = tmp_path / "text.txt"
    data.write_text("\n".join(["the dog saw a cat", "a cat saw the old dog", "the man saw it"] * 10))
    given = {"model": "contrastive", "size": 4, "seed": 3}
    whole = ramify.train(data, tmp_path / "whole", epochs=2, **given)
    ramify.train(data, tmp_path / "parts", epochs=1, **given)
    parts = ramify.train(data, tmp_path / "parts", epochs=2, resume=True)
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, parts.model.state_dict()[name])
    record = json.loads((tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()[-1])
    assert record["dev_perplexity"] is None
    assert record["dev_loss"] > 0


def test_an_option_of_another_family_is_refused(family, tmp_path):  # noqa: ARG001
    with pytest.raises(ramify.RamifyError, match="contrastive has no option rank"):
        ramify.fit([["a", "b"]] * 4, model="contrastive", rank=3)
    with pytest.raises(ramify.RamifyError, match="'size' is not a setting"):
        ramify.fit([["a", "b"]] * 4, size=3)


def test_a_name_is_registered_once(family):
    assert FAMILIES["contrastive"] is family.ContrastiveBrackets
    with pytest.raises(ValueError, match="already a family"):
        register("tn-pcfg")(Model)


def test_a_distribution_in_a_loss_learns():
    losses, posteriors = example("tree_loss").train(steps=15)
    assert losses[-1] < losses[0] - 1
    assert float(posteriors[0, 0, 3]) > 0.3


def test_examples_are_named_in_the_docs():
    page = (PROJECT / "docs" / "architecture.md").read_text()
    for file in Path(PROJECT / "examples").glob("*.py"):
        assert file.name in page


class Twins(Model):
    """Two names for one tensor."""

    def __init__(self, words: int, gain: float = 7.0) -> None:
        super().__init__()
        self.words, self.gain = words, gain
        self.first = torch.nn.Linear(2, 2)
        self.second = self.first

    def objective(self, word_ids, lengths, noise=None, dropout=0.0):  # noqa: ARG002
        return self.first.weight.sum().expand(len(word_ids))

    def marginals(self, word_ids, lengths):  # noqa: ARG002
        raise AssertionError


def test_models_that_cannot_be_saved_are_refused_before_training():
    register("twins")(Twins)
    register("twins")(Twins)  # a cell of a notebook that is run again
    with pytest.raises(ramify.RamifyError, match="share memory"):
        ramify.fit([["a", "b"]] * 4, model="twins")


def test_the_defaults_of_a_family_are_its_own():
    assert ramify.Settings(model="twins").model_arguments(5) == {"words": 5, "gain": 7.0}


def test_a_transposed_parameter_moves_like_any_other():
    parameter = torch.nn.Parameter(torch.ones(3, 4).T)
    learner = AdamLearner([parameter], 0.1, (0.75, 0.999), 3.0)
    parameter.sum().backward()
    learner.step()
    torch.testing.assert_close(parameter.detach(), torch.full((4, 3), 0.9))
