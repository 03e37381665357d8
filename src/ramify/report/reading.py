"""Reads the folder of an experiment. Nothing in it is trusted: what cannot be used is told, and the rest is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ramify.errors import RamifyError
from ramify.report.record import BadRecordError, result_of, text
from ramify.report.results import Group, Problem, Result, Runs

PLAN = "experiment.json"
LARGEST_FILE = 64 * 2**20
OTHERS = "others"


def read_runs(folder: Path) -> Runs:
    """The results below `folder`, by the plan of its experiment or, without one, whatever is found."""
    if not folder.is_dir():
        raise RamifyError(f"{folder}: is no folder; give the one that `ramify experiment` wrote into.")
    problems: list[Problem] = []
    plan = _plan(folder, problems)
    results: list[Result] = []
    for path in _results_files(folder):
        place = path.relative_to(folder)
        try:
            results.append(result_of(_load(path), place))
        except BadRecordError as error:
            problems.append(Problem("broken", _shown(place), str(error)))
    results = _once(results, problems)
    groups = _planned_groups(plan)
    _add_unplanned(groups, results)
    problems += _unfinished(folder, plan, results)
    if not results and not problems:
        raise RamifyError(f"{folder}: there are no results in it; run `ramify experiment` first.")
    title = text(plan.get("title") or plan.get("name") or folder.resolve().name)
    return Runs(title or "runs", [group for group in groups if group.models], results, sorted(problems, key=str))


def _load(path: Path) -> Any:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise BadRecordError(f"is larger than {LARGEST_FILE >> 20} MB")
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadRecordError(f"cannot be read ({error.strerror})") from error
    except RecursionError as error:
        raise BadRecordError("is nested too deeply") from error
    except ValueError as error:
        raise BadRecordError(f"is no JSON ({text(error)})") from error


def _plan(folder: Path, problems: list[Problem]) -> dict[str, Any]:
    path = folder / PLAN
    if not path.exists():
        return {}
    try:
        plan = _load(path)
        if not isinstance(plan, dict):
            raise BadRecordError("is no plan of an experiment")
    except BadRecordError as error:
        problems.append(Problem("broken", PLAN, f"{error}; the folder is searched instead"))
        return {}
    return plan


def _results_files(folder: Path) -> Iterator[Path]:
    """By their places, in an order that a person would give them: seed-10 after seed-9."""
    found = {*folder.rglob("results/*.json"), *folder.rglob("baselines/*/*.json")}
    return iter(sorted((path for path in found if not path.name.startswith(".")), key=_natural))


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part[:9]), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", str(path)) if part]


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


def _planned_groups(plan: dict[str, Any]) -> list[Group]:
    groups: list[Group] = []
    for entry in _dicts(plan.get("groups")):
        models: dict[str, list[str]] = {}
        for run in _dicts(entry.get("runs")):
            names = models.setdefault(text(run.get("data")), [])
            if text(run.get("model")) not in names:
                names.append(text(run.get("model")))
        name = text(entry.get("name")) or f"group {len(groups) + 1}"
        groups.append(Group(name, text(entry.get("title")) or name, models))
    return groups


def _add_unplanned(groups: list[Group], results: list[Result]) -> None:
    planned = {(data, model) for group in groups for data, models in group.models.items() for model in models}
    others: dict[str, list[str]] = {}
    for result in results:
        if not result.is_baseline and (result.data, result.model) not in planned:
            names = others.setdefault(result.data, [])
            if result.model not in names:
                names.append(result.model)
    known = {data for group in groups for data in group.models} | set(others)
    for result in results:
        if result.data not in known:
            others.setdefault(result.data, [])
    if others:
        groups.append(Group(OTHERS, "Other runs" if groups else "All runs", others))


def _unfinished(folder: Path, plan: dict[str, Any], results: list[Result]) -> Iterator[Problem]:
    """Planned runs without results, and folders of runs that say that they failed or stopped."""
    done: dict[str, set[str]] = {}
    for result in results:
        done.setdefault(str(Path(result.path).parent.parent), set()).add(result.decoder)
    told = set()
    for group in _dicts(plan.get("groups")):
        for run in _dicts(group.get("runs")):
            place = _place(folder, run)
            decoders = [text(name) for name in run.get("decoders") or [] if isinstance(name, str)]
            if place is None or place in told:
                continue
            told.add(place)
            lacking = [name for name in decoders if name not in done.get(place, set())]
            if place not in done or lacking:
                yield _state(folder, place, lacking if place in done else [])
    for path in (*folder.rglob("failed.json"), *folder.rglob("metrics.jsonl")):
        place = _shown(path.parent.relative_to(folder))
        if place not in done and place not in told:
            told.add(place)
            yield _state(folder, place, [])


def _place(folder: Path, run: dict[str, Any]) -> str | None:
    """Where a planned run lies below the folder; None if it would lie elsewhere."""
    given = run.get("path")
    parts = ("runs", run.get("data"), run.get("model"), f"seed-{run.get('seed')}")
    path = Path(given) if isinstance(given, str) else Path(*map(str, parts))
    try:
        return _shown((folder / path).resolve().relative_to(folder.resolve()))
    except (OSError, ValueError):
        return None


def _state(folder: Path, place: str, lacking: list[str]) -> Problem:
    run = folder / place
    if (run / "failed.json").is_file():
        return Problem("failed", place, _error(run / "failed.json"))
    if lacking:
        return Problem("half-finished", place, f"no results of the decoder {', '.join(lacking)} yet")
    if not run.is_dir():
        return Problem("missing", place, "was not begun")
    epochs = _epochs_done(run / "metrics.jsonl")
    trained = f"after {epochs} epoch{'s' * (epochs != 1)} of training" if epochs else "before the end of an epoch"
    return Problem("half-finished", place, f"stopped {trained}, without results")


def _error(path: Path) -> str:
    try:
        record = _load(path)
    except BadRecordError as error:
        return f"for a reason that is lost: {path.name} {error}"
    reason = record.get("error") if isinstance(record, dict) else None
    return text(reason, 300) or "for a reason that was not written down"


def _epochs_done(metrics: Path) -> int:
    try:
        return 0 if metrics.stat().st_size > LARGEST_FILE else metrics.read_bytes().count(b"\n")
    except OSError:
        return 0


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _shown(path: Path) -> str:
    return text(path.as_posix(), 200)
