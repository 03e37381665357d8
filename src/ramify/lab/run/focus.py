"""Carries out a recipe: trains the grammars, saves the ensemble of the teachers, and shows the scores of each stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from msgspec import Struct
from rich.markup import escape
from rich.table import Table

from ramify.errors import RamifyError
from ramify.lab.plan.experiment import DataSet, Plan
from ramify.lab.plan.recipe import RESULT, Recipe, data_set, default_recipe, plan_of, read_recipe, recipe_from
from ramify.lab.plan.time_budget import fitting_recipe
from ramify.lab.results.schema import FORMAT, RUNS, Agreement, Result, as_record, read_record, run_name, spread
from ramify.lab.run.experiment_folder import check_folder, result_in
from ramify.lab.run.jobs import Event, Job, jobs_of
from ramify.lab.run.runner import run_experiment
from ramify.lab.run.scoring import averaged
from ramify.lab.run.status import Status
from ramify.runtime.machine import cores
from ramify.storage.ensemble_folder import is_ensemble, read_ensemble
from ramify.storage.files import write_json
from ramify.storage.model_files import checksum
from ramify.terminal.tables import plain_table

RECIPE, MODEL = "recipe.json", "model"
HEADS = ("stage", "grammars", "S-F1", "S-F1 of their average", "agreement", "dev perplexity", "minutes")


class RecipeRecord(Struct):
    """The recipe that was begun in a folder."""

    format: int
    recipe: dict[str, Any]


@dataclass(frozen=True)
class PlannedFocus:
    """Everything that is known before the first grammar is trained."""

    recipe: Recipe
    data: DataSet
    plan: Plan
    out: Path
    announcement: str
    """What will be trained, in words"""

    @property
    def model(self) -> Path:
        """Where the ensemble will be."""
        return self.out / MODEL

    @property
    def student(self) -> Path:
        """Where the first student of the last round will be."""
        name = run_name(self.data.name, f"student-{self.recipe.rounds}", self.recipe.student.seeds[0])
        return self.out / self.plan.runs[name].path


def prepare_focus(
    data: Path,
    out: Path,
    recipe: str | None,
    settings: Mapping[str, Any],
    minutes: float | None,
    jobs: int | None,
) -> PlannedFocus:
    """Choose what to train; a recipe that was begun in `out` is continued."""
    check_folder(out)
    found = data_set(data)
    if (out / RECIPE).exists():
        chosen = recipe_from(read_record(out / RECIPE, RecipeRecord).recipe, str(out / RECIPE), {})
        announcement = f"Continues the recipe in {out}: {chosen.described()}."
        if recipe is not None and minutes is None and _recipe_for(found, recipe, settings) != chosen:
            raise RamifyError(f"{out}: was begun with another recipe; give the same one, or another --out.")
    else:
        chosen = _recipe_for(found, recipe, settings)
        expected = ""
        if minutes is not None:
            chosen, needed = fitting_recipe(chosen, found, minutes, jobs or cores())
            expected = f"; expected to take about {needed:.0f} minutes" if needed >= 1 else "; a minute at most"
        announcement = f"Recipe: {chosen.described()}{expected}."
    return PlannedFocus(chosen, found, plan_of(chosen, found), out, announcement)


def _recipe_for(data: DataSet, recipe: str | None, settings: Mapping[str, Any]) -> Recipe:
    """The recipe that was chosen, or the default one, with sizes that suit the amount of text."""
    chosen = read_recipe(recipe or default_recipe(0), settings)
    sentences = len(data.prepared(chosen.student.with_seed(0)).train)
    if recipe is None:
        chosen = read_recipe(default_recipe(sentences), settings)
    return chosen.for_text(sentences)


def run_focus(
    planned: PlannedFocus,
    *,
    jobs: int | None = None,
    on_begin: Callable[[list[Status]], None] = lambda _: None,
    on_change: Callable[[Status, Event], None] = lambda _, __: None,
) -> None:
    """Train what is missing and leave the ensemble of the teachers."""

    def begin(statuses: list[Status]) -> None:
        write_json(planned.out / RECIPE, as_record(RecipeRecord(FORMAT, planned.recipe.as_record())))
        on_begin(statuses)

    statuses = run_experiment(planned.plan, planned.out, jobs=jobs, on_begin=begin, on_change=on_change)
    failed = [status for status in statuses if status.state == "failed"]
    if failed:
        raise RamifyError(
            f"{failed[0].name} failed: {failed[0].error} The same command tries it again ({len(failed)} of "
            f"{len(statuses)} jobs failed)."
        )
    _save_ensemble(planned)


def _save_ensemble(planned: PlannedFocus) -> None:
    result = planned.plan.runs[run_name(planned.data.name, RESULT, None)]
    folders = {name: planned.out / RUNS / name for name in result.members}
    if is_ensemble(planned.model):
        saved = {checksum(member.folder) for member in read_ensemble(planned.model).members}
        if saved <= {checksum(folder) for folder in folders.values()}:
            return
        raise RamifyError(f"{planned.model}: holds another ensemble; move it away, or give another --out.")
    averaged(result, folders, planned.data).save(planned.model)


def stage_table(planned: PlannedFocus) -> Table:
    """The scores of the baselines, then of each stage: its grammars and their average."""
    table, jobs = plain_table(*HEADS), jobs_of(planned.plan, planned.out)
    for file in (job.result_file(name) for job in jobs.values() if job.run is None for name in job.wanted):
        result = result_in(file)
        table.add_row(f"{file.stem} branching", "", _shown(result.f1 if result else None, 2))
    for average in (job for job in jobs.values() if job.run and job.run.members):
        results = [_result(jobs[name]) for name in average.others]
        mean = _result(average)
        agreement = mean.member_agreement
        # Without gold trees there is no S-F1.
        f1 = spread(None if result.evaluation is None else result.f1 for result in results)
        deviation = f" ± {f1.std:.2f}" if f1 and f1.std is not None else ""
        perplexities = [result.dev_perplexity for result in results]
        known = [each for each in perplexities if each is not None]
        table.add_row(
            escape(mean.model),
            str(len(results)),
            _shown(f1.mean if f1 else None, 2) + deviation,
            _shown(None if mean.evaluation is None else mean.f1, 2),
            _shown(_mean_agreement(agreement) if agreement else None, 1),
            _shown(fmean(known) if len(known) == len(perplexities) else None, 1),
            _shown(sum(epoch.seconds for result in results for epoch in result.epochs) / 60, 1),
        )
    return table


def _shown(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _result(job: Job) -> Result:
    return read_record(job.result_file(job.wanted[0]), Result)


def _mean_agreement(found: Agreement) -> float | None:
    """The mean S-F1 between two members; None for a single member."""
    names = found.columns[:-3]
    pairs = [found.sentence_f1[a][place] for a in names for place, b in enumerate(names) if a != b]
    return fmean(pairs) if pairs else None
