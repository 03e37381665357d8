"""Every setting of a training run: typed, explained, checked once. The command line is made from this."""

from __future__ import annotations

import inspect
import tomllib
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ramify.errors import RamifyError
from ramify.grammars import FAMILIES
from ramify.grammars.tn_pcfg import ACTIVATIONS

LARGEST = 1_000_000
"""No count of symbols, words or sentences in a batch may be larger: beyond it lies a typing mistake."""


def _setting(default: Any, explanation: str) -> Any:
    return field(default=default, metadata={"help": explanation})


@dataclass(frozen=True)
class Settings:
    """Defaults are those of Yang, Zhao and Tu (2021)."""

    model: str = _setting("tn-pcfg", f"Grammar family: {', '.join(FAMILIES)}.")
    nonterminals: int | None = _setting(None, "Number of nonterminals n [default: half of the preterminals].")
    preterminals: int = _setting(60, "Number of preterminals p.")
    rank: int | None = _setting(None, "Rank d of the rule tensor [default: p if p > 200, else 200].")
    embedding: int = _setting(256, "Size of the symbol embeddings.")
    activation: str = _setting("relu", f"Inside the rule networks: {', '.join(ACTIVATIONS)}.")
    gain: float = _setting(1.0, "Scale of the initial logits; more than 1 tells symbols apart sooner.")
    seed: int = _setting(0, "The same seed on the same machine gives the same model.")
    epochs: int = _setting(10, "Passes through the training sentences.")
    batch_size: int = _setting(4, "Sentences a step, all of one length.")
    learning_rate: float = _setting(0.001, "Step size of Adam.")
    decay: float = _setting(1.0, "The learning rate is multiplied by this after every epoch.")
    max_length: int = _setting(40, "Longer training sentences are left out; dev and test never are.")
    vocabulary: int = _setting(10_000, "Most frequent words kept; the rest is <unk>.")
    patience: int = _setting(5, "Stop after this many epochs without a better dev likelihood.")
    clip: float = _setting(3.0, "Cut the gradient's norm here.")
    device: str = _setting("auto", "auto, cpu, cuda, cuda:1, mps ...; auto takes a GPU where there is one.")

    def __post_init__(self) -> None:
        _one_of("model", self.model, FAMILIES)
        _one_of("activation", self.activation, ACTIVATIONS)
        for name in (
            "preterminals",
            "nonterminals",
            "rank",
            "embedding",
            "epochs",
            "batch_size",
            "vocabulary",
        ):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= LARGEST:
                raise RamifyError(f"{name} is {value}, but must lie between 1 and {LARGEST:,}.")
        if self.max_length < 2:
            raise RamifyError(f"max_length is {self.max_length}, but a sentence with a tree has 2 words or more.")
        for name in ("learning_rate", "clip", "gain", "decay"):
            if not 0 < getattr(self, name) < float("inf"):
                raise RamifyError(f"{name} is {getattr(self, name)}, but must be a positive number.")
        if self.patience < 1:
            raise RamifyError(f"patience is {self.patience}, but must be at least 1.")
        if not 0 <= self.seed < 2**63:
            raise RamifyError(f"seed is {self.seed}, but must lie between 0 and 2^63.")

    def grammar_arguments(self, words: int) -> dict[str, Any]:
        """What the grammar's constructor takes, with the defaults that follow from other settings filled in."""
        p = self.preterminals
        available = {
            "nonterminals": self.nonterminals or max(1, p // 2),
            "preterminals": p,
            "rank": self.rank or (p if p > 200 else 200),
            "words": words,
            "embedding": self.embedding,
            "activation": self.activation,
            "gain": self.gain,
        }
        taken = inspect.signature(FAMILIES[self.model]).parameters
        return {name: value for name, value in available.items() if name in taken}


def _one_of(name: str, value: str, known: Any) -> None:
    if value not in known:
        raise RamifyError(f"{name} {value!r} is unknown; choose one of {', '.join(known)}.")


TYPES: dict[str, type] = {"int": int, "int | None": int, "float": float, "str": str}
"""The types that settings have, by their annotations."""


def _converted(setting: Field[Any], value: Any, where: str) -> Any:
    wanted = TYPES[str(setting.type)]
    if wanted is float and type(value) is int:
        return float(value)
    if type(value) is not wanted:
        raise RamifyError(f"{where}: {setting.name} is {value!r}, but must be of type {wanted.__name__}.")
    return value


def load_settings(config: str | Path | None, given: dict[str, Any]) -> Settings:
    """Defaults, then the TOML file, then what was given by hand (None means not given)."""
    known = {setting.name: setting for setting in fields(Settings)}
    chosen: dict[str, Any] = {}
    if config is not None:
        try:
            table = tomllib.loads(Path(config).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise RamifyError(f"{config}: cannot be read as a TOML file of settings ({error}).") from error
        chosen = {name.replace("-", "_"): value for name, value in table.items()}
    for name in chosen.keys() - known.keys():
        raise RamifyError(f"{config}: {name!r} is no setting; known are {', '.join(known)}.")
    for name in given.keys() - known.keys():
        raise RamifyError(f"{name!r} is no setting; known are {', '.join(known)}.")
    chosen = {name: _converted(known[name], value, str(config)) for name, value in chosen.items()}
    chosen |= {name: _converted(known[name], value, "settings") for name, value in given.items() if value is not None}
    return replace(Settings(), **chosen)
