"""TOML files, checked against a schema; errors name the place of the mistake."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from ramify.errors import RamifyError, shortened

Content = TypeVar("Content", bound=Struct)
Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Names = Annotated[tuple[str, ...], Meta(min_length=1)]
Seeds = Annotated[tuple[Seed, ...], Meta(min_length=1)]
SettingsTable = dict[str, Any]
"""Settings of training by name, not checked yet: `load_settings` does that"""

NAME = re.compile(r"\w[\w.+-]*")
LONGEST_NAME, MAX_BYTES = 100, 200
"""A folder's name may have 255 bytes, and letters of many scripts have two or three."""
LARGEST_FILE = 1 << 20
LONGEST_LIST = 200
PHRASES = {
    "Expected `array` of length >= 1": "is empty; name at least one",
    "Object missing required field": "lacks",
    "`array`": "a list",
    "`object`": "a table",
    "`str`": "a string",
    "`int`": "a whole number",
    "`float`": "a number",
}
"""What msgspec says, in words of TOML"""


def bundled_files(folder: str) -> dict[str, Path]:
    """The TOML files in a folder of this package, by name."""
    place = Path(str(resources.files("ramify.lab.plan") / folder))
    return {path.stem: path for path in sorted(place.glob("*.toml"))}


def find_file(text: str, folder: str, what: str) -> Path:
    """The file with this path, or the one with this name that comes with the package."""
    path, known = Path(text), bundled_files(folder)
    if path.is_file():
        return path
    if text in known:
        return known[text]
    if path.suffix == ".toml":
        raise RamifyError(f"{text}: this file does not exist; check the name.")
    raise RamifyError(f"{text}: is neither a TOML file nor {what}; choose one of {', '.join(known)}.")


def read_text(path: Path) -> str:
    """The text of a TOML file without its byte order mark; one too large for an experiment is refused."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise RamifyError(
                f"{path}: is larger than {LARGEST_FILE >> 20} MB, so it cannot be an experiment; check the name."
            )
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise RamifyError(f"{path}: cannot be read as the TOML file of an experiment ({error}).") from error


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file."""
    try:
        return tomllib.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise RamifyError(f"{path}: cannot be read as the TOML file of an experiment ({error}).") from error


def check_table(content: object, kind: type[Content], where: str) -> Content:
    """A table, converted to its schema; unknown keys are refused. Errors begin with `where`."""
    known = kind.__struct_encode_fields__
    for key in content if isinstance(content, dict) else ():
        if key not in known:
            raise RamifyError(f"{where}: {describe_unknown(key, known)}")
    try:
        found = msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise RamifyError(f"{where}: {_in_words(str(error))}.") from error
    for key, field in zip(known, kind.__struct_fields__, strict=True):
        values = getattr(found, field)
        if isinstance(values, tuple) and len(set(values)) < len(values):
            raise RamifyError(f"{where}: {key} contains a value twice; keep one.")
    return found


def split_table(content: object, kind: type[Content], where: str) -> tuple[Content, SettingsTable]:
    """A table that also has settings of training: the keys of its schema, and the rest."""
    if not isinstance(content, dict):
        raise RamifyError(f"{where}: is not a table; write settings such as preterminals = 60 below it.")
    known = {key: value for key, value in content.items() if key in kind.__struct_encode_fields__}
    return check_table(known, kind, where), {key: value for key, value in content.items() if key not in known}


@contextmanager
def errors_located(where: str) -> Iterator[None]:
    """Errors that are raised inside begin with `where`."""
    try:
        yield
    except RamifyError as error:
        raise RamifyError(f"{where}: {error}") from error


def _in_words(message: str) -> str:
    """An error of msgspec, such as "Expected `int`, got `str` - at `$.seeds[0]`", with the key first."""
    what, _, place = message.partition(" - at ")
    for phrase, words in PHRASES.items():
        what = what.replace(phrase, words)
    key = place.strip("`").removeprefix("$").removeprefix(".")
    what = what[:1].lower() + what[1:].replace("`", "'")
    joint = " " if what.startswith("is ") else ": "
    return f"{key}{joint}{what}" if key else what


def describe_unknown(name: str, known: Collection[str]) -> str:
    """An explanation of an unknown name: a similar known name, or a list of all."""
    close = difflib.get_close_matches(name, known, 1)
    everything = ", ".join(known)
    if len(everything) > LONGEST_LIST:
        everything = everything[:LONGEST_LIST].rpartition(",")[0] + " ..."
    rest = f"use one of {everything}." if known else "leave it out."
    hint = f"did you mean {close[0]!r}?" if close else rest
    return f"{shortened(name)} is unknown; {hint}"


def check_known(names: Iterable[str], known: Collection[str], where: str) -> None:
    """Refuse names that are not among the known ones."""
    for name in names:
        if name not in known:
            raise RamifyError(f"{where}: {describe_unknown(name, known)}")


def check_name(name: str, where: str) -> None:
    """Refuse a name that cannot be the name of a folder."""
    if not _is_name(name):
        raise RamifyError(
            f"{where}: the name {shortened(name)} must be letters, digits and . _ + - ({LONGEST_NAME}, or {MAX_BYTES} "
            "bytes, at most), and begin with a letter, a digit or _."
        )


def name_from(text: str) -> str:
    """The most similar name that is allowed."""
    name = re.sub(r"^\W+", "", re.sub(r"[^\w.+-]+", "-", text))[:LONGEST_NAME]
    while name and not _is_name(name):
        name = name[:-1]
    return name or "all"


def _is_name(text: str) -> bool:
    return bool(NAME.fullmatch(text)) and len(text) <= LONGEST_NAME and len(text.encode()) <= MAX_BYTES
