"""The folder of a training run: whether a run can start or resume there, and the files of each stage."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

from ramify.errors import RamifyError, RamifyWarning
from ramify.model_names import CONFIG
from ramify.models.base import Learner, Model
from ramify.storage.checkpoint import Position, load_checkpoint, save_checkpoint
from ramify.storage.files import folder_contents, remove_unfinished, write_atomically
from ramify.storage.locks import check_unlocked
from ramify.storage.model_card import write_card
from ramify.storage.model_files import (
    CHECKPOINT,
    FILES,
    FOCUS,
    LEARNT_FROM_TEXT,
    METRICS,
    WEIGHTS,
    holds_model,
    read_config,
)
from ramify.storage.model_folder import StoredModel, write_description, write_weights
from ramify.training.focusing import SpanScores
from ramify.training.settings import Settings, recorded_settings

TEACHERS = "teachers"
"""The entry in the config of a focused run that lists its teachers"""


def check_folder(out: Path, resume: bool, overwrite: bool) -> Settings | None:
    """The settings of the run to resume, if any; refuses a folder with other content, or in use."""
    check_unlocked(out)
    return settings_to_resume(out, resume, overwrite)


def settings_to_resume(out: Path, resume: bool, overwrite: bool) -> Settings | None:
    """As `check_folder`, for a folder that is already locked."""
    if resume and overwrite:
        raise RamifyError("resume and overwrite exclude each other; give one of them.")
    if out.exists() and not out.is_dir():
        raise RamifyError(f"{out}: this is a file; give the name of a folder.")
    inside = folder_contents(out, FILES)
    if not inside:
        return None
    if CONFIG not in inside or not holds_model(out):
        raise RamifyError(f"{out}: this folder is not empty and contains no ramify run; give another one.")
    if resume:
        if WEIGHTS in inside and CHECKPOINT not in inside:
            raise RamifyError(
                f"{out}: the model has no checkpoint and cannot be resumed; train it again in another folder."
            )
        config = read_config(out)
        settings = config.get("settings")
        if not isinstance(settings, dict):
            raise RamifyError(
                f"{out / CONFIG}: the settings of the run are missing or invalid, so it cannot be resumed; train again "
                "in another folder."
            )
        if config["words"] == LEARNT_FROM_TEXT:
            settings = {"min_count": 1, **settings}  # its value before it became a setting
        return recorded_settings(settings)
    if not overwrite:
        raise RamifyError(
            f"{out}: this folder is not empty; give another one, or use resume to continue the run in it, or overwrite "
            "to replace it."
        )
    return None


def check_same(out: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to resume with other data; warn if the result may differ in its last bits."""
    for name in ("train", "dev"):
        data = before.get("data")
        then = data.get(name) if isinstance(data, dict) else None
        if then != now["data"][name]:
            known = then if isinstance(then, dict) else {}
            raise RamifyError(
                f"{out}: was trained on another {name} set ({known.get('source')}, {known.get('sentences')} sentences, "
                f"checksum {str(known.get('sha256'))[:8]}); give the same one, or another folder."
            )
    if before.get(TEACHERS) != now.get(TEACHERS):
        names = ", ".join(teacher["name"] for teacher in before.get(TEACHERS) or ()) or "no teachers"
        raise RamifyError(f"{out}: this run started with {names}; give the same teachers, or another folder.")
    if any(before.get(name) != now[name] for name in ("grammar", "words", "text")):
        raise RamifyError(
            f"{out}: this run was started by a version that reads the data differently; resume with that version."
        )
    if before.get("threads") != now["threads"] and now["settings"]["gradient_groups"] == 1:
        warnings.warn(
            f"the run started with {before.get('threads')} threads and continues with {now['threads']}, so the "
            "result may differ in its last bits.",
            RamifyWarning,
            stacklevel=4,
        )


class RunFolder:
    """The folder of a run; every file in it is complete at any time."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def begin(self, description: dict[str, Any], stored: StoredModel, resumed: bool) -> None:
        """Write config and vocabulary before the first step; only the files of an earlier run are removed."""
        try:
            for name in () if resumed else FILES:
                (self.out / name).unlink(missing_ok=True)
        except OSError as error:
            raise RamifyError(f"{self.out}: cannot be written ({error.strerror}); check its permissions.") from error
        remove_unfinished(self.out, FILES)
        write_description(self.out, description, stored)

    def position(self, model: Model, learner: Learner) -> Position:
        """Restore model and learner from the last checkpoint; without one, the run starts at the beginning."""
        return load_checkpoint(self.out, model, learner)

    def save(self, model: Model, learner: Learner, position: Position) -> None:
        """Save a checkpoint."""
        save_checkpoint(self.out, model, learner, position)

    def span_scores(self, lengths: list[int]) -> SpanScores | None:
        """The teachers' scores for training sentences of these lengths; None if they have not parsed yet."""
        return SpanScores.load(self.out, lengths) if (self.out / FOCUS).exists() else None

    def keep_span_scores(self, scores: SpanScores) -> None:
        """Save the teachers' span scores, so that a resumed run has the same ones and does not need the teachers."""
        scores.save(self.out)

    def keep(self, stored: StoredModel) -> None:
        """Save the current model, the best so far."""
        write_weights(self.out, stored)

    def record(self, records: list[dict[str, Any]]) -> None:
        """The metrics of all epochs so far."""
        write_atomically(self.out / METRICS, "".join(json.dumps(each) + "\n" for each in records).encode())
        write_card(self.out, records[-1])


class InMemory:
    """A run that writes no files."""

    def __init__(self) -> None:
        self.best: dict[str, Any] = {}
        """The parameters of the best epoch"""

    def position(self, model: Model, learner: Learner) -> Position:  # noqa: ARG002
        """The beginning of the run."""
        return Position()

    def save(self, model: Model, learner: Learner, position: Position) -> None:
        """Do nothing, because such a run cannot be resumed."""

    def span_scores(self, lengths: list[int]) -> SpanScores | None:  # noqa: ARG002
        """None, because the teachers have not parsed yet."""
        return None

    def keep_span_scores(self, scores: SpanScores) -> None:
        """Do nothing, because such a run cannot be resumed."""

    def keep(self, stored: StoredModel) -> None:
        """Save the current model, the best so far."""
        self.best = {name: tensor.clone() for name, tensor in stored.model.state_dict().items()}

    def record(self, records: list[dict[str, Any]]) -> None:
        """Do nothing, because the caller has the metrics."""


RunStore = RunFolder | InMemory
