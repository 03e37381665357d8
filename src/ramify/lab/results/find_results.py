"""Collects the results in the folder of an experiment, finished or not; a file that cannot be used is a problem."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from ramify.errors import RamifyError
from ramify.lab.results.collection import Collection, Problem, TableGroup
from ramify.lab.results.result_paths import BASELINES, CONFIG, FAILED, METRICS, PLAN, RESULTS
from ramify.lab.results.schema import Failure, PlanRecord, RecordError, Result, one_line, read_record, read_result


def collect_results(folder: Path) -> Collection:
    """The results below `folder`, by the plan of its experiment or, without one, whatever is found."""
    if not folder.is_dir():
        raise RamifyError(f"{folder}: is not a folder; give the one that `ramify experiment` wrote into.")
    problems: list[Problem] = []
    plan = _plan(folder, problems)
    results: dict[tuple[object, ...], Result] = {}
    for path in _result_files(folder, plan):
        try:
            result = read_result(path, folder)
        except RecordError as error:
            problems.append(Problem("broken", one_line(path.relative_to(folder).as_posix()), error.why))
            continue
        first = results.setdefault((result.data, result.model, result.seed, result.decoder, result.kind), result)
        if first is not result:  # it would count twice
            problems.append(Problem("broken", result.path, f"is of the same run as {first.path}; left out"))
    found = list(results.values())
    problems += _unfinished(folder, plan, found, {problem.where for problem in problems})
    if not found and not problems:
        raise RamifyError(f"{folder}: has no results; run `ramify experiment` first.")
    groups = [TableGroup.of(group) for group in plan.groups] if plan else []
    groups += _unplanned(groups, found)
    title = (plan.title if plan else folder.resolve().name) or "Runs"
    problems.sort(key=lambda problem: (problem.what, problem.where))
    return Collection(title, [group for group in groups if group.models], found, problems)


def _plan(folder: Path, problems: list[Problem]) -> PlanRecord | None:
    if not (folder / PLAN).exists():
        return None
    try:
        return read_record(folder / PLAN, PlanRecord)
    except RecordError as error:
        problems.append(Problem("broken", PLAN, f"{error.why}; the folder is searched instead"))
        return None


def _result_files(folder: Path, plan: PlanRecord | None) -> list[Path]:
    """In an order that a person would give them: seed-10 after seed-9."""
    found = {path for path in folder.rglob(f"{BASELINES}/*/*.json") if not (path.parent / CONFIG).exists()}
    found.update(folder.rglob(f"{RESULTS}/*.json"))
    for run in plan.runs if plan else ():  # which may be on another disk, behind a link that a search does not follow
        place = folder / run.path / RESULTS
        found.update(place.glob("*.json") if _is(place, Path.is_dir) else ())
    return sorted((path for path in found if not path.name.startswith(".") and path.name != FAILED), key=_natural)


def _natural(path: Path) -> list[tuple[int, str]]:
    parts = re.split(r"([0-9]+)", str(path))
    return [(int(part[:9]), "") if part.isdecimal() else (-1, part) for part in parts if part]


def _unplanned(groups: list[TableGroup], results: list[Result]) -> Iterator[TableGroup]:
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
        yield TableGroup("others", "Other runs" if groups else "All runs", others)


def _unfinished(folder: Path, plan: PlanRecord | None, results: list[Result], broken: set[str]) -> Iterator[Problem]:
    """Planned runs and baselines without results, and folders of runs that failed or stopped."""
    present = {result.path for result in results} | broken
    started = {str(Path(path).parent.parent) for path in present}
    named: set[str] = set()
    for run in plan.runs if plan else ():
        named.add(run.path)
        lacking = [decoder for decoder in run.decoders if f"{run.path}/{RESULTS}/{decoder}.json" not in present]
        if run.path not in started or lacking:
            yield _state(folder / run.path, run.path, lacking if run.path in started else [])
    failed = {path.parent.name for path in folder.glob(f"{BASELINES}/*/{FAILED}")}  # which is reported below
    for data in plan.data if plan else ():
        for file in (f"{BASELINES}/{data}/{name}.json" for name in plan.baselines) if plan else ():
            if file not in present and data not in failed:
                yield Problem("missing", file, "was not scored")
    for name in (FAILED, METRICS):
        for path in sorted(folder.rglob(name)):
            where = one_line(path.parent.relative_to(folder).as_posix())
            if where not in started and where not in named:
                named.add(where)
                yield _state(path.parent, where, [])


def _state(run: Path, where: str, lacking: list[str]) -> Problem:
    if _is(run / FAILED, Path.is_file):
        return Problem("failed", where, _reason(run / FAILED))
    if lacking:
        return Problem("half-finished", where, f"no results by {', '.join(lacking)} yet")
    if not _is(run, Path.is_dir):
        return Problem("missing", where, "was not begun")
    epochs = _epochs_done(run / METRICS)
    trained = f"after {epochs} epoch{'s' * (epochs != 1)} of training" if epochs else "before the end of an epoch"
    return Problem("half-finished", where, f"stopped {trained}, or still runs: no results yet")


def _is(path: Path, kind: Callable[[Path], bool]) -> bool:
    """`Path.is_file` or `Path.is_dir`, also in a folder without read permission."""
    try:
        return kind(path)
    except OSError:
        return False


def _reason(path: Path) -> str:
    try:
        return read_record(path, Failure).error
    except RecordError as error:
        return f"for an unknown reason: {path.name} {error.why}"


def _epochs_done(metrics: Path) -> int:
    try:
        return metrics.read_bytes().count(b"\n") if metrics.is_file() else 0
    except OSError:
        return 0
