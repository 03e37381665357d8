"""The longest version of a recipe that fits into a given time, by the measured speed of this machine."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from ramify.errors import RamifyError
from ramify.lab.plan.experiment import DataSet
from ramify.lab.plan.recipe import Grammars, Recipe
from ramify.models import FAMILIES
from ramify.runtime.threads import on_one_core
from ramify.training.loop import equal_length_batches, noise_for, train_step

WARM_UP_STEPS, TIMED_STEPS = 2, 12
"""Steps of training that are not timed, because they may compile loops, and steps that are"""
OVERHEAD, PARSING_EPOCHS = 1.15, 0.35
"""What a run takes besides its training steps: a factor for dev and test sentences and the start, and for each of its
teachers a share of an epoch, in which it parses. On three treebanks (60 preterminals) the factor was 1.06 to 1.14, and
the share 0.14 to 0.38."""
SIZES = [(3, 2), (3, 1), (2, 1)]
"""Seeds of each kind of teacher, and of the student, in shorter versions of a recipe"""
EPOCHS = [6, 4, 3, 2, 1]


def fitting_recipe(recipe: Recipe, data: DataSet, minutes: float, jobs: int) -> tuple[Recipe, float]:
    """The longest version of a recipe that is expected to take at most this many minutes, and its minutes."""
    if not 0 < minutes < float("inf"):
        raise RamifyError(f"minutes is {minutes}, but must be a positive number.")
    seconds = {each.name: seconds_per_epoch(each, data) for each in (*recipe.teachers, recipe.student)}
    versions = [(expected_minutes(version, seconds, jobs), version) for version in versions_of(recipe)]
    fitting = [(needed, version) for needed, version in versions if needed <= minutes]
    if not fitting:
        least = min(needed for needed, _ in versions)
        raise RamifyError(
            f"Even the shortest version of the recipe is expected to take {least:.1f} minutes here; give "
            f"--minutes {math.ceil(least)} or less text."
        )
    needed, best = max(fitting, key=lambda each: each[0])
    return best, needed


def versions_of(recipe: Recipe) -> Iterator[Recipe]:
    """The recipe itself and shorter ones."""
    whole = max(len(each.seeds) for each in recipe.teachers), len(recipe.student.seeds)
    longest = max(each.with_seed(0).epochs for each in (*recipe.teachers, recipe.student))
    for epochs in (longest, *EPOCHS):
        for teachers, students in (whole, *SIZES):
            for rounds in range(1, recipe.rounds + 1):
                yield recipe.smaller(teachers, students, rounds, epochs)


def expected_minutes(recipe: Recipe, seconds: dict[str, float], jobs: int) -> float:
    """From the seconds per epoch of each kind of grammar and the number of runs at a time."""

    def alone(grammars: Grammars) -> float:
        return OVERHEAD * seconds[grammars.name] * grammars.with_seed(0).epochs

    teachers = [each for each in recipe.teachers for _ in each.seeds]
    stages = [[alone(each) for each in teachers]]
    for _ in range(recipe.rounds):
        parses = PARSING_EPOCHS * sum(seconds[each.name] for each in teachers)
        teachers = [recipe.student] * len(recipe.student.seeds)
        stages.append([alone(each) + parses for each in teachers])
    return sum(_makespan(stage, jobs) for stage in stages) / 60


def _makespan(durations: list[float], jobs: int) -> float:
    """How long jobs of these durations take, each started as soon as one of the processes is free."""
    ends = [0.0] * jobs
    for duration in durations:
        earliest = ends.index(min(ends))
        ends[earliest] += duration
    return max(ends)


def seconds_per_epoch(grammars: Grammars, data: DataSet) -> float:
    """Of training on one core, from some steps on batches drawn from the data."""
    settings = grammars.with_seed(0)
    prepared = data.prepared(settings)
    model = FAMILIES[settings.model](**settings.model_arguments(len(prepared.vocabulary)))
    model.train()
    learner = model.learner(settings.learning_rate, settings.clip)
    sentences: list[Any] = [prepared.vocabulary.encode(parse.words) for parse in prepared.train.parses]
    rng = np.random.default_rng(0)
    batches = equal_length_batches(sentences, settings.batch_size, rng, settings.batch_tokens)
    durations = []
    with on_one_core():
        for step in range(WARM_UP_STEPS + TIMED_STEPS):
            batch = batches[step % len(batches)]
            started = time.perf_counter()
            noise = noise_for(0, 1, step) if model.draws() or settings.dropout else None
            word_ids = torch.from_numpy(np.stack([sentences[place] for place in batch]))
            train_step(model, learner, word_ids, noise, settings.dropout)
            durations.append(time.perf_counter() - started)
    return len(batches) * float(np.mean(durations[WARM_UP_STEPS:]))
