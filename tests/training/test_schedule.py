"""The sentences of a run, their order, the learning rate and the epoch that is kept, compared with results by hand."""

from __future__ import annotations

import copy
import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import ramify
from ramify.models import CPCFG, TNPCFG
from ramify.models.base import Learner
from ramify.storage.checkpoint import Position
from ramify.storage.model_folder import StoredModel
from ramify.training.loop import Progress, equal_length_batches, train_epoch, train_step
from ramify.training.settings import Settings
from tests.structures.brute_force import tree_weights
from tests.structures.random_rules import inside

SMALL = {"preterminals": 4, "nonterminals": 2, "rank": 3, "embedding": 4, "batch_size": 2}
WORDS = 12


def sentences(count: int = 24, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(WORDS, size=rng.integers(2, 6)) for _ in range(count)]


class Recorded:
    """Epochs of training with a record of every step: the words, the noise and the learning rate."""

    def __init__(self, settings: Settings, compound: bool = False) -> None:
        torch.manual_seed(0)
        self.settings = settings
        self.grammar = CPCFG(2, 4, WORDS, 4, latent=2) if compound else TNPCFG(2, 4, 3, WORDS, 4)
        self.optimizer = self.grammar.learner(settings.learning_rate, settings.clip)
        self.words: list[list[list[int]]] = []
        self.noise: list[int | None] = []
        self.rates: list[float] = []
        with_cost = self.grammar.with_cost

        def noted(word_ids: torch.Tensor, lengths: torch.Tensor, noise: torch.Generator | None = None) -> Any:
            self.words.append(word_ids.tolist())
            self.noise.append(None if noise is None else noise.initial_seed())
            self.rates.append(self.optimizer.param_groups[0]["lr"])
            return with_cost(word_ids, lengths, noise)

        self.grammar.with_cost = noted  # type: ignore[method-assign]

    def run(self, epoch: int, data: list[np.ndarray], batches: int = 0) -> list[Progress]:
        """The rest of an epoch after the given number of batches."""
        for notes in (self.words, self.noise, self.rates):
            notes.clear()
        seen: list[Progress] = []
        train_epoch(
            self.grammar, self.optimizer, data, self.settings, Position(epoch=epoch, batches=batches), seen.append
        )
        return seen


def test_every_epoch_has_all_sentences_in_a_new_order() -> None:
    recorded, data, orders = Recorded(Settings(batch_size=2, seed=3)), sentences(), []
    for epoch in (1, 2, 3):
        recorded.run(epoch, data)
        assert sorted(s for batch in recorded.words for s in batch) == sorted(s.tolist() for s in data)
        orders.append([list(batch) for batch in recorded.words])
    assert orders[0] != orders[1] != orders[2] != orders[0]
    recorded.run(2, data, batches=4)
    assert recorded.words == orders[1][4:]
    recorded.settings = Settings(batch_size=2, seed=4)
    recorded.run(1, data)
    assert recorded.words != orders[0]


def test_batches_of_all_lengths_are_mixed() -> None:
    data = [np.zeros(length, np.int64) for length in range(2, 12) for _ in range(40)]
    batches = equal_length_batches(data, 2, np.random.default_rng(0))
    lengths = [len(data[batch[0]]) for batch in batches]
    # 200 batches: sorted by length, there would be 9 changes of length; in random order, about 180.
    assert sum(a != b for a, b in pairwise(lengths)) > 120


def test_sentences_of_one_length_are_mixed_too() -> None:
    data = [np.zeros(3, np.int64) for _ in range(100)]
    places = [place for batch in equal_length_batches(data, 1, np.random.default_rng(0)) for place in batch]
    members = [set(batch) for batch in equal_length_batches(data, 4, np.random.default_rng(0))]
    assert places != sorted(places)
    # In the order of the file, four neighbours would share a batch.
    assert sum(max(batch) - min(batch) > 3 for batch in members) > 20


@pytest.mark.parametrize("decay", [1.0, 0.5])
def test_the_learning_rate_decays_after_every_epoch(decay: float) -> None:
    recorded, data = Recorded(Settings(learning_rate=0.01, decay=decay)), sentences(4)
    for epoch in (1, 2, 3):
        recorded.run(epoch, data)
        assert recorded.rates == pytest.approx([0.01 * decay ** (epoch - 1)] * len(recorded.words))


def test_the_curriculum_admits_one_word_more_each_epoch() -> None:
    recorded = Recorded(Settings(curriculum=3))
    data = [np.zeros(length, np.int64) for length in (2, 3, 4, 5)]
    for epoch, longest in ((1, 3), (2, 4), (3, 5)):
        progress = recorded.run(epoch, data)
        assert sorted(len(batch[0]) for batch in recorded.words) == list(range(2, longest + 1))
        assert progress[-1].sentences == longest - 1


@pytest.mark.parametrize("kind", ["compound", "dropout"])
def test_every_batch_has_separate_noise_that_follows_from_its_place(kind: str) -> None:
    settings = Settings(batch_size=2, dropout=0.3 if kind == "dropout" else 0.0)
    recorded, data = Recorded(settings, compound=kind == "compound"), sentences(10)
    recorded.run(1, data)
    first = list(recorded.noise)
    recorded.run(2, data)
    second = list(recorded.noise)
    assert None not in first
    assert len({*first, *second}) == len(first) + len(second)
    recorded.run(1, data, batches=3)
    assert recorded.noise == first[3:]


def test_training_perplexity_counts_words_and_an_end_for_each_sentence() -> None:
    recorded = Recorded(Settings(batch_size=2, learning_rate=1e-30))  # so that the grammar stays as it is
    recorded.grammar.double()
    data = sentences(6)
    *_, progress = recorded.run(1, data)
    total = 0.0
    for words in data:
        rules = recorded.grammar(torch.from_numpy(words)[None], torch.tensor([len(words)]))
        N = len(words)
        trees = tree_weights(rules, 0, torch.zeros(1, N + 1, N + 1, dtype=torch.float64))
        total += torch.stack(list(trees.values())).sum().log().item()
    places = sum(len(words) + 1 for words in data)
    assert progress.perplexity == pytest.approx(math.exp(-total / places), rel=1e-6)
    assert (progress.sentences_done, progress.sentences) == (6, 6)


class PlainDescent(Learner, torch.optim.SGD):
    """Plain gradient steps."""

    def state_shapes(self, parameter):  # noqa: ARG002
        return {}


def test_a_step_of_a_compound_grammar_climbs_the_lower_bound() -> None:
    """log p(w | z) minus the divergence of z's distribution from its prior, in value and in every gradient."""
    torch.manual_seed(0)
    grammar = CPCFG(2, 3, WORDS, 4, latent=2).double()
    before = copy.deepcopy(grammar)
    word_ids, lengths = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([3, 3])
    optimizer = PlainDescent(grammar.parameters(), lr=0.5)
    found = train_step(grammar, optimizer, word_ids, torch.Generator().manual_seed(5))
    rules, cost = before.with_cost(word_ids, lengths, torch.Generator().manual_seed(5))
    bound = inside(rules, engine="reference") - cost
    bound.mean().backward()
    assert (cost > 1e-6).all()
    torch.testing.assert_close(found, bound.detach())
    for moved, parameter in zip(grammar.parameters(), before.parameters(), strict=True):
        torch.testing.assert_close(moved, parameter + 0.5 * parameter.grad)


def test_the_best_epoch_so_far_is_kept_not_one_better_than_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    perplexities, weights = iter([20.0, 40.0, 30.0, 20.0]), []

    def evaluated(stored: StoredModel, *_: object) -> dict[str, float]:
        weights.append({name: value.clone() for name, value in stored.model.state_dict().items()})
        return {"dev_perplexity": next(perplexities)}

    monkeypatch.setattr("ramify.training.run.evaluate_dev", evaluated)
    (tmp_path / "text").write_text("a b c\nb c d a\nc a\nd b a\n" * 10)
    ramify.train(tmp_path / "text", tmp_path / "run", **SMALL, epochs=4, patience=5)
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["best_epoch"] for line in lines] == [1, 1, 1, 1]
    kept = load_file(tmp_path / "run" / "model.safetensors")
    assert kept.keys() == weights[0].keys()
    assert all(torch.equal(value, weights[0][name]) for name, value in kept.items())


@pytest.mark.parametrize(("patience", "epochs"), [(1, 3), (2, 4), (9, 6)])
def test_a_run_ends_after_patience_epochs_without_a_better_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: int, epochs: int
) -> None:
    perplexities = iter([50.0, 20.0, 30.0, 40.0, 60.0, 70.0])
    monkeypatch.setattr("ramify.training.run.evaluate_dev", lambda *_: {"dev_perplexity": next(perplexities)})
    (tmp_path / "text").write_text("a b c\nb c d a\nc a\nd b a\n" * 10)
    ramify.train(tmp_path / "text", tmp_path / "run", **SMALL, epochs=6, patience=patience)
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == epochs


@pytest.fixture(scope="module")
def short_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Training on sentences of at most 4 words: two sentences; the others have 7 and 1."""
    folder = tmp_path_factory.mktemp("lengths")
    (folder / "train").write_text("a b c d\nlonger longer longer e f e f\nc d a b\nalone\nalone\n")
    (folder / "dev").write_text("a b c d a b c d a b\na b c\nsingle\n")
    ramify.train(folder / "train", folder / "run", dev=folder / "dev", **SMALL, epochs=1, max_length=4)
    return folder / "run"


def test_the_longest_length_applies_only_to_training_sentences(short_run: Path) -> None:
    data = json.loads((short_run / "config.json").read_text())["data"]
    assert data["train"]["sentences"] == 2
    assert data["train"]["dropped"] == {"under 2 words": 2, "over 4 words": 1}
    assert data["dev"]["sentences"] == 2
    assert data["dev"]["dropped"] == {"under 2 words": 1}


def test_words_are_counted_before_sentences_are_left_out(short_run: Path) -> None:
    known = (short_run / "vocab.txt").read_text().split()
    assert known[:2] == ["<unk>", "longer"]
    assert set(known[2:]) == {"a", "b", "c", "d", "e", "f", "alone"}
