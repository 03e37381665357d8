"""Reads the folder of an experiment. Nothing in it is trusted: what cannot be used is told, and the rest is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ramify.errors import RamifyError
from ramify.lab.results.collection import Group, Problem, Result, Runs
from ramify.lab.results.plan_record import PLAN, Plan, no_plan, plan_of
from ramify.lab.results.schema import BadRecordError, load, path_name, result_of, text
from ramify.lab.results.unfinished import CONFIG, FAILED, is_kind, run_folder, unfinished


def read_runs(folder: Path) -> Runs:
    """The results below `folder`, by the plan of its experiment or, without one, whatever is found."""
    if not folder.is_dir():
        raise RamifyError(f"{folder}: is no folder; give the one that `ramify experiment` wrote into.")
    problems: list[Problem] = []
    plan = _plan(folder, problems)
    results: list[Result] = []
    for path in _results_files(folder, plan):
        place = path.relative_to(folder)
        try:
            results.append(result_of(load(path), place))
        except BadRecordError as error:
            problems.append(Problem("broken", path_name(place), str(error)))
    results = _once(results, problems)
    problems += unfinished(folder, plan, results, {problem.where for problem in problems})
    if not results and not problems:
        raise RamifyError(f"{folder}: there are no results in it; run `ramify experiment` first.")
    groups = [group for group in (*plan.groups, *_unplanned(plan.groups, results)) if group.models]
    title = plan.title or text(folder.resolve().name) or "Runs"
    return Runs(title, groups, results, sorted(problems, key=lambda problem: (problem.what, problem.where)))


def _plan(folder: Path, problems: list[Problem]) -> Plan:
    path = folder / PLAN
    if not path.exists():
        return no_plan()
    try:
        return plan_of(load(path))
    except BadRecordError as error:
        problems.append(Problem("broken", PLAN, f"{error}; the folder is searched instead"))
        return no_plan()


def _results_files(folder: Path, plan: Plan) -> Iterator[Path]:
    """By their places, in an order that a person would give them: seed-10 after seed-9."""
    found = {path for path in folder.rglob("baselines/*/*.json") if not (path.parent / CONFIG).exists()}  # of no model
    found.update(folder.rglob("results/*.json"))
    # The runs may be on another disk, behind a link that a search does not follow.
    for run in filter(None, (run_folder(folder, place) for place in plan.runs)):
        found.update((run / "results").glob("*.json") if is_kind(run / "results", Path.is_dir) else ())
    return iter(sorted((p for p in found if not p.name.startswith(".") and p.name != FAILED), key=_natural))


def _natural(path: Path) -> list[tuple[int, str]]:
    parts = re.split(r"([0-9]+)", str(path))
    return [(int(part[:9]), "") if part.isdecimal() else (-1, part) for part in parts if part]


def _once(results: list[Result], problems: list[Problem]) -> list[Result]:
    """One result of each system, seed and decoder; the second of a pair would count twice."""
    seen: dict[tuple[object, ...], Result] = {}
    for result in results:
        key = (result.data, result.model, result.seed, result.decoder, result.is_baseline)
        if key in seen:
            problems.append(Problem("broken", result.path, f"tells of the same run as {seen[key].path}; left out"))
        else:
            seen[key] = result
    return list(seen.values())


def _unplanned(groups: list[Group], results: list[Result]) -> Iterator[Group]:
    """What no group of the plan has: all models, where there is no plan."""
    planned = {(data, model) for group in groups for data, models in group.models.items() for model in models}
    others: dict[str, list[str]] = {}
    for result in results:
        models = others.setdefault(result.data, [])
        if not result.is_baseline and (result.data, result.model) not in planned and result.model not in models:
            models.append(result.model)
    shown = {data for group in groups for data in group.models}
    others = {data: models for data, models in others.items() if models or data not in shown}
    if others:
        yield Group("others", "Other runs" if groups else "All runs", others)
