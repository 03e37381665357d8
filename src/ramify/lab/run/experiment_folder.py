"""The folder of an experiment: its plan, its runs and its results."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ramify.errors import RamifyError
from ramify.lab.plan.experiment import FORMAT, RUNS, Plan, Run
from ramify.storage.files import contents, remove_unfinished, write_json
from ramify.training.settings import FREE_TO_CHANGE, Settings, load_settings

PLAN, FAILED = "experiment.json", "failed.json"
EARLIER_DATA = "earlier_data"
"""Where a plan keeps the data sets of earlier plans in this folder that it lacks."""
BASELINES, RESULTS = "baselines", "results"
CONFIG, METRICS = "config.json", "metrics.jsonl"
LOCK_PATIENCE = 10.0
"""Seconds in which the processes of an experiment that was killed save their runs and end."""
SAME_RUN = frozenset(["device", "checkpoint_minutes"])
"""Settings that make no other run. More epochs would: the results of a table must be of the same training."""
assert SAME_RUN < FREE_TO_CHANGE


def run_folder(out: Path, run: Run) -> Path:
    """Of one run, a model folder like any other."""
    return out / RUNS / run.name


def result_file(folder: Path, decoder: str) -> Path:
    """Where a run's scores by one decoder are."""
    return folder / RESULTS / f"{decoder}.json"


def baseline_file(out: Path, data: str, name: str) -> Path:
    """Where the scores of a baseline are."""
    return out / BASELINES / data / f"{name}.json"


def read_json(path: Path) -> dict[str, Any] | None:
    """A file of results or the plan; None where there is none that can be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) and content.get("format") == FORMAT else None


def check_folder(out: Path) -> None:
    """Refuse a folder that is neither new nor empty nor an experiment's."""
    try:
        if out.exists() and not out.is_dir():
            raise RamifyError(f"{out}: is a file; give the name of a folder.")
        inside = contents(out, (PLAN,))
    except OSError as error:
        raise RamifyError(f"{out}: cannot be looked into ({error.strerror}); check its permissions.") from error
    if inside and PLAN not in inside:
        raise RamifyError(f"{out}: is not empty and holds no experiment; give another folder.")


def check_same(out: Path, plan: Plan) -> None:
    """Refuse to go on with another experiment, with other data, or with runs of other settings."""
    if (out / PLAN).exists():
        before = read_json(out / PLAN)
        if before is None:
            raise RamifyError(f"{out / PLAN}: cannot be read; begin another experiment with another --out.")
        if before.get("name") != plan.name:
            raise RamifyError(f"{out}: holds the experiment {before.get('name')!r}; give another --out.")
        known = _known_data(before)
        for name, data in plan.data.items():
            then = known.get(name)
            if isinstance(then, dict) and then.get("sha256") != data.checksums:
                raise RamifyError(f"{out}: was begun with other files of {name}; give the same ones, or another --out.")
            if isinstance(then, dict) and (words := then.get("words", data.words)) != data.words:
                raise RamifyError(
                    f"{out}: was begun with words = {words!r} for {name}, not {data.words!r}; set it back, or give "
                    "another --out."
                )
    for run in plan.runs.values():
        _check_same_run(run_folder(out, run), run, plan.threads)


def write_plan(out: Path, plan: Plan) -> None:
    """The plan, with what is known of the data of earlier plans: their results are still in the folder."""
    known = _known_data(read_json(out / PLAN) or {})
    earlier = {name: record for name, record in known.items() if name not in plan.data}
    write_json(out / PLAN, plan.as_record() | ({EARLIER_DATA: earlier} if earlier else {}))


def _known_data(plan: dict[str, Any]) -> dict[str, Any]:
    """The records of all data sets that this plan or one before it had."""
    both = (plan.get(key) for key in (EARLIER_DATA, "data"))
    return {name: record for records in both if isinstance(records, dict) for name, record in records.items()}


def _check_same_run(folder: Path, run: Run, threads: int) -> None:
    if run.settings is None:
        return
    if not os.path.exists(folder / CONFIG):  # noqa: PTH110, unlike a Path's it takes a folder that cannot be looked at
        return
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        before, then = load_settings(None, dict(config["settings"])), config["threads"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError, RamifyError) as error:
        raise RamifyError(f"{folder}: holds no run that can be gone on with; give another --out.") from error
    for name, value in _deciding(run.settings).items():
        if _deciding(before)[name] != value:
            raise RamifyError(
                f"{folder}: holds a run with {name} {_deciding(before)[name]}, not {value}; name this model otherwise, "
                "give another --out, or remove that folder if it is of no use."
            )
    if then != threads:
        raise RamifyError(
            f"{folder}: holds a run with {then} threads, not {threads}; set threads = {then}, or give another --out."
        )


def _deciding(settings: Settings) -> dict[str, Any]:
    return {name: value for name, value in asdict(settings).items() if name not in SAME_RUN}


def epochs_done(run: Path) -> list[Any]:
    """The metrics of every epoch that a run has behind it."""
    try:
        return [json.loads(line) for line in (run / METRICS).read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError, RecursionError):
        return []


def missing_decoders(out: Path, run: Run) -> list[str]:
    """Those whose results are yet to be made; a run without any is finished."""
    folder = run_folder(out, run)
    return [decoder for decoder in run.decoders if not _holds_result(result_file(folder, decoder))]


def missing_baselines(out: Path, plan: Plan, data: str) -> list[str]:
    """Those whose results are yet to be made."""
    return [name for name in plan.baselines if not _holds_result(baseline_file(out, data, name))]


def _holds_result(path: Path) -> bool:
    return isinstance((read_json(path) or {}).get("evaluation"), dict)


def forget_failure(folder: Path) -> None:
    """Remove what an earlier failure left, so that the run can be tried again."""
    (folder / FAILED).unlink(missing_ok=True)
    remove_unfinished(folder, (FAILED,))


def tell_failure(folder: Path, error: str, details: str) -> None:
    """Keep a failure beside what the run left; where nothing can be written, that may be the failure itself."""
    with suppress(OSError, RamifyError):
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / FAILED, {"format": FORMAT, "error": error, "details": details})
