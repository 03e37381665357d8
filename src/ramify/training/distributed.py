"""A training run of several processes: only the first one has the folder, and all have the same model."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from ramify.errors import RamifyError
from ramify.models.base import Learner, Model
from ramify.runtime.processes import World, is_launched
from ramify.storage.checkpoint import Position, load_checkpoint
from ramify.storage.model_files import CHECKPOINT, FOCUS, WEIGHTS
from ramify.storage.model_folder import StoredModel
from ramify.storage.tensors import load_tensors, shapes_of
from ramify.training.focusing import SpanScores
from ramify.training.folder import TEACHERS, InMemory, RunFolder
from ramify.training.settings import Settings

DEFAULT_GROUPS = 4
"""Number of groups of a batch under torchrun"""


def in_groups(settings: Settings, world: World) -> Settings:
    """The settings with the default number of groups for this process; fewer groups than processes are refused."""
    groups = settings.gradient_groups or (DEFAULT_GROUPS if is_launched() else 1)
    if groups < world.size:
        raise RamifyError(
            f"gradient_groups is {groups}, but there are {world.size} processes, and each needs a group of sentences; "
            f"start at most {groups} processes, or a new run with gradient_groups {world.size} or more."
        )
    return replace(settings, gradient_groups=groups)


def check_restarts(world: World, resume: bool) -> None:
    """Refuse a run that torchrun may restart but that would not resume."""
    if world.restarts and not resume:
        raise RamifyError(
            f"torchrun may restart this run (--max-restarts {world.restarts}), and a restarted run must be resumed; "
            "add --resume, which starts a new run if the folder is empty."
        )


class LeadingFolder(RunFolder):
    """The folder in the first process, which sends its contents to the other processes, if there are any."""

    def __init__(self, out: Path, world: World) -> None:
        super().__init__(out)
        self._world = world

    def position(self, model: Model, learner: Learner) -> Position:
        """Restore model and learner from the last checkpoint; without one, the run starts at the beginning."""
        self._send(CHECKPOINT)
        return super().position(model, learner)

    def span_scores(self, lengths: list[int]) -> SpanScores | None:
        """The scores of the teachers; if they have not parsed yet, the other processes wait."""
        scores = super().span_scores(lengths)
        if scores is not None:
            self._send(FOCUS)
        return scores

    def keep_span_scores(self, scores: SpanScores) -> None:
        """Save them on disk, and send them to the other processes."""
        super().keep_span_scores(scores)
        self._send(FOCUS)

    def send_best(self) -> None:
        """The weights of the best epoch."""
        self._send(WEIGHTS)

    def _send(self, name: str) -> None:
        path = self.out / name
        if self._world.size == 1:
            return
        self._world.bytes_of_first(path.read_bytes() if path.exists() else b"")


class FollowedFolder(InMemory):
    """The folder in any other process, which writes nothing and receives its contents from the first one."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def position(self, model: Model, learner: Learner) -> Position:
        """Set model and learner to those of the first process."""
        with TemporaryDirectory() as folder:
            self._receive(CHECKPOINT, Path(folder))
            return load_checkpoint(Path(folder), model, learner)

    def span_scores(self, lengths: list[int]) -> SpanScores | None:
        """The scores of the teachers, after they have parsed."""
        with TemporaryDirectory() as folder:
            self._receive(FOCUS, Path(folder))
            return SpanScores.load(Path(folder), lengths)

    def keep(self, stored: StoredModel) -> None:
        """Do nothing; the first process saves it."""

    def load_best(self, model: Model) -> None:
        """The weights of the best epoch, from the first process."""
        with TemporaryDirectory() as folder:
            self._receive(WEIGHTS, Path(folder))
            weights, _ = load_tensors(Path(folder) / WEIGHTS, shapes_of(model.state_dict()))
        model.load_state_dict(weights)

    def _receive(self, name: str, folder: Path) -> None:
        if content := self._world.bytes_of_first(b""):
            (folder / name).write_bytes(content)


def check_same_run(description: dict[str, Any], world: World) -> dict[str, Any]:
    """The description of the run in the first process; refuses a process with other data or software.

    Teachers are compared only if they were given: a resumed run has their scores.
    """
    about = {"torch": torch.__version__, "processor": torch.backends.cpu.get_cpu_capability()}
    mine = description | about
    of_first: dict[str, Any] = world.found_by_first(lambda: mine)
    for name in ("version", *about, "data", "words", "text", "grammar", *([TEACHERS] if TEACHERS in mine else [])):
        if mine[name] != of_first.get(name):
            raise RamifyError(
                f"In process {world.rank}, {name} differs from that of the first process ({str(mine[name])[:200]}); "
                "start all processes with the same version, data, teachers and kind of processor."
            )
    return {name: value for name, value in of_first.items() if name not in about}


def check_same_model(model: Model, world: World) -> None:
    """Refuse to continue if the models of the processes differ in any bit."""
    if world.size == 1:
        return
    digest = hashlib.sha256()
    for tensor in model.state_dict().values():
        digest.update(tensor.cpu().numpy().data)
    found = world.gathered(torch.frombuffer(bytearray(digest.digest()), dtype=torch.uint8))
    if not bool((found == found[0]).all()):
        raise RamifyError(
            "The models of the processes differ after the same steps; use machines with the same kind of processor "
            "and the same versions of all libraries."
        )
