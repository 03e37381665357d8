"""The model folder: config.json, vocab.txt, model.safetensors, metrics.jsonl and a card to read.

A folder may come from a stranger: nothing in it is believed before it was looked at, and nothing is allocated
that its files do not warrant.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch

from ramify.corpus.cleaning import WordRule
from ramify.corpus.rule_files import read_rules
from ramify.corpus.spelling import Spelling
from ramify.corpus.splitting import Splitter
from ramify.corpus.text import TextRules
from ramify.corpus.vocabulary import Vocabulary
from ramify.errors import RamifyError
from ramify.grammars import FAMILIES, Grammar
from ramify.parser.batches import check_tables_fit
from ramify.parser.parser import Parser
from ramify.parser.tensors import chosen_device, load_tensors, shapes_of

FORMAT = 2
LARGEST_SIZE = 10_000_000
LARGEST_TEXT_FILE = 1 << 30
CONFIG, VOCABULARY, WEIGHTS, SPLITTER = "config.json", "vocab.txt", "model.safetensors", "splitter.json"
SPELLING = "spelling.json"
METRICS, CARD, CHECKPOINT = "metrics.jsonl", "README.md", "checkpoint.safetensors"
FILES = (CONFIG, VOCABULARY, WEIGHTS, SPLITTER, SPELLING, METRICS, CARD, CHECKPOINT)


LEARNT_FROM_TEXT = "text"
"""Stands for the rule for words where there were no trees"""


def load(folder: str | Path, device: str = "auto") -> Parser:
    """The parser in a model folder, or of the grammar in a file of rules."""
    folder = Path(folder)
    if folder.is_file():
        parser = Parser.from_binary_grammar(read_rules(folder))
        return Parser(parser.tables.float().to(chosen_device(device)), parser.vocabulary, parser.labels, parser.tags)
    config = read_config(folder)
    rules = _text_rules(folder, config)
    vocabulary = Vocabulary.load(part(folder, VOCABULARY), rules.normal_form)
    if len(vocabulary) != config["grammar"]["words"]:
        raise RamifyError(
            f"{folder / VOCABULARY}: holds {len(vocabulary):,} words, but {CONFIG} speaks of "
            f"{config['grammar']['words']:,}; one of them belongs to another model."
        )
    grammar = empty_grammar(folder, config)
    weights, _ = load_tensors(part(folder, WEIGHTS), shapes_of(grammar.state_dict()))
    grammar.load_state_dict(weights, assign=True)
    word_rule = None if config["words"] == LEARNT_FROM_TEXT else WordRule.from_name(config["words"])
    spelling = Spelling.load(part(folder, SPELLING)) if (folder / SPELLING).exists() else None
    grammar = grammar.to(chosen_device(device))
    return Parser(grammar, vocabulary, word_rule=word_rule, text_rules=rules, spelling=spelling)


def checksum(folder: str | Path) -> str:
    """sha256 of what makes a model folder, or a file of rules, parse as it does."""
    folder = Path(folder)
    digest = hashlib.sha256()
    for path in [folder] if folder.is_file() else [part(folder, name) for name in (CONFIG, VOCABULARY, WEIGHTS)]:
        with path.open("rb") as handle:
            digest.update(hashlib.file_digest(handle, "sha256").digest())
    return digest.hexdigest()


def part(folder: Path, name: str) -> Path:
    """A file of the folder; refused if it is missing, no plain file, or leads out of the folder."""
    path = folder / name
    if not path.exists():
        if name == CONFIG:
            raise RamifyError(f"{folder}: is no model folder: it has no {name}.")
        if name == WEIGHTS:
            raise RamifyError(f"{folder}: has no {name}; its training may have ended before the first epoch did.")
        raise RamifyError(f"{folder}: has no {name}; fetch the folder again, whole.")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise RamifyError(f"{path}: leads out of the model folder; put the file itself there.")
    if not path.is_file():
        raise RamifyError(f"{path}: is no plain file; fetch the folder again, whole.")
    if not name.endswith(".safetensors") and path.stat().st_size > LARGEST_TEXT_FILE:
        raise RamifyError(f"{path}: is larger than {LARGEST_TEXT_FILE >> 30} GB; this is no file of a model.")
    return path


def read_config(folder: Path) -> dict[str, Any]:
    """config.json, its names and sizes looked at before anything is built from them."""
    path = part(folder, CONFIG)
    config = _read_json(path)
    if not isinstance(config, dict) or config.get("format") is True or config.get("format") != FORMAT:
        raise RamifyError(f"{path}: is not of model format {FORMAT}; load it with the version that wrote it.")
    grammar, model = config.get("grammar"), config.get("model")
    known = isinstance(model, str) and model in FAMILIES and isinstance(grammar, dict)
    if not known or not isinstance(config.get("words"), str):
        raise RamifyError(f"{path}: does not describe a grammar this version knows.")
    for name in ("nonterminals", "preterminals", "rank", "words", "embedding", "latent"):
        value = config["grammar"].get(name, 0 if name == "words" else 1)
        lowest = 0 if name == "latent" else 1
        if not (type(value) is int and lowest <= value <= LARGEST_SIZE):
            raise RamifyError(f"{path}: {name} must be a whole number from {lowest} to {LARGEST_SIZE:,}.")
    try:
        WordRule.from_name(config["words"])
    except RamifyError as error:
        raise RamifyError(f"{path}: {error}") from error
    return config


def empty_grammar(folder: Path, config: dict[str, Any]) -> Grammar:
    """The grammar that the config describes, without memory for its parameters."""
    path = folder / CONFIG
    try:
        with torch.device("meta"):
            grammar = FAMILIES[config["model"]](**config["grammar"])
    except (TypeError, ValueError, RuntimeError, OverflowError, RamifyError) as error:
        raise RamifyError(f"{path}: does not describe a grammar this version knows ({error}).") from error
    check_tables_fit(grammar, f"{path}: ")
    return grammar


def _text_rules(folder: Path, config: dict[str, Any]) -> TextRules:
    record = config.get("text")
    splits = isinstance(record, dict) and record.get("split_sentences") is True
    path = folder / CONFIG
    try:
        splitter = None
        if splits:
            path = part(folder, SPLITTER)
            splitter = Splitter.from_record(_read_json(path))
        return TextRules.from_record(record, splitter)
    except RamifyError as error:
        raise RamifyError(f"{path}: {error}") from error


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RamifyError(f"{path}: cannot be read as JSON ({error}).") from error
