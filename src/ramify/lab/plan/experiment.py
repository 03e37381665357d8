"""An experiment as it will be run: every data set, run and group, nothing left to be looked up."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ramify.corpus.lines import beginning_of
from ramify.errors import RamifyError
from ramify.training.settings import Settings
from ramify.version import VERSION

if TYPE_CHECKING:
    from ramify.corpus.reading import Corpus

FORMAT = 1
BUILT_IN = "built-in"
RUNS = "runs"
SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class DataSet:
    """A treebank by its name, or text or CoNLL-U to learn from."""

    name: str
    files: dict[str, Path] | None
    """Of train, dev and test, the last two only where there are any; None for the built-in corpus"""
    words: str = "auto"
    """Which leaves are words, as in the settings"""

    @property
    def is_scored(self) -> bool:
        """Whether there are gold trees to score against."""
        return self.files is None or ("test" in self.files and looks_like_trees(self.files["test"]))

    @property
    def source(self) -> str:
        """The folder it is in."""
        return BUILT_IN if self.files is None else str(self.files["train"].parent)

    def split(self, name: str) -> Path | Corpus | None:
        """What to train on, to choose the model by, or to score against; None where that file is missing."""
        if self.files is None:
            return _builtin()[name]
        file = self.files.get(name)
        return _trees(file) if file is not None and looks_like_trees(file) else file

    @cached_property
    def checksums(self) -> dict[str, str]:
        """sha256 of every file; a built-in corpus is always the same."""
        if self.files is None:
            return {}
        return {name: _checksum(path) for name, path in self.files.items()}

    def as_record(self) -> dict[str, Any]:
        """In terms of JSON; of the folder only its name, because its place is nobody's business."""
        return {"source": Path(self.source).name, "sha256": self.checksums, "words": self.words}

    def as_job(self) -> dict[str, Any]:
        """In terms of JSON, for the process that does the work."""
        files = None if self.files is None else {name: str(path) for name, path in self.files.items()}
        return {"name": self.name, "files": files, "words": self.words}

    @classmethod
    def from_job(cls, record: dict[str, Any]) -> DataSet:
        """What `as_job` wrote."""
        files = record["files"]
        paths = None if files is None else {name: Path(path) for name, path in files.items()}
        return cls(record["name"], paths, record["words"])


def looks_like_trees(file: Path) -> bool:
    """As far as its first sign tells; the rest is read before the first run begins."""
    return beginning_of(file).decode("utf-8-sig", "replace").lstrip().startswith("(")


def _checksum(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise RamifyError(f"{path}: this file cannot be read ({error.strerror}); check its permissions.") from error


def _trees(path: Path) -> Path | Corpus:
    """The file or, where its first labels are so odd that it would be taken for text, the trees in it."""
    from ramify.corpus.reading import kind_of, read_sentences

    return path if kind_of(path) == "brackets" else read_sentences(path, "brackets")


def _builtin() -> dict[str, Corpus]:
    from ramify.demo import builtin_corpus

    return builtin_corpus()


@dataclass(frozen=True)
class Run:
    """One model, trained on one data set from one seed; or the average of such models, which needs no training."""

    data: str
    model: str
    settings: Settings | None
    """None for an average"""
    decoders: tuple[str, ...]
    teachers: tuple[str, ...] = ()
    """The names of the runs on which training is focused"""
    members: tuple[str, ...] = ()
    """The names of the runs that are averaged"""

    @property
    def seed(self) -> int | None:
        """Where its random numbers begin; an average has none."""
        return None if self.settings is None else self.settings.seed

    @property
    def needs(self) -> tuple[str, ...]:
        """The runs that must be finished before this one begins."""
        return self.teachers + self.members

    @property
    def name(self) -> str:
        """Also its place below the folder of all runs."""
        return run_name(self.data, self.model, self.seed)

    def as_record(self) -> dict[str, Any]:
        """In terms of JSON; `path` is below the experiment's folder."""
        record = {
            "data": self.data,
            "model": self.model,
            "seed": self.seed,
            "decoders": list(self.decoders),
            "path": f"{RUNS}/{self.name}",
        }
        others = {"teachers": list(self.teachers), "members": list(self.members)}
        return record | {key: names for key, names in others.items() if names}


def run_name(data: str, model: str, seed: int | None) -> str:
    """The place of a run below the folder of all runs."""
    return f"{data}/{model}/{'average' if seed is None else f'seed-{seed}'}"


@dataclass(frozen=True)
class Group:
    """What stands together in a table: every model on every data set from every seed."""

    name: str
    title: str
    data: tuple[str, ...]
    models: tuple[str, ...]
    seeds: tuple[int, ...]
    runs: tuple[Run, ...]

    def as_record(self) -> dict[str, Any]:
        """In terms of JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "data": list(self.data),
            "models": list(self.models),
            "seeds": list(self.seeds),
            "runs": [run.as_record() for run in self.runs],
        }


@dataclass(frozen=True)
class Plan:
    """A whole experiment."""

    name: str
    title: str
    data: dict[str, DataSet]
    groups: tuple[Group, ...]
    baselines: tuple[str, ...]
    threads: int
    """Of every run; sums depend on it in their last digits, so it belongs to the experiment, not to the machine"""

    @cached_property
    def runs(self) -> dict[str, Run]:
        """By name; one that several groups share is there once. All first seeds come before all second ones."""
        merged: dict[str, Run] = {}
        for run in self._in_order():
            earlier = merged.get(run.name)
            decoders = (*earlier.decoders, *run.decoders) if earlier else run.decoders
            merged[run.name] = replace(run, decoders=tuple(dict.fromkeys(decoders)))
        return merged

    def _in_order(self) -> Iterator[Run]:
        for place in range(max(len(group.seeds) for group in self.groups)):
            for group in self.groups:
                yield from (run for run in group.runs if run.seed in group.seeds[place : place + 1])
        yield from (run for group in self.groups for run in group.runs if run.members)

    def as_record(self) -> dict[str, Any]:
        """In terms of JSON: what is written before the first run begins."""
        return {
            "format": FORMAT,
            "name": self.name,
            "title": self.title,
            "version": VERSION,
            "threads": self.threads,
            "baselines": list(self.baselines),
            "data": {name: data.as_record() for name, data in self.data.items()},
            "groups": [group.as_record() for group in self.groups],
            "runs": [run.as_record() | _settings(run) for run in self.runs.values()],
        }


def _settings(run: Run) -> dict[str, Any]:
    return {} if run.settings is None else {"settings": asdict(run.settings)}
