"""Every setting of a training run: typed, explained, checked once.

The command line is made from this, so it imports torch only where a grammar is made.
"""

from __future__ import annotations

import inspect
import tomllib
from dataclasses import Field, dataclass, field, fields, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, get_args

from ramify.corpus.cleaning import NormalForm, WordRule
from ramify.corpus.guessing import Kind
from ramify.corpus.tokenising import tokeniser
from ramify.errors import RamifyError
from ramify.grammars import FAMILIES
from ramify.grammars.choices import ACTIVATIONS, INITIALISATIONS

PUNCTUATION = ("remove", "keep")
FREE_TO_CHANGE = frozenset(["epochs", "patience", "device", "checkpoint_minutes"])
"""What a resumed run may be given anew; everything else would make it another run."""
DEFAULT_BATCH = 4
CURRICULUM = 30
"""Longest sentence in the first epoch of a C-PCFG (Kim et al. 2019, sec. 3.2)."""
LARGEST = 1_000_000
"""No count of symbols, words or sentences in a batch may be larger: beyond it lies a typing mistake."""
MOST_BITS = 64
"""No setting is a whole number beyond these; Python could not even write one of thousands of digits in an error."""


def _setting(default: Any, explanation: str) -> Any:
    return field(default=default, metadata={"help": explanation})


@dataclass(frozen=True)
class Settings:
    """Defaults are those of Yang, Zhao and Tu (2021)."""

    model: str = _setting("tn-pcfg", f"Grammar family: {', '.join(FAMILIES)}.")
    nonterminals: int | None = _setting(None, "Number of nonterminals n \\[default: half of the preterminals].")
    preterminals: int = _setting(60, "Number of preterminals p.")
    rank: int | None = _setting(None, "Rank d of the rule tensor \\[default: p if p > 200, else 200].")
    embedding: int | None = _setting(
        None, "Size of the symbol embeddings \\[default: 256, of sn-pcfg and sc-pcfg 512]."
    )
    compound: bool = _setting(
        False, "Rules of its own for every sentence, as c-pcfg has; for tn-pcfg, n-pcfg and sn-pcfg."
    )
    activation: str = _setting("relu", f"Inside the rule networks: {', '.join(ACTIVATIONS)}.")
    shared_projection: bool = _setting(False, "The three rule networks of tn-pcfg end in one projection to the rank.")
    tied_embeddings: bool = _setting(False, "Words and rules of tn-pcfg share the embeddings of the preterminals.")
    initialisation: str = _setting("own", f"Of all matrices of tn-pcfg: {', '.join(INITIALISATIONS)}.")
    gain: float = _setting(1.0, "Scale of the initial logits; more than 1 tells symbols apart sooner.")
    dropout: float = _setting(0.0, "Share of the symbols that are left out of a training step, others each time.")
    seed: int = _setting(0, "The same seed on the same machine gives the same model.")
    epochs: int = _setting(10, "Passes through the training sentences.")
    batch_size: int = _setting(DEFAULT_BATCH, "Sentences a step, all of one length.")
    batch_tokens: int | None = _setting(None, "Words a step, instead of a number of sentences \\[default: not used].")
    learning_rate: float = _setting(0.001, "Step size of Adam.")
    decay: float = _setting(1.0, "The learning rate is multiplied by this after every epoch.")
    max_length: int = _setting(40, "Longer training sentences are left out; dev and test never are.")
    curriculum: int | None = _setting(
        None, "Longest training sentence of epoch 1; one word more each epoch \\[default: 30 for c-pcfg]."
    )
    vocabulary: int = _setting(10_000, "Most frequent words kept; the rest is <unk>.")
    min_count: int | None = _setting(
        None,
        "Words seen fewer times are <unk> \\[default: 1; 2 for text of which --vocabulary would keep every word].",
    )
    patience: int = _setting(5, "Stop after this many epochs without a better dev likelihood.")
    clip: float = _setting(3.0, "Cut the gradient's norm here.")
    input: str = _setting("auto", "What DATA is: text, brackets, or auto, which looks how it begins.")
    words: str = _setting("auto", "Leaves of trees that are words: auto, ptb, none, or the tags to remove.")
    tokenise: str = _setting("none", "Language of plain prose to tokenise (en, fr ... or xx for any); none: at spaces.")
    split_sentences: bool = _setting(False, "Find the sentences of plain prose; else every line is one.")
    punctuation: str = _setting("remove", f"Punctuation in text: {', '.join(PUNCTUATION)}.")
    normal_form: str = _setting("NFC", f"Unicode form of the words: {', '.join(get_args(NormalForm))}.")
    checkpoint_minutes: float = _setting(5.0, "Save the run at least this often, to go on with --resume.")
    device: str = _setting("auto", "auto, cpu, cuda, cuda:1, mps ...; auto takes a GPU where there is one.")

    def __post_init__(self) -> None:
        _one_of("model", self.model, FAMILIES)
        _one_of("activation", self.activation, ACTIVATIONS)
        _one_of("initialisation", self.initialisation, INITIALISATIONS)
        _one_of("input", self.input, get_args(Kind))
        _one_of("punctuation", self.punctuation, PUNCTUATION)
        _one_of("normal_form", self.normal_form, get_args(NormalForm))
        tokeniser(self.tokenise)
        if self.words != "auto":
            WordRule.from_name(self.words)
        if not 0 <= self.checkpoint_minutes < float("inf"):
            raise RamifyError(f"checkpoint_minutes is {self.checkpoint_minutes}, but must be at least 0.")
        for name in (
            "preterminals",
            "nonterminals",
            "rank",
            "embedding",
            "epochs",
            "batch_size",
            "batch_tokens",
            "vocabulary",
            "min_count",
        ):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= LARGEST:
                raise RamifyError(f"{name} is {value}, but must lie between 1 and {LARGEST:,}.")
        if self.batch_tokens is not None and self.batch_size != DEFAULT_BATCH:
            raise RamifyError("A step is measured in sentences or in words; give one of batch_size and batch_tokens.")
        if self.max_length < 2:
            raise RamifyError(f"max_length is {self.max_length}, but a sentence with a tree has 2 words or more.")
        if self.curriculum is not None and self.curriculum < 2:
            raise RamifyError(f"curriculum is {self.curriculum}, but a sentence with a tree has 2 words or more.")
        if self.compound and "latent" not in inspect.signature(FAMILIES[self.model]).parameters:
            raise RamifyError(f"A compound {self.model} is not known; leave out compound.")
        for name in ("learning_rate", "clip", "gain", "decay"):
            if not 0 < getattr(self, name) < float("inf"):
                raise RamifyError(f"{name} is {getattr(self, name)}, but must be a positive number.")
        if not 0 <= self.dropout < 1:
            raise RamifyError(f"dropout is {self.dropout}, but must be at least 0 and less than 1.")
        if self.dropout and self.model == "em-pcfg":
            raise RamifyError("em-pcfg counts with all its symbols; leave out dropout.")
        if self.patience < 1:
            raise RamifyError(f"patience is {self.patience}, but must be at least 1.")
        if not 0 <= self.seed < 2**63:
            raise RamifyError(f"seed is {self.seed}, but must lie between 0 and 2^63.")

    @property
    def sizes(self) -> tuple[int, int, int]:
        """n, p and d, the defaults filled in."""
        p = self.preterminals
        return self.nonterminals or max(1, p // 2), p, self.rank or (p if p > 200 else 200)

    def grammar_arguments(self, words: int) -> dict[str, Any]:
        """What the grammar's constructor takes, with the defaults that follow from other settings filled in."""
        from ramify.grammars.compound import LATENT

        n, p, d = self.sizes
        available = {
            "nonterminals": n,
            "preterminals": p,
            "rank": d,
            "words": words,
            "activation": self.activation,
            "shared_projection": self.shared_projection,
            "tied_embeddings": self.tied_embeddings,
            "initialisation": self.initialisation,
            "gain": self.gain,
        }
        if self.embedding is not None:
            available["embedding"] = self.embedding
        if self.compound:
            available["latent"] = LATENT
        taken = inspect.signature(FAMILIES[self.model]).parameters.values()
        return {each.name: available.get(each.name, each.default) for each in taken}

    def longest_in(self, epoch: int) -> int | None:
        """The longest sentence to train on in an epoch; None without a curriculum."""
        first = self.curriculum or (CURRICULUM if self.model == "c-pcfg" else None)
        return None if first is None else first + epoch - 1


def _one_of(name: str, value: str, known: Any) -> None:
    if value not in known:
        raise RamifyError(f"{name} {value!r} is unknown; choose one of {', '.join(known)}.")


TYPES: dict[str, type] = {
    "int": int,
    "int | None": int,
    "float": float,
    "str": str,
    "bool": bool,
}
"""The types that settings have, by their annotations."""


def _converted(setting: Field[Any], value: Any, where: str) -> Any:
    wanted = TYPES[str(setting.type)]
    if type(value) is int and value.bit_length() > MOST_BITS:
        raise RamifyError(f"{where}: {setting.name} is a number of more than {MOST_BITS} bits; give a smaller one.")
    if wanted is float and type(value) is int:
        return float(value)
    if type(value) is not wanted:
        raise RamifyError(f"{where}: {setting.name} is {value!r}, but must be of type {wanted.__name__}.")
    return value


def presets() -> dict[str, Traversable]:
    """The TOML files of published models, by name."""
    files = (file for file in (resources.files("ramify.training") / "presets").iterdir() if file.name.endswith(".toml"))
    return {file.name.removesuffix(".toml"): file for file in sorted(files, key=lambda file: file.name)}


def _from_toml(file: Path | Traversable) -> dict[str, Any]:
    """The settings in a TOML file, known ones and of their types."""
    known = {setting.name: setting for setting in fields(Settings)}
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise RamifyError(f"{file}: cannot be read as a TOML file of settings ({error}).") from error
    chosen = {name.replace("-", "_"): value for name, value in table.items()}
    if len(chosen) < len(table):
        raise RamifyError(f"{file}: a setting stands there twice, once with - and once with _; keep one.")
    for name in chosen.keys() - known.keys():
        raise RamifyError(f"{file}: {name!r} is no setting; known are {', '.join(known)}.")
    return {name: _converted(known[name], value, str(file)) for name, value in chosen.items()}


def load_settings(
    config: str | Path | None, given: dict[str, Any], earlier: Settings | None = None, preset: str | None = None
) -> Settings:
    """Defaults, then a preset by its name, then the TOML file, then what was given by hand (None means not given).

    The settings of an `earlier` run to be resumed take the place of the defaults and cannot be changed.
    """
    known = {setting.name: setting for setting in fields(Settings)}
    chosen: dict[str, Any] = {}
    if preset is not None:
        _one_of("preset", preset, presets())
        chosen |= _from_toml(presets()[preset])
    if config is not None:
        chosen |= _from_toml(Path(config))
    for name in given.keys() - known.keys():
        raise RamifyError(f"{name!r} is no setting; known are {', '.join(known)}.")
    chosen |= {name: _converted(known[name], value, "settings") for name, value in given.items() if value is not None}
    for name in chosen.keys() - FREE_TO_CHANGE if earlier else ():
        if getattr(earlier, name) != chosen[name]:
            raise RamifyError(
                f"{name} of the run to resume is {getattr(earlier, name)}, not {chosen[name]}; "
                "leave it out, or begin another run with another --out."
            )
    return replace(earlier or Settings(), **chosen)
