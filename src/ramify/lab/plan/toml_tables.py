"""Tables of a TOML file, read key by key: what is of the wrong type or unknown is refused with its place."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

from ramify.errors import RamifyError, shortened

Item = TypeVar("Item", str, int)

NAME = re.compile(r"\w[\w.+-]*")
LONGEST_NAME, MOST_BYTES = 100, 200
"""A folder's name may have 255 bytes, and letters of many scripts have two or three."""
LARGEST_FILE = 1 << 20
LONGEST_LIST = 200


def read_text(path: Path) -> str:
    """The text of a TOML file, of a size that a person could have written; a byte order mark is left out."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise RamifyError(f"{path}: is larger than {LARGEST_FILE >> 20} MB; this is no experiment.")
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise RamifyError(f"{path}: cannot be read as the TOML file of an experiment ({error}).") from error


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file."""
    try:
        return tomllib.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise RamifyError(f"{path}: cannot be read as the TOML file of an experiment ({error}).") from error


class Table:
    """A table of which every key must be asked for."""

    def __init__(self, where: str, content: object) -> None:
        self.where = where
        if not isinstance(content, dict):
            raise RamifyError(f"{where}: is {_shown(content)}, but must be a table.")
        self._content: dict[str, Any] = dict(content)
        self._known: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self._content

    def _take(self, key: str, default: object) -> Any:
        self._known.append(key)
        return self._content.pop(key, default)

    def text(self, key: str, default: str) -> str:
        """A string."""
        value = self._take(key, default)
        if not isinstance(value, str):
            raise RamifyError(f"{self.where}: {key} is {_shown(value)}, but must be a string.")
        return value

    def number(self, key: str, default: int, lowest: int, largest: int) -> int:
        """A whole number."""
        value = self._take(key, default)
        if type(value) is not int or not lowest <= value <= largest:
            wanted = f"a whole number from {lowest} to {largest}"
            raise RamifyError(f"{self.where}: {key} is {_shown(value)}, but must be {wanted}.")
        return value

    def table(self, key: str) -> dict[str, Any]:
        """A table in this one, whose keys must be asked for elsewhere."""
        value = self._take(key, {})
        return Table(f"{self.where}, [{key}]", value)._content

    def tables(self, key: str) -> list[Any]:
        """All that stand under [[key]]."""
        value = self._take(key, [])
        if not isinstance(value, list):
            raise RamifyError(f"{self.where}: {key} must be written [[{key}]], once for each.")
        return value

    def listed(
        self, key: str, default: Collection[Item], kind: type[Item], check: Callable[[Item], None]
    ) -> list[Item]:
        """A list without repetitions; an empty one must be written as such by somebody who means it."""
        value = self._take(key, list(default))
        if not isinstance(value, list) or not all(type(each) is kind for each in value):
            what = "strings" if kind is str else "whole numbers"
            raise RamifyError(f"{self.where}: {key} is {_shown(value)}, but must be a list of {what}.")
        for each in value:
            try:
                check(each)
            except RamifyError as error:
                raise RamifyError(f"{self.where}, {key}: {error}") from error
        if len(set(value)) < len(value):
            raise RamifyError(f"{self.where}: {key} names something twice; keep one.")
        return value

    def chosen(self, key: str, known: Collection[str]) -> list[str]:
        """Some of the names that are known; all of them unless told."""

        def check(name: str) -> None:
            if name not in known:
                raise RamifyError(unknown(name, known))

        return self.listed(key, known, str, check)

    def rest(self) -> dict[str, Any]:
        """Whatever was not asked for."""
        content, self._content = self._content, {}
        return content

    def finish(self) -> None:
        """Refuse what nobody asked for."""
        for key in self._content:
            raise RamifyError(f"{self.where}: {unknown(key, self._known)}")


def unknown(name: str, known: Collection[str]) -> str:
    """What to say of a name that is not known: the one that was meant, or all there are."""
    close = difflib.get_close_matches(name, known, 1)
    everything = ", ".join(known) or "none"
    everything = (
        everything if len(everything) <= LONGEST_LIST else everything[:LONGEST_LIST].rpartition(",")[0] + " ..."
    )
    hint = f"did you mean {close[0]!r}?" if close else f"known are {everything}."
    return f"{shortened(name)} is unknown; {hint}"


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python writes no number of thousands of digits
        return "a number of very many digits"
    return text if len(text) <= 40 else text[:37] + "..."


def check_name(name: str, where: str) -> None:
    """A name that is also the name of a folder."""
    if not _is_name(name):
        raise RamifyError(
            f"{where}: the name {shortened(name)} must be letters, digits and . _ + - ({LONGEST_NAME}, or {MOST_BYTES} "
            "bytes, at most), and begin with a letter, a digit or _."
        )


def name_from(text: str) -> str:
    """A name that says what `text` says, as far as a name can."""
    name = re.sub(r"^\W+", "", re.sub(r"[^\w.+-]+", "-", text))[:LONGEST_NAME]
    while name and not _is_name(name):
        name = name[:-1]
    return name or "all"


def _is_name(text: str) -> bool:
    return bool(NAME.fullmatch(text)) and len(text) <= LONGEST_NAME and len(text.encode()) <= MOST_BYTES
