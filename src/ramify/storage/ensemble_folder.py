"""The folder of an ensemble: config.json and one model folder for each member."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ramify.corpus.cleaning import WordRule
from ramify.errors import RamifyError
from ramify.model_names import CONFIG
from ramify.storage.files import folder_contents, write_json
from ramify.storage.model_files import FORMAT, LEARNT_FROM_TEXT, checked_file, checksum, read_json
from ramify.version import VERSION

ENSEMBLE = "ensemble"
MAX_MEMBERS = 1000
_MEMBER = re.compile(r"member-[1-9][0-9]{0,3}")


@dataclass(frozen=True)
class StoredMember:
    """A member to be saved."""

    name: str
    weight: float
    save: Callable[[Path], None]
    """Writes the model to a folder"""


@dataclass(frozen=True)
class FoundEnsemble:
    """The folder of an ensemble."""

    members: list[FoundMember]
    words: str
    """The rule for words"""


@dataclass(frozen=True)
class FoundMember:
    """A member in the folder of an ensemble."""

    name: str
    weight: float
    folder: Path


def save_ensemble(folder: Path, members: Sequence[StoredMember], word_rule: WordRule | None) -> None:
    """Write a new folder, which appears when it is complete; an existing folder must be empty."""
    if folder.exists() and (not folder.is_dir() or folder_contents(folder, ())):
        raise RamifyError(f"{folder}: this folder is not empty; give another one for the ensemble.")
    folder = folder.absolute()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise RamifyError(f"{folder}: cannot be written ({error.strerror}); check its permissions.") from error
    try:
        records = []
        for number, member in enumerate(members, start=1):
            place = unfinished / f"member-{number}"
            member.save(place)
            records.append(
                {"folder": place.name, "name": member.name, "weight": member.weight, "sha256": checksum(place)}
            )
        rule = LEARNT_FROM_TEXT if word_rule is None else str(word_rule)
        write_json(unfinished / CONFIG, {"format": FORMAT, "version": VERSION, ENSEMBLE: records, "words": rule})
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    except OSError as error:
        raise RamifyError(f"{folder}: cannot be written ({error.strerror}); free some disk space.") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)  # created by this call; it no longer exists after a success


def is_ensemble(folder: Path) -> bool:
    """Whether the folder contains an ensemble, complete or not."""
    try:
        config = json.loads((folder / CONFIG).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(config, dict) and ENSEMBLE in config


def read_ensemble(folder: Path) -> FoundEnsemble:
    """Read and check the folder of an ensemble, including the checksums of the members."""
    path = checked_file(folder, CONFIG)
    config = read_json(path)
    records = config.get(ENSEMBLE) if isinstance(config, dict) else None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise RamifyError(f"{path}: does not have model format {FORMAT}; use the version of ramify that wrote it.")
    if not isinstance(records, list) or not 0 < len(records) <= MAX_MEMBERS:
        raise RamifyError(f"{path}: the list of members is missing or invalid; get a complete copy of the folder.")
    words = config.get("words")
    if not isinstance(words, str):
        raise RamifyError(f"{path}: the rule for words is missing or invalid; get a complete copy of the folder.")
    try:
        WordRule.from_name(words)
    except RamifyError as error:
        raise RamifyError(f"{path}: {error}") from error
    return FoundEnsemble([_member(folder, path, record) for record in records], words)


def _member(folder: Path, path: Path, record: Any) -> FoundMember:
    record = record if isinstance(record, dict) else {}
    name, weight, place = record.get("name"), record.get("weight"), record.get("folder")
    known = isinstance(name, str) and type(weight) in (int, float) and isinstance(place, str)
    if not known or not 0 < float(weight) < float("inf") or not _MEMBER.fullmatch(place):
        raise RamifyError(f"{path}: the list of members is missing or invalid; get a complete copy of the folder.")
    member = folder / place
    if not member.resolve().is_relative_to(folder.resolve()):
        raise RamifyError(f"{member}: is a link to a place outside the model folder; copy the member into the folder.")
    if checksum(member) != record.get("sha256"):
        raise RamifyError(f"{member}: differs from the member that was saved here; get a complete copy of the folder.")
    return FoundMember(name, float(weight), member)


def checksum_of(path: str | Path) -> str:
    """sha256 of everything that determines how a model folder, an ensemble or a file parses."""
    path = Path(path)
    if path.is_file() or not is_ensemble(path):
        return checksum(path)
    found = read_ensemble(path)
    members = [[member.weight, checksum(member.folder)] for member in found.members]
    return hashlib.sha256(json.dumps([members, found.words]).encode()).hexdigest()
