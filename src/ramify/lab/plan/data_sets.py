"""The data of an experiment: where it is, and its splits."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ramify.corpus.lines import beginning_of
from ramify.corpus.reading import kind_of, read_sentences, split_paths
from ramify.errors import RamifyError, RamifyWarning
from ramify.lab.plan.toml_file import SettingsTable, check_known, check_name, split
from ramify.lab.results.schema import DataRecord

if TYPE_CHECKING:
    from ramify.corpus.reading import Corpus

BUILT_IN = "built-in"
SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class DataSet:
    """A treebank by its name, or text or CoNLL-U to learn from."""

    name: str
    files: dict[str, Path] | None
    """Of train, dev and test, the last two only where there are any; None for the built-in corpus"""
    words: str = "auto"
    """Which leaves are words, as in the settings"""
    scored: str = "test"
    """The split that is scored: test, or dev where settings are still being chosen"""

    @property
    def is_scored(self) -> bool:
        """Whether there are gold trees to score against."""
        return self.files is None or (self.scored in self.files and looks_like_trees(self.files[self.scored]))

    def split(self, name: str) -> Path | Corpus | None:
        """What to train on, to choose the model by, or to score against; None where that file is missing."""
        if self.files is None:
            from ramify.demo import builtin_corpus

            return builtin_corpus()[name]
        file = self.files.get(name)
        if file is None or not looks_like_trees(file) or kind_of(file) == "brackets":
            return file
        return read_sentences(file, "brackets")  # trees whose first labels are so odd that they would pass for text

    @cached_property
    def checksums(self) -> dict[str, str]:
        """sha256 of every file; a built-in corpus is always the same."""
        return {name: _checksum(path) for name, path in (self.files or {}).items()}

    def as_record(self) -> DataRecord:
        """For the plan of an experiment; of the folder only its name, because the rest is private."""
        source = BUILT_IN if self.files is None else self.files["train"].parent.name
        return DataRecord(source, self.checksums, self.words, self.scored)


def looks_like_trees(file: Path) -> bool:
    """By its first character; the rest is read before the first run begins."""
    return beginning_of(file).decode("utf-8-sig", "replace").lstrip().startswith("(")


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

    `content` is the table [data] of an experiment; where it is empty, the data sets are those of `places` and, without
    any, all treebanks in the folder `root`. Relative folders are looked for in `root` or, without one, in `base`; the
    word `built-in` stands for the built-in corpus, `./built-in` for a folder.
    """
    if root is not None and not root.is_dir():
        raise RamifyError(f"{root}: there is no such folder; check --data-root.")
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
        table, settings = split({"folder": value} if isinstance(value, str) else value, DataTable, place)
        folder = places.get(name, table.folder or name)
        parent = Path() if name in places else base if root is None else root
        found[name] = (None if folder == BUILT_IN else _files(parent / folder, place), settings)
    return found


def _treebanks_in(root: Path | None) -> dict[str, str]:
    """Every folder with all three splits in it; a warning names what was left out."""
    found: dict[str, str] = {}
    refused: list[RamifyError] = []
    for folder in sorted(root.iterdir()) if root is not None else ():
        try:
            if folder.is_dir() and _splits(folder):
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


def _splits(folder: Path) -> dict[str, Path]:
    try:
        return split_paths(folder)
    except OSError as error:
        raise RamifyError(f"{folder}: cannot be read ({error.strerror}); check its permissions.") from error


def _files(folder: Path, where: str) -> dict[str, Path]:
    try:
        found = _splits(folder)
    except RamifyError as error:
        raise RamifyError(f"{where}: {error} Say where it is with --data or --data-root.") from error
    for name in SPLITS:
        if name not in found:
            raise RamifyError(f"{where}: {folder} has no {name} file; name one {name}.trees.")
        if not looks_like_trees(found[name]) and kind_of(found[name]) != "conllu":
            raise RamifyError(f"{where}: {found[name]} holds neither trees nor CoNLL-U; experiments do not read text.")
    return {name: found[name].absolute() for name in SPLITS}
