"""All settings of a training run, with types, help and checks.

The command line is generated from this module, so it imports torch only when a grammar is built.
"""

from __future__ import annotations

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
from ramify.models import FAMILIES
from ramify.models.options import ACTIVATIONS, INITIALISATIONS, ModelOptions, setting
from ramify.training.text_sizes import sizes_for_text

PUNCTUATION = ("remove", "penn", "keep")
FOCUS_ON = ("posteriors", "trees", "average")
FREE_TO_CHANGE = frozenset(["epochs", "patience", "device", "checkpoint_minutes"])
"""Settings that a resumed run may change; any other change would change the result."""
DEFAULT_BATCH = 8
PUNCTUATION_PENALTY = 1.0
"""In nats per constituent; chosen on the dev sets of fr-sequoia and en-craft (docs/better-trees-results.md)"""
LARGEST = 1_000_000
"""Maximum number of symbols, words or sentences in a batch: a larger number is a typing mistake."""
MAX_BITS = 64
"""Maximum size of whole numbers in bits; Python cannot print numbers of thousands of digits in an error."""


@dataclass(frozen=True)
class Settings(ModelOptions):
    """Options of the model and settings of the run.

    Settings marked `by_text` depend on the amount of text (`sizes_for_text`) unless you set them.
    """

    model: str = setting("tn-pcfg", f"Model family: {', '.join(FAMILIES)}.")
    dropout: float = setting(0.0, "Dropout rate: share of symbols (grammars) or units (other models).")
    seed: int = setting(0, "Random seed; the same seed on the same machine gives the same model.")
    epochs: int = setting(10, "Number of passes through the training sentences.", by_text=True)
    batch_size: int = setting(DEFAULT_BATCH, "Sentences per training step, all of the same length.", by_text=True)
    batch_tokens: int | None = setting(
        None, "Maximum number of words in a training step, instead of --batch-size \\[default: not used]."
    )
    gradient_groups: int | None = setting(
        None, "Number of parts of a batch; their gradients are added in a fixed order \\[default: 1; torchrun: 4]."
    )
    learning_rate: float = setting(0.002, "Learning rate of Adam.")
    decay: float = setting(1.0, "Factor applied to the learning rate after every epoch.")
    max_length: int = setting(40, "Longest training sentence, in words; dev and test sentences can be longer.")
    curriculum: int | None = setting(
        None, "Longest training sentence in epoch 1; grows by one word per epoch \\[default: 30 for c-pcfg]."
    )
    vocabulary: int = setting(10_000, "Size of the vocabulary; less frequent words become <unk>.")
    min_count: int | None = setting(
        None,
        "Words seen fewer times than this become <unk> \\[default: 1; for text 2 if --vocabulary would keep all].",
    )
    patience: int = setting(5, "Stop after this many epochs without a better score on the dev set.", by_text=True)
    clip: float = setting(3.0, "Maximum norm of the gradient.")
    focus: float | None = setting(
        None, "Weight of the teachers' spans in training (beta) \\[default: 1 with teachers]."
    )
    focus_on: str = setting(
        "posteriors", "What to learn from: posteriors or trees of each teacher, or trees of their average."
    )
    focus_decay: float = setting(1.0, "Factor applied to --focus after every epoch.")
    punctuation_penalty: float | None = setting(
        None,
        "Penalty in training, in nats, for constituents that cross punctuation \\[default: 1 for grammars, else 0].",
    )
    branching: float | None = setting(
        None,
        "Bonus in parsing for spans at one end of the sentence: above 0 the right end, below 0 the left end "
        "\\[default: 0.3 at one end if the frequent words of the text show which, else 0].",
    )
    input: str = setting(
        "auto",
        "Format of DATA: text, brackets, conllu, jsonl, parquet, or auto, which detects it from the first lines.",
    )
    column: str | None = setting(
        None, "Column of jsonl or parquet data with text or lists of tokens \\[default: text]."
    )
    words: str = setting(
        "auto",
        "Which leaves of trees are words: auto; ptb (those with a word tag of the Penn Treebank); none (all, no tag is "
        "removed); or the tags to remove.",
    )
    tokenise: str = setting(
        "none", "Tokenise plain prose: a language (en, fr ... or xx for any), penn for English; none splits at spaces."
    )
    split_sentences: bool = setting(False, "Split plain prose into sentences; otherwise every line is one.")
    punctuation: str = setting(
        "remove", f"What to do with punctuation in text: {', '.join(PUNCTUATION)} (penn removes currency signs too)."
    )
    normal_form: str = setting("NFC", f"Unicode normal form of words: {', '.join(get_args(NormalForm))}.")
    checkpoint_minutes: float = setting(5.0, "Minutes between checkpoints, from which a run can be resumed.")
    device: str = setting("auto", "auto, cpu, cuda, cuda:1, mps ...; auto uses a GPU if available.")
    further_options: dict[str, Any] = field(default_factory=dict)
    """Options of families from outside the package, by name"""

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
            "width",
            "layers",
            "epochs",
            "batch_size",
            "batch_tokens",
            "gradient_groups",
            "vocabulary",
            "min_count",
        ):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= LARGEST:
                raise RamifyError(f"{name} is {value}, but must be between 1 and {LARGEST:,}.")
        if self.batch_tokens is not None and self.batch_size != DEFAULT_BATCH:
            raise RamifyError(
                "batch_size and batch_tokens exclude each other, because both set the size of a batch; give one of "
                "them."
            )
        if self.max_length < 2:
            raise RamifyError(f"max_length is {self.max_length}, but a tree needs at least 2 words; give 2 or more.")
        if self.curriculum is not None and self.curriculum < 2:
            raise RamifyError(f"curriculum is {self.curriculum}, but a tree needs at least 2 words; give 2 or more.")
        if self.compound and "compound" not in FAMILIES[self.model].option_names():
            families = ", ".join(name for name, family in FAMILIES.items() if "compound" in family.option_names())
            raise RamifyError(
                f"{self.model} has no compound version; leave out compound, or choose one of these families: "
                f"{families}."
            )
        if self.pre_norm and self.activation != "relu":
            raise RamifyError(
                f"With pre_norm the networks use GELU, so the activation {self.activation} would have no effect; leave "
                "out activation, or pre_norm."
            )
        for name in ("learning_rate", "clip", "gain", "decay"):
            if not 0 < getattr(self, name) < float("inf"):
                raise RamifyError(f"{name} is {getattr(self, name)}, but must be a positive number.")
        if not 0 <= self.dropout < 1:
            raise RamifyError(f"dropout is {self.dropout}, but must be at least 0 and less than 1.")
        if self.dropout and not FAMILIES[self.model].allows_dropout:
            raise RamifyError(f"dropout is {self.dropout}, but {self.model} does not support dropout; leave it out.")
        _one_of("focus_on", self.focus_on, FOCUS_ON)
        if not 0 <= (self.focus or 0.0) < float("inf"):
            raise RamifyError(f"focus is {self.focus}, but must be at least 0.")
        if not 0 <= self.focus_decay < float("inf"):
            raise RamifyError(f"focus_decay is {self.focus_decay}, but must be at least 0.")
        if not 0 <= (self.punctuation_penalty or 0.0) < float("inf"):
            raise RamifyError(f"punctuation_penalty is {self.punctuation_penalty}, but must be at least 0.")
        if self.punctuation_penalty and not _learns_trees_from_words(self.model):
            raise RamifyError(
                f"punctuation_penalty is {self.punctuation_penalty}, but {self.model} does not support it; leave it "
                "out, or choose a PCFG."
            )
        if not abs(self.branching or 0.0) < float("inf"):
            raise RamifyError(f"branching is {self.branching}, but must be a finite number.")
        if self.patience < 1:
            raise RamifyError(f"patience is {self.patience}, but must be at least 1.")
        if not 0 <= self.seed < 2**63:
            raise RamifyError(f"seed is {self.seed}, but must be at least 0 and less than 2^63.")

    @property
    def sizes(self) -> tuple[int, int, int]:
        """n, p and d, with defaults filled in."""
        p = self.preterminals
        return self.nonterminals or max(1, p // 2), p, self.rank or (p if p > 200 else 200)

    def model_arguments(self, words: int) -> dict[str, Any]:
        """The arguments of the model's constructor, including defaults that follow from other options."""
        family = FAMILIES[self.model]
        changed = {
            option.name: value
            for option in fields(ModelOptions)
            if option.name in family.option_names() and (value := getattr(self, option.name)) != option.default
        }
        return family.arguments(changed | self.further_options, words)

    @property
    def crossing_penalty(self) -> float:
        """The penalty for constituents that cross punctuation, with the default filled in."""
        if self.punctuation_penalty is None:
            return PUNCTUATION_PENALTY if _learns_trees_from_words(self.model) else 0.0
        return self.punctuation_penalty

    def focus_in(self, epoch: int) -> float:
        """The strength of the focus in an epoch of a run with teachers."""
        return (1.0 if self.focus is None else self.focus) * self.focus_decay ** (epoch - 1)

    def longest_in(self, epoch: int) -> int | None:
        """The longest sentence to train on in an epoch; None without a curriculum."""
        return None if self.curriculum is None else self.curriculum + epoch - 1


def _learns_trees_from_words(model: str) -> bool:
    """Whether the objective of a family is a sum over trees with span scores, and not only over those of teachers."""
    return FAMILIES[model].takes_span_scores and not FAMILIES[model].needs_teachers


def _one_of(name: str, value: str, known: Any) -> None:
    if value not in known:
        raise RamifyError(f"{name} {value!r} is unknown; choose one of {', '.join(known)}.")


TYPES: dict[str, type] = {
    "int": int,
    "int | None": int,
    "float": float,
    "float | None": float,
    "str": str,
    "str | None": str,
    "bool": bool,
}
"""The types of settings, by annotation."""
KINDS = {int: "a whole number", float: "a number", str: "text in quotes", bool: "true or false"}
"""Names of these types, for errors."""


def named_settings() -> dict[str, Field[Any]]:
    """The settings with a single value, which can be given by name."""
    return {each.name: each for each in fields(Settings) if str(each.type) in TYPES}


def _converted(setting: Field[Any], value: Any, where: str) -> Any:
    expected = TYPES[str(setting.type)]
    if type(value) is int and value.bit_length() > MAX_BITS:
        raise RamifyError(
            f"{where}: {setting.name} is a whole number of {value.bit_length():,} bits, but may have at most "
            f"{MAX_BITS}; give a smaller one."
        )
    if expected is float and type(value) is int:
        return float(value)
    if type(value) is not expected:
        raise RamifyError(f"{where}: {setting.name} is {value!r}, but must be {KINDS[expected]}; correct it.")
    return value


def presets() -> dict[str, Traversable]:
    """The TOML files of published models, by name."""
    files = (file for file in (resources.files("ramify.training") / "presets").iterdir() if file.name.endswith(".toml"))
    return {file.name.removesuffix(".toml"): file for file in sorted(files, key=lambda file: file.name)}


def _from_toml(file: Path | Traversable) -> dict[str, Any]:
    """The settings in a TOML file, by name."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise RamifyError(f"{file}: cannot be read as a TOML file of settings ({error}); correct it.") from error
    chosen = {name.replace("-", "_"): value for name, value in table.items()}
    if len(chosen) < len(table):
        twice = next(name for name in table if "-" in name and name.replace("-", "_") in table)
        raise RamifyError(f"{file}: the setting {twice} is given twice, with - and with _; keep one of the two.")
    return chosen


def load_settings(
    config: str | Path | None,
    overrides: dict[str, Any],
    earlier: Settings | None = None,
    preset: str | None = None,
    sentences: int | None = None,
) -> Settings:
    """Settings from several sources, each of which takes precedence over the ones before it.

    These are: general defaults, defaults for the number of training `sentences`, defaults of the family, a preset by
    name, the TOML file `config`, and `overrides` (None: not set). The settings of an `earlier` run to be resumed
    replace all defaults and cannot be changed.
    """
    chosen: dict[str, tuple[Any, str]] = {}
    """Value and source, by name"""
    if preset is not None:
        _one_of("preset", preset, presets())
        chosen |= _sourced(_from_toml(presets()[preset]), f"preset {preset}")
    if config is not None:
        chosen |= _sourced(_from_toml(Path(config)), str(config))
    chosen |= _sourced({name: value for name, value in overrides.items() if value is not None}, "settings")
    if earlier is None:
        chosen = _family_defaults(chosen, sentences) | chosen
    settings = _with(earlier or Settings(), chosen)
    for name in (chosen.keys() | {"further_options"}) - FREE_TO_CHANGE if earlier else ():
        if getattr(earlier, name) != getattr(settings, name):
            raise RamifyError(
                f"{name} of the run to resume is {getattr(earlier, name)}, not {getattr(settings, name)}; "
                "leave it out, or start another run in another folder."
            )
    return settings


def recorded_settings(record: dict[str, Any]) -> Settings:
    """The settings of an earlier run from its config; settings added since then get the values of that time."""
    known = {"gradient_groups": 1, "punctuation_penalty": 0.0, "branching": 0.0, **record}
    known.pop("focus_branching", None)  # of earlier versions; the span scores that it changed are saved
    if known.get("batch_tokens") is not None:
        known.pop("batch_size", None)  # recorded with its default
    return load_settings(None, known)


def _family_defaults(chosen: dict[str, tuple[Any, str]], sentences: int | None) -> dict[str, tuple[Any, str]]:
    """Defaults of the chosen family; a batch is measured in sentences or in words, not in both."""
    model, _ = chosen.get("model", (Settings.model, ""))
    defaults = {} if sentences is None else sizes_for_text(model, sentences)
    defaults |= FAMILIES[model].default_settings() if model in FAMILIES else {}
    if "batch_tokens" in chosen:
        defaults.pop("batch_size", None)
    return _sourced(defaults, model)


def _sourced(values: dict[str, Any], source: str) -> dict[str, tuple[Any, str]]:
    """Each value with its source, converted to the type of its setting."""
    known = named_settings()
    return {
        name: (_converted(known[name], value, source) if name in known else value, source)
        for name, value in values.items()
    }


def _with(settings: Settings, chosen: dict[str, tuple[Any, str]]) -> Settings:
    """The settings with some values changed; unknown names, and options that the family does not have, are refused."""
    known = named_settings()
    further, _ = chosen.pop("further_options", ({}, ""))
    model, _ = chosen.get("model", (settings.model, ""))
    if model in FAMILIES:
        if not isinstance(further, dict) or not further.keys() <= set(FAMILIES[model].option_names()):
            raise RamifyError(
                f"further_options: {str(further)[:40]} contains options that {model} does not have; remove them."
            )
        further = dict(further)
        for name in [name for name in chosen if name not in known and name in FAMILIES[model].option_names()]:
            further[name] = chosen.pop(name)[0]
    for name, (_, source) in chosen.items():
        if name not in known:
            raise RamifyError(f"{source}: {name!r} is not a setting; choose from {', '.join(known)}.")
    values = {name: value for name, (value, _) in chosen.items()}
    changed = replace(settings, **values, further_options={**settings.further_options, **further})
    _check_options(changed, {name: source for name, (_, source) in chosen.items()})
    return changed


def _check_options(settings: Settings, sources: dict[str, str]) -> None:
    """Refuse options that the family does not have, unless they have their defaults, as in the config of a run."""
    for option in fields(ModelOptions):
        name = option.name
        if name not in sources or getattr(settings, name) == option.default:
            continue
        options = FAMILIES[settings.model].option_names()
        if name not in options:
            raise RamifyError(
                f"{sources[name]}: {settings.model} has no option {name}; leave it out (its options are "
                f"{', '.join(options) or 'none'})."
            )
