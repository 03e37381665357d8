"""The model folder: config.json, vocab.txt, model.safetensors, metrics.jsonl and a card to read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from ramify.corpus.cleaning import WordRule
from ramify.corpus.vocabulary import Vocabulary
from ramify.errors import RamifyError
from ramify.grammars import FAMILIES, LowRankGrammar
from ramify.parser.parser import Parser

FORMAT = 1
LARGEST_SIZE = 10_000_000
CONFIG, VOCABULARY, WEIGHTS = "config.json", "vocab.txt", "model.safetensors"
METRICS, CARD = "metrics.jsonl", "README.md"
FILES = (CONFIG, VOCABULARY, WEIGHTS, METRICS, CARD)


def write_atomically(path: Path, data: bytes) -> None:
    """The whole new content or, if anything fails, what was there before."""
    temporary = path.with_name(f".{path.name}.partial")
    try:
        with temporary.open("wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise RamifyError(f"{path}: cannot be written ({error.strerror}); check space and permissions.") from error


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Readable JSON, atomically."""
    write_atomically(path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def save_weights(folder: Path, grammar: LowRankGrammar) -> None:
    """The network's parameters."""
    state = {name: tensor.detach().cpu().contiguous() for name, tensor in grammar.state_dict().items()}
    write_atomically(folder / WEIGHTS, save(state))


def load(folder: str | Path, device: str = "auto") -> Parser:
    """The parser in a model folder."""
    folder = Path(folder)
    config = read_config(folder)
    vocabulary = Vocabulary.load(folder / VOCABULARY)
    _check_config(folder / CONFIG, config)
    try:
        with torch.device("meta"):
            grammar = FAMILIES[config["model"]](**config["grammar"])
    except (TypeError, ValueError) as error:
        raise RamifyError(f"{folder / CONFIG}: does not describe a grammar this version knows ({error}).") from error
    rule = WordRule.from_name(config["words"])
    grammar.load_state_dict(_read_weights(folder, grammar), assign=True)
    return Parser(grammar.to(chosen_device(device)), vocabulary, word_rule=rule)


def read_config(folder: Path) -> dict[str, Any]:
    """What a model folder says of itself; only its format has been looked at."""
    path = folder / CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RamifyError(f"{folder}: is no model folder: it has no {CONFIG}.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise RamifyError(f"{path}: cannot be read as JSON ({error}).") from error
    if not isinstance(config, dict) or config.get("format") is True or config.get("format") != FORMAT:
        raise RamifyError(f"{path}: is not of model format {FORMAT}; load it with the version that wrote it.")
    return config


def _check_config(path: Path, config: dict[str, Any]) -> None:
    """A stranger's file: names and sizes are looked at before anything is built from them."""
    grammar = config.get("grammar")
    if config.get("model") not in FAMILIES or not isinstance(grammar, dict) or not isinstance(config.get("words"), str):
        raise RamifyError(f"{path}: does not describe a grammar this version knows.")
    for name, value in grammar.items():
        if name in ("nonterminals", "preterminals", "rank", "words", "embedding") and not (
            type(value) is int and 1 <= value <= LARGEST_SIZE
        ):
            raise RamifyError(f"{path}: {name} must be a whole number from 1 to {LARGEST_SIZE:,}.")


def _read_weights(folder: Path, grammar: LowRankGrammar) -> dict[str, torch.Tensor]:
    """Names and shapes are compared with the grammar's before anything is allocated."""
    path = folder / WEIGHTS
    expected = {name: tuple(tensor.shape) for name, tensor in grammar.state_dict().items()}
    if not path.is_file():
        raise RamifyError(f"{folder}: has no {WEIGHTS}; its training may have ended before the first epoch did.")
    try:
        with safe_open(path, framework="pt") as handle:
            slices = {name: handle.get_slice(name) for name in handle.keys()}  # noqa: SIM118
            found = {name: tuple(part.get_shape()) for name, part in slices.items() if part.get_dtype() == "F32"}
            if found != expected:
                wrong = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
                raise RamifyError(
                    f"{path}: does not fit {CONFIG}; {wrong[0]} has the wrong shape or type, or is missing."
                )
            state = {name: handle.get_tensor(name) for name in expected}
    except (OSError, SafetensorError) as error:
        raise RamifyError(f"{path}: is damaged or not a safetensors file ({error}).") from error
    for name, tensor in state.items():
        if not bool(tensor.isfinite().all()):
            raise RamifyError(f"{path}: {name} holds numbers that are not finite; the model is broken.")
    return state


def chosen_device(name: str) -> torch.device:
    """A torch device by name; `auto` is a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.ones(1, device=device).item()  # more than allocating, which `meta` could do
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise RamifyError(f"device {name!r} is not available here; use cpu.") from error
    return device
