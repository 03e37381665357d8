"""Systems by name: model folders, files of trees, baselines; several runs of one system are reported together."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from ramify.corpus.cleaning import WordRule
from ramify.decoding.heads import HeadDecoder
from ramify.errors import RamifyError
from ramify.evaluation.alignment import read_prediction
from ramify.evaluation.baselines import baseline_predictions
from ramify.evaluation.dependencies import (
    GoldHeads,
    HeadEvaluation,
    HeadPrediction,
    chain_prediction,
    check_chain,
    mean_of_head_runs,
    read_head_prediction,
    score_heads,
)
from ramify.evaluation.evaluation import Evaluation, mean_of_runs, score
from ramify.evaluation.gold import Gold, Prediction
from ramify.evaluation.spans import Convention
from ramify.model_names import SystemKind, split_name, system_kind
from ramify.parser.ensemble import Ensemble
from ramify.parser.ensemble_members import Member, open_member
from ramify.parser.loading import described, load
from ramify.parser.predictions import predict, predict_heads
from ramify.parser.tree_parser import TreeParser
from ramify.storage.ensemble_folder import is_ensemble, read_ensemble
from ramify.storage.model_files import LEARNT_FROM_TEXT, METRICS, checked_file, read_config

Row = TypeVar("Row", Evaluation, HeadEvaluation)


@dataclass(frozen=True)
class System:
    """One system, and the source of its trees."""

    kind: SystemKind
    name: str
    path: Path
    """Folder of a model, file of trees, or name of a baseline"""
    group: str
    """Key shared by the runs of one system: a name given by the user, or all settings of a model except the seed"""
    config: dict[str, Any] = field(default_factory=dict)
    members: tuple[System, ...] = ()
    """Members of an average"""

    @classmethod
    def average(cls, members: Sequence[System]) -> System:
        """The average of models and files of trees."""
        if len(members) < 2:
            raise RamifyError(
                f"An average needs at least two members, not {len(members)}; give more models or files of trees."
            )
        return cls("average", f"average of {len(members)}", Path(), "average", members=tuple(members))

    @classmethod
    def of(cls, kind: SystemKind, text: str) -> System:
        """The system given by `PATH` or `NAME=PATH`."""
        own_name, path = split_name(text)
        name = own_name or text
        config: dict[str, Any] = {}
        if kind == "model":
            config = _config_of_rules(path, name) if path.is_file() else _config(path, name)
        group = _settings_but_seed(config) if kind == "model" and not own_name else name
        return cls(kind, name, path, group, config)

    @classmethod
    def guess(cls, text: str) -> System:
        """The system given by a folder or file of rules (`.pcfg`), a file of trees, or the name of a baseline."""
        return cls.of(system_kind(text), text)

    def predictions(
        self,
        gold: Gold,
        *,
        decoder: str,
        device: str,
        seed: int,
        on_sentence: Callable[[], None],
        branching: float | None = None,
    ) -> list[Prediction]:
        """Its trees for the gold sentences; several draws of random trees."""
        if self.kind == "baseline":
            found = baseline_predictions(str(self.path), gold, seed, on_sentence)
            return found if self.name == str(self.path) else [replace(each, system=self.name) for each in found]
        if self.kind == "predicted":
            return [read_prediction(self.path, gold, self.name)]
        parser = self._parser(device)
        return [predict(parser, gold, self.name, decoder, on_sentence, seed, branching=branching)]

    def heads(
        self,
        gold: GoldHeads,
        *,
        decoder: str,
        heads: HeadDecoder,
        device: str,
        seed: int,
        on_sentence: Callable[[], None],
        branching: float | None = None,
    ) -> HeadPrediction:
        """Its heads for the gold sentences."""
        if self.kind == "baseline":
            return replace(chain_prediction(str(self.path), gold), system=self.name)
        if self.kind == "predicted":
            return read_head_prediction(self.path, gold, self.name)
        parser = self._parser(device)
        return predict_heads(parser, gold, self.name, decoder, heads, on_sentence, seed, branching)

    def _parser(self, device: str) -> TreeParser:
        """The parser of a model or an average."""
        if self.kind == "average":
            return Ensemble([member.opened(device) for member in self.members])
        return load(self.path, device)

    def opened(self, device: str) -> Member:
        """The system as a member of an average."""
        return open_member(self.path if self.name == str(self.path) else f"{self.name}={self.path}", device)


def _config(path: Path, name: str) -> dict[str, Any]:
    """The config of a model; for an ensemble, only its rule for words."""
    return {"words": read_ensemble(path).words, "ensemble": name} if is_ensemble(path) else read_config(path)


def _config_of_rules(path: Path, name: str) -> dict[str, Any]:
    word_rule, *_ = described(path)
    return {"words": LEARNT_FROM_TEXT if word_rule is None else str(word_rule), "rules": name}


def common_rule(systems: Sequence[System]) -> WordRule | None:
    """The rule for words with which the models were trained; None if no model has one."""
    every = (each for system in systems for each in (system, *system.members))
    models = (system for system in every if system.kind == "model")
    # A model that was learnt from text accepts any rule.
    rules = {str(model.config["words"]): model.name for model in models if model.config["words"] != LEARNT_FROM_TEXT}
    if len(rules) > 1:
        found = ", ".join(f"{name} with {rule}" for rule, name in rules.items())
        raise RamifyError(f"The models were trained with different rules for words ({found}); choose one with --words.")
    return WordRule.from_name(next(iter(rules))) if rules else None


def evaluate_systems(
    systems: Sequence[System],
    gold: Gold,
    *,
    convention: Convention = "tn",
    with_evalb: bool = False,
    decoder: str = "mbr",
    device: str = "auto",
    seed: int = 0,
    branching: float | None = None,
    on_sentence: Callable[[], None] = lambda: None,
) -> list[Evaluation]:
    """The scores of each system; if it has several runs, their mean follows."""

    def results(run: System) -> list[Evaluation]:
        predictions = run.predictions(
            gold,
            decoder=decoder,
            device=device,
            seed=seed,
            on_sentence=on_sentence,
            branching=branching,
        )
        return [score(gold, each, convention, with_evalb) for each in predictions]

    return _rows(systems, results, mean_of_runs)


def evaluate_heads(
    systems: Sequence[System],
    gold: GoldHeads,
    *,
    decoder: str = "mbr",
    heads: HeadDecoder = "projective",
    device: str = "auto",
    seed: int = 0,
    branching: float | None = None,
    on_sentence: Callable[[], None] = lambda: None,
) -> list[HeadEvaluation]:
    """The scores of each system's heads; if it has several runs, their mean follows."""
    for system in systems:
        if system.kind == "baseline":
            check_chain(str(system.path))  # before a model parses for minutes

    def results(run: System) -> list[HeadEvaluation]:
        found = run.heads(
            gold,
            decoder=decoder,
            heads=heads,
            device=device,
            seed=seed,
            on_sentence=on_sentence,
            branching=branching,
        )
        return [score_heads(gold, found)]

    return _rows(systems, results, mean_of_head_runs)


def _rows(
    systems: Sequence[System], results: Callable[[System], list[Row]], mean: Callable[[list[Row], str, str | None], Row]
) -> list[Row]:
    """A row for each system with the mean of its results; after several runs of one system, a row with their mean."""
    groups: dict[str, list[System]] = {}
    for system in systems:
        groups.setdefault(system.group, []).append(system)
    rows: list[Row] = []
    for runs in groups.values():
        found = []
        for number, run in enumerate(runs, start=1):
            of_run = results(run)
            name = of_run[0].system
            # Runs with the same name are distinguished by a number.
            alone = sum(other.name == run.name for other in runs) == 1
            found.append(mean(of_run, name if alone else f"{name} #{number}", None))
        rows += found
        if len(runs) > 1:
            name = runs[0].name if runs[0].name == runs[-1].name else f"{runs[0].name} ... {runs[-1].name}"
            likelihood = _dev_perplexities(runs)
            best = None if likelihood is None else found[likelihood.index(min(likelihood))].system
            rows.append(mean(found, f"mean of {len(runs)}: {name}", best))
    return rows


def _dev_perplexities(runs: Sequence[System]) -> list[float] | None:
    """The best dev perplexity or loss of each model; None if the runs cannot be compared by it."""
    # Likelihoods can be compared on the same data with the same vocabulary.
    data = {json.dumps([run.config.get("data"), _words(run.config)], sort_keys=True) for run in runs}
    if len(data) > 1 or not all((run.path / METRICS).is_file() for run in runs):
        return None
    return [_dev_perplexity(checked_file(run.path, METRICS)) for run in runs]


def _words(config: dict[str, Any]) -> Any:
    grammar = config.get("grammar")
    return grammar.get("words") if isinstance(grammar, dict) else None


def _dev_perplexity(metrics: Path) -> float:
    try:
        lines = metrics.read_text(encoding="utf-8").splitlines()
        records = [json.loads(line) for line in lines if line.strip()]
        found = {record["epoch"]: float(record.get("dev_loss", record["dev_perplexity"])) for record in records}
        if not all(map(math.isfinite, found.values())):
            raise ValueError("no number")
        return found[records[-1]["best_epoch"]]
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise RamifyError(
            f"{metrics}: the dev perplexity of an epoch is missing or invalid; get a complete copy of the folder."
        ) from error


def _settings_but_seed(config: dict[str, Any]) -> str:
    settings = config.get("settings")
    if isinstance(settings, dict):
        settings = {
            name: value
            for name, value in settings.items()
            # A setting that an earlier version did not have was not given.
            if name not in ("seed", "device", "checkpoint_minutes") and value is not None
        }
    names = ("model", "grammar", "words", "data", "teachers", "ensemble")
    described = {"settings": settings, **{name: config.get(name) for name in names}}
    return json.dumps(described, sort_keys=True)
