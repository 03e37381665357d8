"""Checks the files of a model folder without torch: names, sizes, and the content of the config.

A folder may come from someone else, so its files are checked before they are used and before memory is allocated.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ramify.corpus.cleaning import WordRule
from ramify.errors import RamifyError
from ramify.model_names import CONFIG, check_model
from ramify.models import FAMILIES

FORMAT = 2
LARGEST_SIZE = 10_000_000
MAX_WORDS = 1_000_001
"""The largest vocabulary of a training run, and `<unk>`"""
VOCABULARY, WEIGHTS, SPLITTER, SPELLING = "vocab.txt", "model.safetensors", "splitter.json", "spelling.json"
METRICS, CARD, CHECKPOINT, FOCUS = "metrics.jsonl", "README.md", "checkpoint.safetensors", "focus.safetensors"
FILES = (CONFIG, VOCABULARY, WEIGHTS, SPLITTER, SPELLING, METRICS, CARD, CHECKPOINT, FOCUS)
LARGEST_FILES = {CONFIG: 1 << 20, SPLITTER: 1 << 27, SPELLING: 1 << 26, METRICS: 1 << 26}
"""In bytes; a file read as JSON takes up to ten times its size in memory"""
LARGEST_HEADER = 1 << 20
WORDS_CHECKSUM = "vocabulary"
"""Stored with the weights: the checksum of the vocabulary, which assigns rows to words"""
LEARNT_FROM_TEXT = "text"
"""Replaces the rule for words if there were no trees"""
BRANCHING = "branching"
COMPRESSED = "compressed_from"
"""The entry in the config of a compressed model that names the original"""
_SMALL = 1 << 16


def checked_file(folder: Path, name: str, largest: int | None = None) -> Path:
    """A file of the folder; an error if it is missing, not a regular file, too large, or a link out of the folder."""
    path = folder / name
    if not path.exists():
        if name == CONFIG:
            check_model(folder)
        if name == WEIGHTS:
            raise RamifyError(
                f"{folder}: has no {name}; if training stopped before the end of the first epoch, resume it."
            )
        raise RamifyError(f"{folder}: has no {name}; get a complete copy of the folder.")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise RamifyError(f"{path}: is a link to a place outside the model folder; copy the file into the folder.")
    if not path.is_file():
        raise RamifyError(f"{path}: this is not a regular file; get a complete copy of the folder.")
    largest = LARGEST_FILES.get(name, largest)
    if largest is not None and path.stat().st_size > largest:
        raise RamifyError(
            f"{path}: is larger than {largest:,} bytes, the limit for this model; get a complete copy of the folder."
        )
    return path


def read_config(folder: Path) -> dict[str, Any]:
    """config.json, with names and sizes checked before a model is built from them."""
    path = checked_file(folder, CONFIG)
    config = read_json(path)
    if not isinstance(config, dict) or config.get("format") is True or config.get("format") != FORMAT:
        raise RamifyError(f"{path}: does not have model format {FORMAT}; use the version of ramify that wrote it.")
    grammar, model = config.get("grammar"), config.get("model")
    known = isinstance(model, str) and model in FAMILIES and isinstance(grammar, dict)
    if isinstance(model, str) and model not in FAMILIES:
        raise RamifyError(
            f"{path}: the family {model[:40]!r} is unknown; import or install the package that registers it."
        )
    if not known or not isinstance(config.get("words"), str):
        raise RamifyError(
            f"{path}: does not describe a model that this version knows; get a complete copy of the folder."
        )
    for name in ("nonterminals", "preterminals", "rank", "words", "embedding", "width", "layers", "latent"):
        value = config["grammar"].get(name, 0 if name == "words" else 1)
        lowest = 0 if name == "latent" else 1
        highest = MAX_WORDS if name == "words" else LARGEST_SIZE
        if not (type(value) is int and lowest <= value <= highest):
            raise RamifyError(f"{path}: {name} must be a whole number from {lowest} to {highest:,}; get another copy.")
    try:
        branching_in(config)
        WordRule.from_name(config["words"])
    except RamifyError as error:
        raise RamifyError(f"{path}: {error}") from error
    return config


def branching_in(record: Mapping[str, Any]) -> float:
    """The branching bonus in the config of a model; 0 if it has none."""
    bonus = record.get(BRANCHING, 0.0)
    if type(bonus) is not float or not math.isfinite(bonus):
        raise RamifyError(f"{BRANCHING} is {str(bonus)[:40]!r}, but must be a finite number; get another copy.")
    return bonus


def read_json(path: Path) -> Any:
    """The content of an untrusted file."""
    try:
        data = path.read_bytes()
        # Empty lists and tables take twenty times as much memory as their bytes; our files contain few.
        if len(data) > _SMALL and data.count(b"[") + data.count(b"{") > len(data) // 16:
            raise ValueError("too many brackets")
        return json.loads(data)
    except (OSError, ValueError, RecursionError) as error:
        raise RamifyError(f"{path}: cannot be read as JSON ({error}); get a complete copy of the folder.") from error


def holds_model(folder: Path) -> bool:
    """Whether any version of ramify wrote the config: other tools use the same file names."""
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(config, dict) and isinstance(config.get("format"), int) and "grammar" in config


def checksum(folder: str | Path) -> str:
    """sha256 of everything that determines how a model folder, or a file of rules, parses."""
    folder = Path(folder)
    digest = hashlib.sha256()
    names = [CONFIG, VOCABULARY, WEIGHTS, *([SPLITTER] if (folder / SPLITTER).exists() else [])]
    for path in [folder] if folder.is_file() else [checked_file(folder, name) for name in names]:
        with path.open("rb") as handle:
            digest.update(hashlib.file_digest(handle, "sha256").digest())
    return digest.hexdigest()
