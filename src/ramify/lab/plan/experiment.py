"""The plan of an experiment: every data set, group and run, with all settings."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ramify.corpus.lines import read_beginning
from ramify.corpus.reading import SPLITS, guess_file_kind, read_sentences, split_paths
from ramify.errors import RamifyError, RamifyWarning
from ramify.lab.plan.toml_file import SettingsTable, check_known, check_name, split_table
from ramify.lab.results.schema import FORMAT, RUNS, DataRecord, Group, PlanRecord, Run, run_name
from ramify.training.settings import Settings
from ramify.version import VERSION

if TYPE_CHECKING:
    from ramify.corpus.reading import Corpus
    from ramify.training.data import Data


BUILT_IN = "built-in"


@dataclass(frozen=True)
class DataSet:
    """A named data set: a treebank, or text or CoNLL-U to learn from."""

    name: str
    files: dict[str, Path] | None
    """Those of train, dev and test that there are; None for the built-in corpus. Paths are absolute, because processes
    in other folders read them."""
    words: str = "auto"
    """Which leaves are words, as in the settings"""
    scored: str = "test"
    """The split that is scored: test, or dev while settings are still being chosen"""

    @property
    def is_scored(self) -> bool:
        """Whether there are gold trees to score against."""
        return self.files is None or (self.scored in self.files and begins_like_trees(self.files[self.scored]))

    def split(self, name: str) -> Path | Corpus | None:
        """The data of a split; None if it has no file."""
        if self.files is None:
            from ramify.demo import builtin_corpus

            return builtin_corpus()[name]
        file = self.files.get(name)
        if file is None or not begins_like_trees(file) or guess_file_kind(file) == "brackets":
            return file
        return read_sentences(file, "brackets")  # trees with unusual first labels, which would be taken for text

    def prepared(self, settings: Settings) -> Data:
        """Training and dev set, as a run with these settings sees them."""
        from ramify.training.data import prepare

        return prepare(self.split("train"), self.split("dev"), settings)

    @cached_property
    def checksums(self) -> dict[str, str]:
        """sha256 of every file; the built-in corpus has none, because it never changes."""
        return {name: _checksum(path) for name, path in (self.files or {}).items()}

    def as_record(self) -> DataRecord:
        """As `experiment.json` has it; only the name of the folder, because its path is private."""
        source = BUILT_IN if self.files is None else self.files["train"].parent.name
        return DataRecord(source, self.checksums, self.words, self.scored)


def begins_like_trees(file: Path) -> bool:
    """Whether the first character is a bracket; the rest is checked before the first run begins."""
    return read_beginning(file).decode("utf-8-sig", "replace").lstrip().startswith("(")


def _checksum(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise RamifyError(f"{path}: this file cannot be read ({error.strerror}); check its permissions.") from error


class DataTable(Struct):
    """A table [data.NAME], besides settings."""

    folder: str = ""


def data_sets(
    content: Mapping[str, Any], where: str, base: Path, places: Mapping[str, str], root: Path | None
) -> dict[str, tuple[dict[str, Path] | None, SettingsTable]]:
    """The files of every data set by its name, and the settings that it has in the experiment.

    `content` is the table [data] of an experiment; if it is empty, the data sets are those of `places` or, without
    any, all treebanks in the folder `root`. Relative paths begin at `root` or, without one, at `base`; the word
    `built-in` stands for the built-in corpus, `./built-in` for a folder.
    """
    if root is not None and not root.is_dir():
        raise RamifyError(f"{root}: this folder does not exist; check --data-root.")
    if content:
        check_known(places, content, f"{where}, [data]")
    content = content or dict(places or _treebanks_in(root))
    if not content:
        raise RamifyError(
            f"{where}: names no data; give --data NAME=FOLDER, --data-root with a folder of treebanks, or describe it "
            "under [data]."
        )
    found = {}
    for name, value in content.items():
        check_name(name, f"{where}, [data]")
        place = f"{where}, [data.{name}]"
        table, settings = split_table({"folder": value} if isinstance(value, str) else value, DataTable, place)
        folder = places.get(name, table.folder or name)
        parent = Path() if name in places else base if root is None else root
        found[name] = (None if folder == BUILT_IN else _files(parent / folder, place), settings)
    return found


def _treebanks_in(root: Path | None) -> dict[str, str]:
    """Every folder with all three splits; a warning names each folder that is left out."""
    found: dict[str, str] = {}
    refused: list[RamifyError] = []
    for folder in sorted(root.iterdir()) if root is not None else ():
        try:
            if folder.is_dir() and split_paths(folder):
                check_name(folder.name, str(folder))
                _files(folder, "--data-root")
                found[folder.name] = str(folder.absolute())
        except RamifyError as error:
            refused.append(error)
    if refused and not found:
        raise refused[0]
    for reason in refused:
        warnings.warn(f"left out: {reason}", RamifyWarning, stacklevel=2)
    return found


def _files(folder: Path, where: str) -> dict[str, Path]:
    try:
        found = split_paths(folder)
    except RamifyError as error:
        raise RamifyError(f"{where}: {error} Say where it is with --data or --data-root.") from error
    for name in SPLITS:
        if name not in found:
            raise RamifyError(f"{where}: {folder} has no {name} file; name one {name}.trees.")
        if not begins_like_trees(found[name]) and guess_file_kind(found[name]) != "conllu":
            raise RamifyError(f"{where}: {found[name]} contains neither trees nor CoNLL-U; give one of these.")
    return {name: found[name].absolute() for name in SPLITS}


def planned_run(
    data: str, model: str, settings: Settings, decoders: Sequence[str], teachers: Sequence[str] = ()
) -> Run:
    """A run that trains a model, in one process."""
    path = f"{RUNS}/{run_name(data, model, settings.seed)}"
    recorded = asdict(settings) | {"gradient_groups": settings.gradient_groups or 1}
    return Run(data, model, settings.seed, tuple(decoders), path, tuple(teachers), settings=recorded)


def planned_average(data: str, model: str, members: Sequence[str], leave_out_collapsed: bool = False) -> Run:
    """A run that averages trained models."""
    path = f"{RUNS}/{run_name(data, model, None)}"
    return Run(data, model, None, ("mbr",), path, (), tuple(members), leave_out_collapsed)


def settings_of(run: Run) -> Settings:
    """The settings of a run that is trained."""
    return Settings(**(run.settings or {}))


@dataclass(frozen=True)
class Plan:
    """A whole experiment."""

    name: str
    title: str
    data: dict[str, DataSet]
    groups: tuple[Group, ...]
    baselines: tuple[str, ...]
    threads: int
    """Of every run; the last digits of sums depend on it, so it is set by the experiment, not by the machine"""

    @cached_property
    def runs(self) -> dict[str, Run]:
        """By name; a run that several groups share occurs once. All first seeds come before all second seeds."""
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

    def as_record(self) -> PlanRecord:
        """What is written before the first run begins; the runs of groups are without settings."""
        groups = (replace(g, runs=tuple(replace(run, settings=None) for run in g.runs)) for g in self.groups)
        data = {name: data.as_record() for name, data in self.data.items()}
        facts = FORMAT, self.name, self.title, VERSION, self.threads, self.baselines
        return PlanRecord(*facts, data, tuple(groups), tuple(self.runs.values()))
