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
from ramify.corpus.reading import AS_IS
from ramify.corpus.rule_files import read_about, read_rules
from ramify.corpus.spelling import Spelling
from ramify.corpus.splitting import Splitter
from ramify.corpus.text import TextRules
from ramify.corpus.vocabulary import LONGEST_LINE, Vocabulary
from ramify.errors import RamifyError
from ramify.grammars import FAMILIES, Grammar
from ramify.naming import CONFIG, check_model
from ramify.parser.batches import check_tables_fit
from ramify.parser.parser import Parser
from ramify.parser.tensors import chosen_device, load_tensors, shapes_of

FORMAT = 2
LARGEST_SIZE = 10_000_000
MOST_WORDS = 1_000_001
"""As many as a training takes, and `<unk>`"""
VOCABULARY, WEIGHTS, SPLITTER, SPELLING = "vocab.txt", "model.safetensors", "splitter.json", "spelling.json"
METRICS, CARD, CHECKPOINT = "metrics.jsonl", "README.md", "checkpoint.safetensors"
FILES = (CONFIG, VOCABULARY, WEIGHTS, SPLITTER, SPELLING, METRICS, CARD, CHECKPOINT)
LARGEST_FILES = {CONFIG: 1 << 20, SPLITTER: 1 << 27, SPELLING: 1 << 26, METRICS: 1 << 26}
"""Bytes; read as JSON, a file takes up to ten times its size in memory"""
LARGEST_HEADER = 1 << 20
WORDS_CHECKSUM = "vocabulary"
"""Kept with the weights: which row belongs to which word"""
LEARNT_FROM_TEXT = "text"
"""Stands for the rule for words where there were no trees"""
_SMALL = 1 << 16


def load(folder: str | Path, device: str = "auto") -> Parser:
    """The parser in a model folder, or of the grammar in a file of rules."""
    folder = Path(folder)
    if folder.is_file():
        return _load_rules(folder, device)
    config = read_config(folder)
    rules = _text_rules(folder, config)
    words = config["grammar"]["words"]
    vocabulary = Vocabulary.load(part(folder, VOCABULARY, words * LONGEST_LINE), rules.normal_form, words)
    if len(vocabulary) != words:
        raise RamifyError(
            f"{folder / VOCABULARY}: holds {len(vocabulary):,} words, but {CONFIG} speaks of "
            f"{words:,}; one of them belongs to another model."
        )
    grammar = empty_grammar(folder, config)
    weights, facts = load_tensors(part(folder, WEIGHTS), shapes_of(grammar.state_dict()), LARGEST_HEADER)
    # Older models have no checksum of their words.
    if facts.get(WORDS_CHECKSUM, vocabulary.checksum) != vocabulary.checksum:
        raise RamifyError(
            f"{folder / VOCABULARY}: its checksum does not fit {WEIGHTS}: it was changed, or belongs to another model; "
            "fetch the folder again, whole."
        )
    grammar.load_state_dict(weights, assign=True)
    word_rule = None if config["words"] == LEARNT_FROM_TEXT else WordRule.from_name(config["words"])
    spelling = Spelling.load(part(folder, SPELLING)) if (folder / SPELLING).exists() else None
    grammar = grammar.to(chosen_device(device))
    return Parser(grammar, vocabulary, word_rule=word_rule, text_rules=rules, spelling=spelling)


def _load_rules(path: Path, device: str) -> Parser:
    """The parser of a file of rules, which reads text as the model did that they were exported from."""
    word_rule, rules = reads_text(path)
    parser = Parser.from_binary_grammar(read_rules(path))
    vocabulary = Vocabulary(parser.vocabulary.words, rules.normal_form)
    tables = parser.tables.float().to(chosen_device(device))
    return Parser(tables, vocabulary, parser.labels, parser.tags, word_rule, rules)


def reads_text(path: Path) -> tuple[WordRule | None, TextRules]:
    """Which leaves of trees are words, and how text is read, as a file of rules says; else every token is a word."""
    about = read_about(path)
    if not about:
        return None, AS_IS
    try:
        words = str(about.get("words"))
        word_rule = None if words == LEARNT_FROM_TEXT else WordRule.from_name(words)
        return word_rule, TextRules.from_record(about.get("text"), None)
    except RamifyError as error:
        raise RamifyError(f"{path}, line 1: {error}") from error


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
        raise RamifyError(f"{path}: is no plain file; fetch the folder again, whole.")
    largest = LARGEST_FILES.get(name, largest)
    if largest is not None and path.stat().st_size > largest:
        raise RamifyError(f"{path}: is larger than {largest:,} bytes, the most that this model may have there.")
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
        highest = MOST_WORDS if name == "words" else LARGEST_SIZE
        if not (type(value) is int and lowest <= value <= highest):
            raise RamifyError(f"{path}: {name} must be a whole number from {lowest} to {highest:,}.")
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
        data = path.read_bytes()
        # Empty lists and tables take twenty times as much memory as bytes; files of ours hold few.
        if len(data) > _SMALL and data.count(b"[") + data.count(b"{") > len(data) // 16:
            raise ValueError("too many brackets")
        return json.loads(data)
    except (OSError, ValueError, RecursionError) as error:
        raise RamifyError(f"{path}: cannot be read as JSON ({error}).") from error
