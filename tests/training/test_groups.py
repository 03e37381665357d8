"""Gradients in groups: the same as for the whole batch, and the same bits for any division of the work."""

from __future__ import annotations

import threading
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import ramify
from ramify.corpus.builtin import builtin_treebank
from ramify.errors import RamifyError, RamifyWarning
from ramify.models import FAMILIES
from ramify.models.base import Learner
from ramify.runtime import threads
from ramify.runtime.processes import ALONE, World
from ramify.storage.checkpoint import Position
from ramify.training.distributed import in_groups
from ramify.training.groups import Batch, check_groups, grouped_step, largest_within, summed_over_groups, tree_sum
from ramify.training.loop import noise_for, train_epoch, train_step
from ramify.training.settings import Settings, load_settings

WORDS = 50
OPTIONS: dict[str, dict[str, Any]] = {
    "tn-pcfg": {"nonterminals": 3, "preterminals": 6, "rank": 5, "embedding": 8},
    "td-pcfg": {"nonterminals": 3, "preterminals": 6, "rank": 5},
    "n-pcfg": {"nonterminals": 3, "preterminals": 6, "embedding": 8},
    "c-pcfg": {"nonterminals": 2, "preterminals": 3, "embedding": 8},
    "sn-pcfg": {"nonterminals": 3, "preterminals": 6, "embedding": 8},
    "sc-pcfg": {"nonterminals": 2, "preterminals": 3, "embedding": 8},
    "hol-pcfg": {"nonterminals": 3, "preterminals": 6, "embedding": 8},
    "em-pcfg": {"nonterminals": 3, "preterminals": 6},
    "nbl-pcfg": {"nonterminals": 2, "preterminals": 3, "rank": 4, "embedding": 8},
    "nl-pcfg": {"nonterminals": 2, "preterminals": 3, "embedding": 8},
    "structformer": {"width": 16, "layers": 2},
    "on-lstm": {"embedding": 20, "width": 20, "layers": 2},
    "prpn": {"embedding": 16, "width": 16},
    "diora": {"embedding": 8, "width": 8},
    "crf": {"embedding": 8, "width": 8},
}


@cache
def drawn_model(family: str) -> Any:
    settings = load_settings(None, {"model": family, **OPTIONS[family]})
    torch.manual_seed(0)
    return FAMILIES[family](**settings.model_arguments(WORDS))


def model_of(family: str) -> Any:
    """Always the same model; not drawn again, because threads share the generator of torch."""
    return deepcopy(drawn_model(family))


def sentences_of(model: Any, count: int, length: int = 5) -> tuple[Tensor, Tensor | None]:
    """With trees of teachers if the model needs them: right- and left-branching ones in turn."""
    word_ids = torch.randint(0, WORDS, (count, length), generator=torch.Generator().manual_seed(1))
    if not model.needs_teachers:
        return word_ids, None
    scores = torch.zeros(count, length + 1, length + 1)
    scores[::2, :-2, -1] = 1
    scores[1::2, 0, 2:] = 1
    return word_ids, scores


def test_every_family_is_here():
    assert set(OPTIONS) == {name for name, family in FAMILIES.items() if family.__module__.startswith("ramify.")}


@pytest.mark.parametrize("family", OPTIONS)
def test_the_sum_over_groups_is_the_gradient_of_the_batch(family, monkeypatch):
    """Without noise, so that the objective is the same."""
    word_ids, scores = sentences_of(model_of(family), 6)
    gradients = []
    for groups in (1, 4):
        model = model_of(family)
        learner = model.learner(0.001, 3.0)
        monkeypatch.setattr(learner, "step", lambda: None)
        for _ in range(2):  # the second step replaces the gradients of the first
            if groups == 1:
                log_z = train_step(model, learner, word_ids, None, 0.0, scores)
            else:
                log_z = grouped_step(model, learner, Batch(word_ids, lambda _: None, 0.0, scores), groups, ALONE)
        gradients.append([log_z, *(parameter.grad for parameter in model.parameters())])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


@dataclass
class Meeting:
    """Connects threads that simulate the processes of a job."""

    size: int
    given: dict[int, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.barrier = threading.Barrier(self.size)

    def exchange(self, rank: int, tensor: Tensor) -> list[Tensor]:
        self.given[rank] = tensor
        self.barrier.wait()
        found = [self.given[each].clone() for each in range(self.size)]
        self.barrier.wait()
        return found


class Played(World):
    """A process simulated by a thread."""

    def __init__(self, rank: int, meeting: Meeting) -> None:
        super().__init__(rank, meeting.size)
        object.__setattr__(self, "meeting", meeting)

    def gathered(self, tensor: Tensor) -> Tensor:
        return torch.stack(self.meeting.exchange(self.rank, tensor))

    def exchanged(self, rows: Tensor) -> Tensor:
        return torch.stack([each[self.rank] for each in self.meeting.exchange(self.rank, rows)])


def played(size: int, work: Any) -> list[Any]:
    """The results of `work(world)` in several simulated processes."""
    meeting, results = Meeting(size), [None] * size

    def run(rank: int) -> None:
        try:
            results[rank] = work(Played(rank, meeting))
        except BaseException:
            meeting.barrier.abort()
            raise

    running = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return results


def bits(model: Any) -> list[bytes]:
    return [parameter.detach().numpy().tobytes() for parameter in model.parameters()]


def trained(
    family: str, groups: int, world: World, dropout: float = 0.0, counts: tuple[int, ...] = (7, 3, 1)
) -> list[bytes]:
    """Parameters and objectives after steps with different numbers of sentences, including fewer than groups."""
    model = model_of(family)
    learner = model.learner(0.01, 3.0)
    objectives = []
    for step, count in enumerate(counts):
        word_ids, scores = sentences_of(model, count)
        noise = (lambda k, step=step: noise_for(0, 1, step, k + 1)) if model.draws() or dropout else (lambda _: None)
        found = grouped_step(model, learner, Batch(word_ids, noise, dropout, scores), groups, world)
        objectives.append(found.numpy().tobytes())
    learner.finish_epoch()
    return [*bits(model), *objectives]


@pytest.mark.slow
@pytest.mark.parametrize("family", OPTIONS)
def test_any_number_of_processes_gives_the_same_bits(family):
    dropout = 0.3 if FAMILIES[family].allows_dropout else 0.0
    alone = trained(family, 4, ALONE, dropout)
    assert alone[: len(bits(model_of(family)))] != bits(model_of(family))
    for size in (2, 3, 4):
        assert played(size, lambda world: trained(family, 4, world, dropout)) == [alone] * size


@pytest.mark.parametrize("family", ["tn-pcfg", "n-pcfg", "nbl-pcfg", "c-pcfg", "structformer", "crf"])
def test_any_number_of_threads_gives_the_same_bits(family, on_cores):
    found = []
    for cores in (1, 2, 3):
        on_cores(cores)
        found.append(trained(family, 4, ALONE))
    assert found[0] == found[1] == found[2]


def test_groups_draw_differently(monkeypatch):
    drawn = []
    monkeypatch.setattr("ramify.training.loop.grouped_step", lambda *given: drawn.append(given[2]) or torch.zeros(2))
    model = model_of("c-pcfg")
    settings = Settings(model="c-pcfg", gradient_groups=3, batch_size=2)
    train_epoch(model, model.learner(0.1, 1.0), [np.array([1, 2])] * 4, settings, Position())
    states = {tuple(batch.noise(k).get_state().tolist()) for batch in drawn for k in range(3)}
    assert len(states) == 6
    assert noise_for(0, 1, 0).get_state().tolist() not in [list(state) for state in states]


@pytest.mark.parametrize("groups", range(1, 10))
def test_the_order_of_additions_is_that_of_one_tree(groups):
    """With numbers of such different sizes that every order gives another sum."""
    values = torch.tensor([[(-1.7) ** (3 * k) + 0.1 * k] * 5 for k in range(groups)], dtype=torch.float32)
    for filled in ([*range(groups)], [*range(0, groups, 2)], [groups - 1]):

        def total(world: World, filled=filled) -> Tensor:
            begin, end = world.share(groups)
            mine = {k: values[k] for k in filled if begin <= k < end}
            return summed_over_groups(mine, filled, groups, world, torch.zeros(5))

        alone = total(ALONE)
        assert torch.allclose(alone, values[filled].sum(0))
        for size in range(2, groups + 1):
            for found in played(size, total):
                assert found.numpy().tobytes() == alone.numpy().tobytes()


def test_a_node_adds_its_halves():
    known = {(k, k + 1): torch.tensor(float(10**k)) for k in (0, 1, 3)}
    assert float(tree_sum((0, 4), known)) == 1011
    assert tree_sum((2, 3), known) is None
    assert largest_within((0, 8), (0, 6)) == [(0, 4), (4, 6)]
    assert largest_within((0, 8), (3, 8)) == [(3, 4), (4, 8)]
    # The sum is that of a node which another process added up, not of what is below it.
    assert float(tree_sum((0, 4), known | {(0, 2): torch.tensor(5.0)})) == 1005


class Indivisible(Learner):
    """A learner whose steps cannot be divided."""

    def state_shapes(self, parameter: nn.Parameter) -> dict[str, tuple[int, ...]]:  # noqa: ARG002
        return {}

    def update(self, objective: Tensor) -> None:
        """Learn nothing."""


def test_learners_that_cannot_be_divided_are_refused():
    learner = Indivisible([nn.Parameter(torch.zeros(1))], {})
    check_groups(learner, 1)
    with pytest.raises(RamifyError, match=r"Indivisible .* gradient_groups 1"):
        check_groups(learner, 2)
    assert in_groups(Settings(gradient_groups=3), World(0, 3)).gradient_groups == 3
    with pytest.raises(RamifyError, match=r"gradient_groups is 2, but there are 3 .* at most 2 .* gradient_groups 3"):
        in_groups(Settings(gradient_groups=2), World(0, 3))


def test_fixed_pieces_are_independent_of_threads(on_cores):
    for cores in (1, 3):
        on_cores(cores)
        with threads.in_fixed_pieces(4):
            assert (threads.available(), torch.get_num_threads()) == (4, 1)
            # Within a piece nothing is divided again, in whatever thread it runs.
            assert threads.in_pieces(lambda _: threads.available(), range(4)) == [1] * 4
            with threads.on_one_core():
                assert threads.available() == 1
            assert threads.available() == 4
            assert threads.BackgroundCall(threads.available).result() == 1
        assert threads.available() == cores


SMALL = {"preterminals": 8, "nonterminals": 4, "rank": 8, "embedding": 16, "epochs": 2, "batch_size": 8}


@pytest.fixture(scope="module")
def text() -> list[list[str]]:
    return [list(parse.words) for parse in builtin_treebank(1, train=80, dev=1, test=1)["train"]]


def weights(folder: Any) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_a_run_in_groups_does_not_depend_on_threads(text, tmp_path, on_cores):
    for cores in (1, 2):
        on_cores(cores)
        ramify.train(text, tmp_path / str(cores), gradient_groups=4, **SMALL)
    assert weights(tmp_path / "1") == weights(tmp_path / "2")


def test_a_run_without_groups_is_in_one_group(text, tmp_path):
    ramify.train(text, tmp_path / "default", **SMALL)
    ramify.train(text, tmp_path / "one", gradient_groups=1, **SMALL)
    ramify.train(text, tmp_path / "four", gradient_groups=4, **SMALL)
    assert weights(tmp_path / "default") == weights(tmp_path / "one") != weights(tmp_path / "four")


def test_a_run_keeps_its_groups(text, tmp_path, recwarn, on_cores):
    on_cores(1)
    ramify.train(text, tmp_path / "run", gradient_groups=4, **SMALL)
    with pytest.raises(RamifyError, match="gradient_groups of the run to resume is 4, not 2"):
        ramify.train(text, tmp_path / "run", resume=True, gradient_groups=2)
    on_cores(2)
    parser = ramify.train(text, tmp_path / "run", resume=True, epochs=3)
    assert parser.description["settings"]["gradient_groups"] == 4
    assert not [warning for warning in recwarn if issubclass(warning.category, RamifyWarning)]
