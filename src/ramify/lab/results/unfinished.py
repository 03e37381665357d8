"""Which runs have no results, or not all, and what is known of the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ramify.lab.results.collection import Problem, Result
from ramify.lab.results.plan_record import PLAN, Plan
from ramify.lab.results.schema import LARGEST_FILE, BadRecordError, load, path_name, text

CONFIG, FAILED, METRICS = "config.json", "failed.json", "metrics.jsonl"


def unfinished(folder: Path, plan: Plan, results: list[Result], broken: set[str]) -> Iterator[Problem]:
    """Planned runs and baselines without results, and folders of runs that say that they failed or stopped.

    `broken` are results files that were told already.
    """
    there = {result.path for result in results} | broken
    begun = {str(Path(path).parent.parent) for path in there}
    told: set[str] = set()
    for place, decoders in plan.runs.items():
        path = run_folder(folder, place)
        if path is None:
            yield Problem("broken", PLAN, f"has a run outside of its folder: {text(place)}")
            continue
        name = path_name(path.relative_to(folder))
        lacking = [decoder for decoder in decoders if f"{name}/results/{decoder}.json" not in there]
        told.add(name)
        if name not in begun or lacking:
            yield _state(path, name, lacking if name in begun else [])
    baselines = {(result.data, result.model) for result in results if result.is_baseline}
    failed = {path.parent.name for path in folder.glob(f"baselines/*/{FAILED}")}  # which is told below
    for data, baseline in plan.baselines:
        file = f"baselines/{data}/{baseline}.json"
        if (data, baseline) not in baselines and file not in broken and data not in failed:
            yield Problem("missing", file, "was not counted")
    for file in (FAILED, METRICS):
        for found in sorted(folder.rglob(file)):
            name = path_name(found.parent.relative_to(folder))
            if name not in begun and name not in told:
                told.add(name)
                yield _state(found.parent, name, [])


def run_folder(folder: Path, place: str) -> Path | None:
    """Where a planned run is; None if the plan leads out of the folder."""
    relative = Path(place)
    return None if relative.is_absolute() or ".." in relative.parts or "\0" in place else folder / relative


def _state(run: Path, name: str, lacking: list[str]) -> Problem:
    if is_kind(run / FAILED, Path.is_file):
        return Problem("failed", name, _reason(run / FAILED))
    if lacking:
        return Problem("half-finished", name, f"no results by {', '.join(lacking)} yet")
    if not is_kind(run, Path.is_dir):
        return Problem("missing", name, "was not begun")
    epochs = _epochs_done(run / METRICS)
    trained = f"after {epochs} epoch{'s' * (epochs != 1)} of training" if epochs else "before the end of an epoch"
    return Problem("half-finished", name, f"stopped {trained}, or is still at work: no results yet")


def is_kind(path: Path, kind: Callable[[Path], bool]) -> bool:
    """`Path.is_file` or `Path.is_dir`, whatever the path is."""
    try:
        return kind(path)
    except OSError:  # in a folder that nobody may read, or with a name that no folder can have
        return False


def _reason(path: Path) -> str:
    try:
        record = load(path)
    except BadRecordError as error:
        return f"for a reason that is lost: {path.name} {error}"
    reason = record.get("error") if isinstance(record, dict) else None
    return text(reason, 300) or "for a reason that was not written down"


def _epochs_done(metrics: Path) -> int:
    try:
        readable = metrics.is_file() and metrics.stat().st_size <= LARGEST_FILE
        return metrics.read_bytes().count(b"\n") if readable else 0
    except OSError:
        return 0
