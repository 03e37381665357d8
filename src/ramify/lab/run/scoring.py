"""The results of runs and baselines, from which reports are made."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from ramify.corpus.cleaning import WordRule
from ramify.corpus.prepare.manifest import word_rule_for
from ramify.corpus.reading import Corpus, read_sentences
from ramify.corpus.sentence import Sentence
from ramify.errors import RamifyWarning
from ramify.evaluation.baselines import baseline_predictions
from ramify.evaluation.evaluation import mean_of_runs, score
from ramify.evaluation.gold import Gold, Prediction, load_gold
from ramify.evaluation.induced import count_induced
from ramify.evaluation.spans import count_spans
from ramify.lab.plan.experiment import DataSet, Plan, settings_of
from ramify.lab.results.schema import FORMAT, Induced, Machine, Result, Run
from ramify.lab.run.experiment_folder import epochs_done
from ramify.lab.run.status import Status
from ramify.runtime.machine import processor_name
from ramify.version import VERSION

if TYPE_CHECKING:
    from ramify.parser.ensemble import Ensemble
    from ramify.parser.tree_parser import TreeParser


def model_result(
    parser: TreeParser, gold: Gold | None, data: DataSet, run: Run, decoder: str, training: dict[str, Any]
) -> Result:
    """Everything about the parses of a model, or of an average, by one decoder; `training` describes its training.

    Without gold trees there are no scores.
    """
    from ramify.parser.predictions import predict

    scored: dict[str, Any] = {}
    if gold is not None:
        prediction = predict(parser, gold, run.model, decoder, seed=run.seed or 0)
        scored = {
            "evaluation": score(gold, prediction),
            "induced": _induced(prediction, gold),
            "sentence_f1": _sentence_f1(gold, [prediction]),
        }
    about = {"seed": run.seed, "decoder": decoder, "settings": run.settings}
    return _result("model", data, run.model, **about, **scored, **training)


def _induced(prediction: Prediction, gold: Gold) -> Induced:
    """Of the sentences that the grammar derives: in other trees its symbols mean nothing."""
    failed = set(chain.from_iterable(prediction.failures.values()))
    derived = [place + 1 not in failed for place in gold.places]
    counted = count_induced(compress(prediction.parses, derived), compress(gold.parses, derived))
    return msgspec.convert(counted.as_record(), Induced)


def baseline_result(name: str, data: DataSet, gold: Gold) -> Result:
    """The same of trees that need no model."""
    predictions = baseline_predictions(name, gold)
    evaluation = mean_of_runs([score(gold, each) for each in predictions], predictions[0].system)
    return _result("baseline", data, name, evaluation=evaluation, sentence_f1=_sentence_f1(gold, predictions))


def _result(kind: Literal["model", "baseline"], data: DataSet, model: str, **facts: Any) -> Result:
    return Result(
        format=FORMAT,
        version=VERSION,
        kind=kind,
        data=data.name,
        model=model,
        split=data.scored,
        machine=Machine(processor_name(), os.cpu_count()),
        **facts,
    )


def gold_of(data: DataSet, rule: WordRule | None = None) -> Gold:
    """The gold trees to score against; which leaves are words is decided by the training set, as for the models."""
    trees, train = data.split(data.scored), data.split("train")
    assert trees is not None
    assert train is not None
    if rule is None and data.words != "auto":
        rule = WordRule.from_name(data.words)
    elif rule is None:
        corpus = train if isinstance(train, Corpus) else read_sentences(train)
        rule = word_rule_for(corpus) if corpus.has_trees else None
    return load_gold(trees, rule)


def check_data(plan: Plan, statuses: Collection[Status]) -> None:
    """Read all data of unfinished runs as the runs will, so that errors are found before the first run starts."""
    unfinished = {status.name for status in statuses if status.state != "finished"}
    seen = set()
    for run in plan.runs.values():
        data = plan.data[run.data]
        if run.name not in unfinished or run.settings is None or data.files is None:
            continue
        settings = settings_of(run)
        reading = (run.data, settings.words, settings.punctuation, settings.max_length, settings.min_count)
        if reading not in seen:  # what decides which sentences there are
            seen.add(reading)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RamifyWarning)  # the runs will report
                prepared = data.prepared(settings)
                if data.is_scored:
                    gold_of(data, prepared.word_rule)


def named_members(folders: Mapping[str, Path]) -> list[str]:
    """Model folders with the names of their runs, without the data that all have in common."""
    return [f"{name.partition('/')[2]}={folder}" for name, folder in folders.items()]


def averaged(run: Run, folders: Mapping[str, Path], data: DataSet) -> Ensemble:
    """The ensemble of an average; training sentences show which members collapsed."""
    from ramify.parser import Ensemble

    ensemble = Ensemble(named_members(folders))
    if not run.leave_out_collapsed:
        return ensemble
    return ensemble.without_collapsed(sentences_of(data, "train", next(iter(folders.values()))))


def sentences_of(data: DataSet, split: Literal["train", "dev"], member: Path) -> list[Sentence]:
    """The sentences with which a member of an average was trained, or by which its best epoch was chosen."""
    from ramify.storage.model_files import read_config
    from ramify.training.settings import load_settings

    settings = load_settings(None, dict(read_config(member)["settings"]))
    prepared = data.prepared(settings)
    corpus = prepared.train if split == "train" else prepared.dev
    return [Sentence.from_tokens(parse.words) for parse in corpus.parses]


def training_record(folder: Path, threads: int, peak_memory: float | None) -> dict[str, Any]:
    """How a training went, from what it left in its folder."""
    from ramify.storage.model_files import read_config
    from ramify.storage.model_folder import empty_model

    epochs = tuple(epochs_done(folder))
    # Of the networks: a parser keeps only the rules that they made.
    grammar = empty_model(folder, read_config(folder))
    return {
        "parameters": sum(parameter.numel() for parameter in grammar.parameters()),
        "threads": threads,
        "peak_memory_mb": peak_memory,
        "epochs": epochs,
        "seconds_per_epoch": float(np.mean([epoch.seconds for epoch in epochs])),
    }


def _sentence_f1(gold: Gold, predictions: Sequence[Prediction]) -> list[float]:
    """S-F1 of every scored sentence in percent, of several draws their mean."""
    f1 = [count_spans(gold.spans, each.spans, gold.lengths).f1 for each in predictions]
    return [round(float(value), 4) for value in 100 * np.mean(f1, axis=0)]
