"""The state of an unfinished run, from which it continues as if it had not been interrupted."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from ramify.errors import RamifyError
from ramify.models.base import Learner, Model
from ramify.storage.model_files import CHECKPOINT, checked_file
from ramify.storage.tensors import load_tensors, save_tensors, shapes_of


@dataclass
class Position:
    """The position of a run. The order of its sentences follows from seed and epoch."""

    epoch: int = 1
    """The current epoch, counted from 1"""
    batches: int = 0
    """Number of its finished batches; the next fields are sums over these"""
    sentences: int = 0
    log_probability: float = 0.0
    words: int = 0
    """Words and sentence ends, as counted for perplexity"""
    seconds: float = 0.0
    records: list[dict[str, Any]] = field(default_factory=list)
    """The metrics of every finished epoch"""

    def next_epoch(self) -> Position:
        """The beginning of the next epoch."""
        return Position(epoch=self.epoch + 1, records=self.records)


def save_checkpoint(folder: Path, grammar: Model, optimizer: Learner, position: Position) -> None:
    """Save parameters, optimizer and position in one file, so that they are always consistent."""
    save_tensors(folder / CHECKPOINT, _tensors(grammar, optimizer), asdict(position))


def load_checkpoint(folder: Path, grammar: Model, optimizer: Learner) -> Position:
    """Restore grammar and optimizer from the checkpoint; without one, they do not change."""
    if not (folder / CHECKPOINT).exists():
        return Position()
    path = checked_file(folder, CHECKPOINT)
    parameters = shapes_of(grammar.state_dict())
    moments = {
        f"optimizer.{place}.{name}": shape
        for place, parameter in enumerate(grammar.parameters())
        for name, shape in optimizer.state_shapes(parameter).items()
    }
    tensors, facts = load_tensors(path, parameters | moments)
    grammar.load_state_dict({name: tensors[name] for name in parameters})
    state: dict[int, dict[str, Tensor]] = {}
    for name in moments:
        _, place, moment = name.split(".")
        state.setdefault(int(place), {})[moment] = tensors[name]
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    kinds = {name: type(value) for name, value in asdict(Position()).items()}
    if {name: type(value) for name, value in facts.items()} != kinds:
        raise RamifyError(f"{path}: was written by another version of ramify; resume with that version.")
    return Position(**facts)


def _tensors(grammar: Model, optimizer: Learner) -> dict[str, Tensor]:
    tensors = dict(grammar.state_dict())
    for place, state in optimizer.state_dict()["state"].items():
        for name, value in state.items():
            tensors[f"optimizer.{place}.{name}"] = value
    return tensors
