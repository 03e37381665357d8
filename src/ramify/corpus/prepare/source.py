"""A treebank as its format describes it: its files, the split of each file, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ramify.corpus.cleaning import WordRule
from ramify.corpus.prepare.passages import Cut, cut_at_margin
from ramify.corpus.tree import Parse
from ramify.errors import RamifyError

TRACE_TAG = "-NONE-"


@dataclass(frozen=True)
class SourceFile:
    """One file of a treebank."""

    name: str
    """Name in errors and in the manifest"""
    read: Callable[[], bytes]
    split: str | None = None
    """train, dev or test; None if trees are divided by number"""
    encoding: Callable[[bytes], str] = lambda _: "utf-8"


@dataclass(frozen=True)
class Source:
    """A treebank on disk, with everything that its format determines."""

    files: Sequence[SourceFile]
    word_rule: WordRule | None = None
    """None if it is guessed from the tags"""
    cut: Cut = cut_at_margin
    """Finds the places where a tree may begin, to continue after a corrupt one"""
    margin_is_a_guess: bool = False
    """Whether lines inside a tree may start without indentation; then `cut` is used only in a file with errors"""
    line_filter: Callable[[str], str] | None = None
    tidy: Callable[[Parse], Parse] | None = None
    shares: tuple[int, int, int] | None = None
    """Number of blocks of train, dev and test in each group"""
    facts: dict[str, str] = field(default_factory=dict)
    """Further facts for the manifest, such as the language"""
    unused: Sequence[str] = ()
    """Files of the treebank that belong to no split"""
    warnings: Sequence[str] = ()


def file_on_disk(path: Path, name: str, split: str | None = None) -> SourceFile:
    """A plain UTF-8 file."""
    return SourceFile(name, lambda: read_bytes(path), split)


def read_bytes(path: Path) -> bytes:
    """The whole file; if it cannot be read, a user error."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise RamifyError(f"{path}: cannot be read ({error.strerror}); check its permissions.") from error


def visible_files(folder: Path, without: Path) -> Iterator[Path]:
    """Every file below `folder` in order, except hidden ones and those below `without`."""
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not hidden and path.is_file() and not path.resolve().is_relative_to(without.resolve()):
            yield path


def find_files(folder: Path, pattern: re.Pattern[str], without: Path, preferred: str = "") -> dict[Path, re.Match[str]]:
    """The files below `folder` whose name matches; if some are in a folder `preferred`, only these.

    Two files with the same name are refused, because trees would be counted twice.
    """
    if not folder.is_dir():
        raise RamifyError(f"{folder}: does not exist; give the folder with the files of the treebank.")
    found = {path: match for path in visible_files(folder, without) if (match := pattern.fullmatch(path.name))}
    inside = {path: match for path, match in found.items() if preferred in path.relative_to(folder).parts}
    found = inside or found
    by_name: dict[str, Path] = {}
    for path in found:
        twin = by_name.setdefault(path.name.lower(), path)
        if twin != path:
            raise RamifyError(f"{path}: has the same name as {twin}; give the folder of one of them.")
    return found
