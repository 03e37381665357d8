"""Whether all data of an experiment can be trained on and scored: better known before the first run than after it."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from typing import Any

from ramify.errors import RamifyWarning
from ramify.lab.plan.experiment import DataSet, Plan
from ramify.lab.run.scoring import gold_of
from ramify.lab.run.status import Status
from ramify.training.data import prepare
from ramify.training.settings import Settings


def check_data(plan: Plan, statuses: Collection[Status]) -> None:
    """Read the sentences of every data set that something is left to be done with, as its runs will."""
    unfinished = {status.name for status in statuses if status.state != "finished"}
    for name, data in plan.data.items():
        ways = {
            _way(run.settings): run.settings
            for run in plan.runs.values()
            if run.data == name and run.name in unfinished and run.settings is not None
        }
        if ways and data.files is not None:
            _check(data, ways.values())


def _way(settings: Settings) -> tuple[Any, ...]:
    """What of the settings decides which sentences there are."""
    return settings.words, settings.punctuation, settings.max_length, settings.min_count


def _check(data: DataSet, ways: Collection[Settings]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RamifyWarning)  # the runs will report
        for settings in ways:
            prepared = prepare(data.split("train"), data.split("dev"), settings)
            if data.is_scored:
                gold_of(data, prepared.word_rule)
