"""The folder of an experiment while it is run: what it holds already, and whether it is the same experiment."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from ramify.errors import RamifyError
from ramify.lab.plan.experiment import Plan
from ramify.lab.results.schema import (
    CONFIG,
    FAILED,
    FORMAT,
    METRICS,
    PLAN,
    Epoch,
    Failure,
    PlanRecord,
    RecordError,
    Result,
    Run,
    as_record,
    read_record,
)
from ramify.storage.files import folder_contents, remove_unfinished, write_json
from ramify.training.settings import FREE_TO_CHANGE, recorded_settings

LOCK_PATIENCE = 10.0
"""Seconds in which the processes of an experiment that was killed save their runs and end."""
FREE_SETTINGS = frozenset(["device", "checkpoint_minutes"])
"""Settings that may differ in one run. More epochs may not: the results of a table must be of the same training."""
assert FREE_SETTINGS < FREE_TO_CHANGE


def check_folder(out: Path) -> None:
    """Refuse a folder that is neither new nor empty nor an experiment's."""
    try:
        if out.exists() and not out.is_dir():
            raise RamifyError(f"{out}: is a file; give the name of a folder.")
        inside = folder_contents(out, (PLAN,))
    except OSError as error:
        raise RamifyError(f"{out}: cannot be read ({error.strerror}); check its permissions.") from error
    if inside and PLAN not in inside:
        raise RamifyError(f"{out}: is not empty and holds no experiment; give another folder.")


def check_same(out: Path, plan: Plan) -> None:
    """Refuse to continue another experiment, other data, or runs of other settings."""
    earlier = _earlier_plan(out)
    if earlier is not None and earlier.name != plan.name:
        raise RamifyError(f"{out}: holds the experiment {earlier.name!r}; give another --out.")
    known = earlier.known_data if earlier else {}
    for name, data in plan.data.items():
        if (then := known.get(name)) is None:
            continue
        if then.sha256 != data.checksums:
            raise RamifyError(f"{out}: was begun with other files of {name}; give the same ones, or another --out.")
        for setting, before, now in (("words", then.words, data.words), ("split", then.split, data.scored)):
            if before != now:
                raise RamifyError(
                    f"{out}: was begun with {setting} = {before!r} for {name}, not {now!r}; set it back, or give "
                    "another --out."
                )
    for run in plan.runs.values():
        _check_same_run(out / run.path, run, plan.threads)


def write_plan(out: Path, plan: Plan) -> None:
    """Write the plan, with the data of earlier plans, whose results are still in the folder."""
    before = _earlier_plan(out)
    earlier = {name: data for name, data in before.known_data.items() if name not in plan.data} if before else {}
    write_json(out / PLAN, as_record(msgspec.structs.replace(plan.as_record(), earlier_data=earlier)))


def _earlier_plan(out: Path) -> PlanRecord | None:
    if not (out / PLAN).exists():
        return None
    try:
        return read_record(out / PLAN, PlanRecord)
    except RecordError as error:
        raise RamifyError(f"{out / PLAN}: {error.why}; begin another experiment with another --out.") from error


def _check_same_run(folder: Path, run: Run, threads: int) -> None:
    # `os.path.exists`, unlike a Path's, accepts a folder that cannot be read.
    if run.settings is None or not os.path.exists(folder / CONFIG):  # noqa: PTH110
        return
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        before, then = recorded_settings(dict(config["settings"])), config["threads"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError, RamifyError) as error:
        raise RamifyError(f"{folder}: holds no run that can be resumed; give another --out.") from error
    for name in run.settings.keys() - FREE_SETTINGS:
        value, earlier = run.settings[name], getattr(before, name)
        if earlier != value:
            raise RamifyError(
                f"{folder}: holds a run with {name} {earlier}, not {value}; give this model another name, give another "
                "--out, or remove that folder if you do not need it."
            )
    if then != threads:
        raise RamifyError(
            f"{folder}: holds a run with {then} threads, not {threads}; set threads = {then}, or give another --out."
        )


def epochs_done(run: Path) -> list[Epoch]:
    """The epochs that a run has finished; none if they cannot be read."""
    try:
        return msgspec.json.Decoder(Epoch).decode_lines((run / METRICS).read_bytes())
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []


def result_in(path: Path) -> Result | None:
    """The result in a file; None where there is none that can be read."""
    with suppress(RecordError):
        return read_record(path, Result)
    return None


def forget_failure(folder: Path) -> None:
    """Remove what an earlier failure left, so that the run can be tried again."""
    (folder / FAILED).unlink(missing_ok=True)
    remove_unfinished(folder, (FAILED,))


def save_failure(folder: Path, error: str, details: str) -> None:
    """Save why a run failed, unless nothing can be written, which may be the reason."""
    with suppress(OSError, RamifyError):
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / FAILED, as_record(Failure(FORMAT, error, details)))
