"""The model folder: config.json, vocab.txt, model.safetensors, metrics.jsonl and a card to read.

A folder may come from a stranger: nothing in it is believed before it was looked at, and nothing is allocated
that its files do not warrant.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ramify.corpus.cleaning import WordRule
from ramify.corpus.spelling import Spelling
from ramify.corpus.splitting import Splitter
from ramify.corpus.text import TextRules
from ramify.corpus.vocabulary import LONGEST_LINE, Vocabulary
from ramify.errors import RamifyError
from ramify.models import FAMILIES, Model
from ramify.models.batches import check_tables_fit
from ramify.naming import CONFIG, check_model
from ramify.storage.files import contents, write_json
from ramify.storage.locks import locked_folder
from ramify.storage.tensors import load_tensors, save_tensors, shapes_of

FORMAT = 2
LARGEST_SIZE = 10_000_000
MOST_WORDS = 1_000_001
"""As many as a training takes, and `<unk>`"""
VOCABULARY, WEIGHTS, SPLITTER, SPELLING = "vocab.txt", "model.safetensors", "splitter.json", "spelling.json"
METRICS, CARD, CHECKPOINT, FOCUS = "metrics.jsonl", "README.md", "checkpoint.safetensors", "focus.safetensors"
FILES = (CONFIG, VOCABULARY, WEIGHTS, SPLITTER, SPELLING, METRICS, CARD, CHECKPOINT, FOCUS)
LARGEST_FILES = {CONFIG: 1 << 20, SPLITTER: 1 << 27, SPELLING: 1 << 26, METRICS: 1 << 26}
"""Bytes; read as JSON, a file takes up to ten times its size in memory"""
LARGEST_HEADER = 1 << 20
WORDS_CHECKSUM = "vocabulary"
"""Kept with the weights: which row belongs to which word"""
LEARNT_FROM_TEXT = "text"
"""Stands for the rule for words where there were no trees"""
_SMALL = 1 << 16


@dataclass(frozen=True)
class StoredModel:
    """A model with all that belongs to it."""

    model: Model
    vocabulary: Vocabulary
    word_rule: WordRule | None
    """Which leaves of trees are words; None for a model that was learnt from text"""
    text_rules: TextRules
    spelling: Spelling | None
    """None for models of versions that had none"""


def load_model(folder: Path, device: torch.device) -> StoredModel:
    """What is in a model folder."""
    config = read_config(folder)
    rules = _text_rules(folder, config)
    words = config["grammar"]["words"]
    vocabulary = Vocabulary.load(part(folder, VOCABULARY, words * LONGEST_LINE), rules.normal_form, words)
    if len(vocabulary) != words:
        raise RamifyError(
            f"{folder / VOCABULARY}: holds {len(vocabulary):,} words, but {CONFIG} speaks of "
            f"{words:,}; one of them belongs to another model."
        )
    model = empty_model(folder, config)
    weights, facts = load_tensors(part(folder, WEIGHTS), shapes_of(model.state_dict()), LARGEST_HEADER)
    # Older models have no checksum of their words.
    if facts.get(WORDS_CHECKSUM, vocabulary.checksum) != vocabulary.checksum:
        raise RamifyError(
            f"{folder / VOCABULARY}: its checksum does not fit {WEIGHTS}: it was changed, or belongs to another model; "
            "fetch the folder again, whole."
        )
    if facts.get(CONFIG, _config_checksum(config)) != _config_checksum(config):
        raise RamifyError(f"{folder / CONFIG}: was changed after the training; fetch the folder again, whole.")
    if SPELLING in facts and facts[SPELLING] != _file_checksum(part(folder, SPELLING)):
        raise RamifyError(f"{folder / SPELLING}: belongs to another model; fetch the folder again, whole.")
    model.load_state_dict(weights, assign=True)
    word_rule = None if config["words"] == LEARNT_FROM_TEXT else WordRule.from_name(config["words"])
    spelling = Spelling.load(part(folder, SPELLING)) if (folder / SPELLING).exists() else None
    return StoredModel(model.to(device), vocabulary, word_rule, rules, spelling)


def write_description(folder: Path, description: dict[str, Any], stored: StoredModel) -> None:
    """Everything but the weights: config, vocabulary, spelling, splitter."""
    write_json(folder / CONFIG, description)
    stored.vocabulary.save(folder / VOCABULARY)
    if stored.spelling is not None:
        stored.spelling.save(folder / SPELLING)
    if stored.text_rules.splitter is not None:
        write_json(folder / SPLITTER, stored.text_rules.splitter.as_record())
        part(folder, SPLITTER)  # refused now if it is too large to be loaded later


def write_weights(folder: Path, stored: StoredModel) -> None:
    """The parameters, with checksums of them and of the files beside them that decide what they mean."""
    facts = {WORDS_CHECKSUM: stored.vocabulary.checksum, CONFIG: _config_checksum(read_config(folder))}
    if stored.spelling is not None:
        facts[SPELLING] = _file_checksum(folder / SPELLING)
    save_tensors(folder / WEIGHTS, stored.model.state_dict(), facts)


def _config_checksum(config: dict[str, Any]) -> str:
    """sha256 of what the config says about the model and its text; settings and data are only recorded."""
    deciding = {name: config.get(name) for name in ("model", "grammar", "words", "text")}
    return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()


def _file_checksum(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def save_model(folder: Path, description: dict[str, Any], stored: StoredModel, overwrite: bool) -> None:
    """A whole model folder; a model that is there already is replaced only if `overwrite`, and other files stay."""
    with locked_folder(folder):
        inside = contents(folder, FILES)
        if inside and not (overwrite and holds_model(folder)):
            other = (
                "; give another folder, or overwrite" if holds_model(folder) else " and holds no model; give another"
            )
            raise RamifyError(f"{folder}: is not empty{other}.")
        write_description(folder, description, stored)
        write_weights(folder, stored)
        kept = {CONFIG, VOCABULARY, WEIGHTS}
        kept |= {SPELLING} if stored.spelling is not None else set()
        kept |= {SPLITTER} if stored.text_rules.splitter is not None else set()
        for name in set(FILES) - kept:  # of the model that was there before
            (folder / name).unlink(missing_ok=True)


def holds_model(folder: Path) -> bool:
    """Whether the config is one of ours, of whatever version: other tools have files of the same names."""
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(config, dict) and isinstance(config.get("format"), int) and "grammar" in config


def checksum(folder: str | Path) -> str:
    """sha256 of what makes a model folder, or a file of rules, parse as it does."""
    folder = Path(folder)
    digest = hashlib.sha256()
    names = [CONFIG, VOCABULARY, WEIGHTS, *([SPLITTER] if (folder / SPLITTER).exists() else [])]
    for path in [folder] if folder.is_file() else [part(folder, name) for name in names]:
        with path.open("rb") as handle:
            digest.update(hashlib.file_digest(handle, "sha256").digest())
    return digest.hexdigest()


def part(folder: Path, name: str, largest: int | None = None) -> Path:
    """A file of the folder; refused if it is missing, not a plain file, too large, or leads out of the folder."""
    path = folder / name
    if not path.exists():
        if name == CONFIG:
            check_model(folder)
        if name == WEIGHTS:
            raise RamifyError(f"{folder}: has no {name}; its training may have ended before the first epoch did.")
        raise RamifyError(f"{folder}: has no {name}; fetch the folder again, whole.")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise RamifyError(f"{path}: leads out of the model folder; put the file itself there.")
    if not path.is_file():
        raise RamifyError(f"{path}: is not a plain file; fetch the folder again, whole.")
    largest = LARGEST_FILES.get(name, largest)
    if largest is not None and path.stat().st_size > largest:
        raise RamifyError(f"{path}: is larger than {largest:,} bytes, the most that this model may have there.")
    return path


def read_config(folder: Path) -> dict[str, Any]:
    """config.json, its names and sizes looked at before anything is built from them."""
    path = part(folder, CONFIG)
    config = read_json(path)
    if not isinstance(config, dict) or config.get("format") is True or config.get("format") != FORMAT:
        raise RamifyError(f"{path}: is not of model format {FORMAT}; load it with the version that wrote it.")
    grammar, model = config.get("grammar"), config.get("model")
    known = isinstance(model, str) and model in FAMILIES and isinstance(grammar, dict)
    if isinstance(model, str) and model not in FAMILIES:
        raise RamifyError(f"{path}: the family {model[:40]!r} is not known; import or install what registers it.")
    if not known or not isinstance(config.get("words"), str):
        raise RamifyError(f"{path}: does not describe a model this version knows.")
    for name in ("nonterminals", "preterminals", "rank", "words", "embedding", "width", "layers", "latent"):
        value = config["grammar"].get(name, 0 if name == "words" else 1)
        lowest = 0 if name == "latent" else 1
        highest = MOST_WORDS if name == "words" else LARGEST_SIZE
        if not (type(value) is int and lowest <= value <= highest):
            raise RamifyError(f"{path}: {name} must be a whole number from {lowest} to {highest:,}.")
    try:
        WordRule.from_name(config["words"])
    except RamifyError as error:
        raise RamifyError(f"{path}: {error}") from error
    return config


def empty_model(folder: Path, config: dict[str, Any]) -> Model:
    """The model that the config describes, without memory for its parameters."""
    path = folder / CONFIG
    try:
        with torch.device("meta"):
            model = FAMILIES[config["model"]](**config["grammar"])
    except Exception as error:  # whatever a family, which may come from outside, makes of a strange config
        raise RamifyError(f"{path}: does not describe a model this version knows ({error}).") from error
    check_tables_fit(model, f"{path}: ")
    return model


def _text_rules(folder: Path, config: dict[str, Any]) -> TextRules:
    record = config.get("text")
    splits = isinstance(record, dict) and record.get("split_sentences") is True
    path = folder / CONFIG
    try:
        splitter = None
        if splits:
            path = part(folder, SPLITTER)
            splitter = Splitter.from_record(read_json(path))
        return TextRules.from_record(record, splitter)
    except RamifyError as error:
        raise RamifyError(f"{path}: {error}") from error


def read_json(path: Path) -> Any:
    """The content of a file that may come from a stranger."""
    try:
        data = path.read_bytes()
        # Empty lists and tables take twenty times as much memory as bytes; files of ours hold few.
        if len(data) > _SMALL and data.count(b"[") + data.count(b"{") > len(data) // 16:
            raise ValueError("too many brackets")
        return json.loads(data)
    except (OSError, ValueError, RecursionError) as error:
        raise RamifyError(f"{path}: cannot be read as JSON ({error}).") from error
