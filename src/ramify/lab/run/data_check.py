"""Whether all data of an experiment can be trained on and scored: better known before the first run than after it."""

from __future__ import annotations

import warnings
from collections.abc import Collection

from ramify.errors import RamifyWarning
from ramify.lab.plan.experiment import Plan, settings_of
from ramify.lab.run.scoring import gold_of
from ramify.lab.run.status import Status
from ramify.training.data import prepare


def check_data(plan: Plan, statuses: Collection[Status]) -> None:
    """Read the sentences of every data set with which something is left to do, as its runs will."""
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
                prepared = prepare(data.split("train"), data.split("dev"), settings)
                if data.is_scored:
                    gold_of(data, prepared.word_rule)
