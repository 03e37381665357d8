"""Loading and saving a model folder: config.json, vocab.txt, model.safetensors, metrics.jsonl and the model card."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ramify.corpus.cleaning import WordRule
from ramify.corpus.spelling import Spelling
from ramify.corpus.text import TextRules
from ramify.corpus.vocabulary import LONGEST_LINE, Vocabulary
from ramify.errors import RamifyError
from ramify.model_names import CONFIG
from ramify.models import FAMILIES, Model
from ramify.models.batches import check_tables_fit
from ramify.models.td_pcfg import TDPCFG
from ramify.runtime.shapes import only_shapes
from ramify.storage.files import folder_contents, write_json
from ramify.storage.locks import locked_folder
from ramify.storage.model_files import (
    BRANCHING,
    FILES,
    LARGEST_HEADER,
    LEARNT_FROM_TEXT,
    SPELLING,
    SPLITTER,
    VOCABULARY,
    WEIGHTS,
    WORDS_CHECKSUM,
    branching_in,
    checked_file,
    holds_model,
    read_config,
    read_json,
)
from ramify.storage.tensors import exact_half, load_tensors, save_tensors, shapes_of


@dataclass(frozen=True)
class StoredModel:
    """A model with its vocabulary, text rules and config."""

    model: Model
    vocabulary: Vocabulary
    word_rule: WordRule | None
    """Which leaves of trees are words; None for a model that was learnt from text"""
    text_rules: TextRules
    spelling: Spelling | None
    """None for models of versions without a spelling model"""
    branching: float = 0.0
    """Its branching bonus"""


def load_model(folder: Path, device: torch.device) -> StoredModel:
    """Load a model folder."""
    config = read_config(folder)
    rules = _text_rules(folder, config)
    words = config["grammar"]["words"]
    vocabulary = Vocabulary.load(checked_file(folder, VOCABULARY, words * LONGEST_LINE), rules.normal_form, words)
    if len(vocabulary) != words:
        raise RamifyError(
            f"{folder / VOCABULARY}: contains {len(vocabulary):,} words, but {CONFIG} says {words:,}, so the files "
            "belong to different models; get a complete copy of the folder."
        )
    model = empty_model(folder, config)
    weights, facts = load_tensors(checked_file(folder, WEIGHTS), shapes_of(model.state_dict()), LARGEST_HEADER)
    # Older models have no checksum of the vocabulary.
    if facts.get(WORDS_CHECKSUM, vocabulary.checksum) != vocabulary.checksum:
        raise RamifyError(
            f"{folder / VOCABULARY}: its checksum does not match {WEIGHTS}, so it was changed or belongs to another "
            "model; get a complete copy of the folder."
        )
    if facts.get(CONFIG, _config_checksum(config)) != _config_checksum(config):
        raise RamifyError(f"{folder / CONFIG}: was changed after training; get a complete copy of the folder.")
    if SPELLING in facts and facts[SPELLING] != _file_checksum(checked_file(folder, SPELLING)):
        raise RamifyError(f"{folder / SPELLING}: belongs to another model; get a complete copy of the folder.")
    model.load_state_dict(weights, assign=True)
    word_rule = None if config["words"] == LEARNT_FROM_TEXT else WordRule.from_name(config["words"])
    spelling = Spelling.load(checked_file(folder, SPELLING)) if (folder / SPELLING).exists() else None
    return StoredModel(model.to(device), vocabulary, word_rule, rules, spelling, branching_in(config))


def write_description(folder: Path, description: dict[str, Any], stored: StoredModel) -> None:
    """Everything except the weights: config, vocabulary, spelling, splitter."""
    write_json(folder / CONFIG, description)
    stored.vocabulary.save(folder / VOCABULARY)
    if stored.spelling is not None:
        stored.spelling.save(folder / SPELLING)
    if stored.text_rules.splitter is not None:
        write_json(folder / SPLITTER, stored.text_rules.splitter.as_record())
        checked_file(folder, SPLITTER)  # fails now if it is too large to be loaded later


def write_weights(folder: Path, stored: StoredModel) -> None:
    """Save the parameters, with checksums of them and of the files that determine their meaning."""
    facts = {WORDS_CHECKSUM: stored.vocabulary.checksum, CONFIG: _config_checksum(read_config(folder))}
    if stored.spelling is not None:
        facts[SPELLING] = _file_checksum(folder / SPELLING)
    weights = stored.model.state_dict()
    if isinstance(stored.model, TDPCFG):  # possibly a compressed grammar
        weights = {name: exact_half(tensor) for name, tensor in weights.items()}
    save_tensors(folder / WEIGHTS, weights, facts)


def _config_checksum(config: dict[str, Any]) -> str:
    """sha256 of the parts of the config about the model and its text; settings and data are only recorded."""
    deciding = {name: config.get(name) for name in ("model", "grammar", "words", "text")}
    if BRANCHING in config:  # older models do not have it
        deciding[BRANCHING] = config[BRANCHING]
    return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()


def _file_checksum(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def save_model(folder: Path, description: dict[str, Any], stored: StoredModel, overwrite: bool) -> None:
    """Save a complete model folder; an existing model is replaced only if `overwrite`, and other files stay."""
    with locked_folder(folder):
        inside = folder_contents(folder, FILES)
        if inside and not (overwrite and holds_model(folder)):
            other = (
                "; give another one, or overwrite"
                if holds_model(folder)
                else " and contains no model; give another one"
            )
            raise RamifyError(f"{folder}: this folder is not empty{other}.")
        write_description(folder, description, stored)
        write_weights(folder, stored)
        kept = {CONFIG, VOCABULARY, WEIGHTS}
        kept |= {SPELLING} if stored.spelling is not None else set()
        kept |= {SPLITTER} if stored.text_rules.splitter is not None else set()
        for name in set(FILES) - kept:  # files of the replaced model
            (folder / name).unlink(missing_ok=True)


def empty_model(folder: Path, config: dict[str, Any]) -> Model:
    """The model that the config describes, without memory for its parameters."""
    path = folder / CONFIG
    try:
        with only_shapes():
            model = FAMILIES[config["model"]](**config["grammar"])
    except Exception as error:  # a family from outside may raise anything for a strange config
        raise RamifyError(
            f"{path}: does not describe a model that this version knows ({error}); get a complete copy of the folder."
        ) from error
    check_tables_fit(model, f"{path}: ")
    return model


def _text_rules(folder: Path, config: dict[str, Any]) -> TextRules:
    record = config.get("text")
    splits = isinstance(record, dict) and record.get("split_sentences") is True
    path = folder / CONFIG
    try:
        splitter = None
        if splits:
            from ramify.corpus.sentence_splitting import Splitter  # imports NLTK, which is slow

            path = checked_file(folder, SPLITTER)
            splitter = Splitter.from_record(read_json(path))
        return TextRules.from_record(record, splitter)
    except RamifyError as error:
        raise RamifyError(f"{path}: {error}") from error
