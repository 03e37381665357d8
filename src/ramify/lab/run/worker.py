"""The process that does one job: it trains and scores a run, or scores an average or baselines.

Its only argument is the job, in JSON. Standard input is connected to the process that started it: when that process
ends, for whatever reason, the connection breaks, and this one saves its run and ends too. Standard output takes one
event per line.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, Any, NoReturn

from ramify.errors import RamifyError, RamifyWarning, Stopped
from ramify.lab.results.schema import Result, Run, as_record
from ramify.lab.run.experiment_folder import forget_failure
from ramify.lab.run.jobs import Job
from ramify.runtime.memory import keep_freed_memory, peak_memory
from ramify.storage.files import write_json

if TYPE_CHECKING:
    from ramify.parser.tree_parser import TreeParser

TRAINING_FILE = "training.json"
"""What the metrics of a run lack, kept for the next process that resumes it."""
SECONDS_BETWEEN_REPORTS = 0.5
"""Seconds between two notices of progress."""

Report = Callable[..., None]


def main() -> NoReturn:
    """Do the job and end the process."""
    # Ctrl-C reaches every process of a terminal; only the process that started this one reacts to it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, _stop)
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as events:
        os.dup2(2, 1)  # whatever else is printed is not an event
        threading.Thread(target=_end_with_parent, daemon=True).start()
        keep_freed_memory()
        code = work(Job.from_json(sys.argv[1]), lambda event, **facts: _send(events, {"event": event, **facts}))
    sys.exit(code)


def _stop(number: int, _: FrameType | None) -> NoReturn:
    raise Stopped(number)


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _send(events: IO[str], event: dict[str, Any]) -> None:
    try:
        events.write(json.dumps(event) + "\n")
        events.flush()
    except OSError:
        pass  # the parent has ended, and this process will too


def work(job: Job, report: Report) -> int:
    """Do the job and return the exit code; errors are reported, not raised."""
    warnings.simplefilter("default")

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if issubclass(category, RamifyWarning):
            report("note", text=str(message))

    warnings.showwarning = show
    try:
        forget_failure(job.folder)
        if job.run is None:
            _score_baselines(job, report)
        elif job.run.members:
            _score_average(job, job.run, report)
        else:
            _train_and_score(job, job.run, report)
    except Stopped as stop:
        return stop.exit_code
    except Exception as error:
        known = isinstance(error, (RamifyError, OSError))
        sentence = _sentence(error) if known else f"{type(error).__name__}: {error}"
        report("failed", error=sentence, details="" if known else traceback.format_exc())
        return 1
    return 0


def _sentence(error: Exception) -> str:
    """What went wrong, without the numbers of the operating system."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}; check the path, its permissions and the space there."
    return str(error)


def _score_baselines(job: Job, report: Report) -> None:
    from ramify.lab.run.scoring import baseline_result, gold_of

    report("state", state="scoring")
    gold = gold_of(job.data)
    for name in job.wanted:
        _write(job.result_file(name), baseline_result(name, job.data, gold))


def _train_and_score(job: Job, run: Run, report: Report) -> None:
    import torch

    from ramify.lab.run.scoring import named_members, training_record
    from ramify.runtime.compilation import on_compilation
    from ramify.training import train

    torch.set_num_threads(job.threads)
    on_compilation(lambda notice: report("note", text=notice))
    folder = job.folder
    report("state", state="training")

    def on_epoch(record: dict[str, Any]) -> None:
        write_json(folder / TRAINING_FILE, {"peak_memory_mb": round(max(peak_memory(), _peak(folder) or 0.0), 1)})
        report("epoch", record=record)

    train_set, settings = job.data.split("train"), run.settings
    assert train_set is not None
    assert settings is not None
    options = {name: value for name, value in settings.items() if value is not None}
    parser = train(
        train_set, folder, dev=job.data.split("dev"), teachers=named_members(job.others), resume=True,
        on_epoch=on_epoch, on_progress=_progress(report, settings["epochs"]), **options,
    )  # fmt: skip
    training = training_record(folder, job.threads, _peak(folder))
    _score(job, run, parser, training, report)


def _score_average(job: Job, run: Run, report: Report) -> None:
    import torch

    from ramify.lab.run.scoring import averaged, sentences_of

    torch.set_num_threads(job.threads)
    report("state", state="scoring")
    ensemble = averaged(run, job.others, job.data)
    about: dict[str, Any] = {"members": run.members}
    if not job.data.is_scored:
        sentences = sentences_of(job.data, "dev", next(iter(job.others.values())))
        about["agreement"] = ensemble.agreement(sentences).as_record()
    _score(job, run, ensemble, about, report)


def _score(job: Job, run: Run, parser: TreeParser, about: dict[str, Any], report: Report) -> None:
    """By every decoder whose result is missing."""
    from ramify.lab.run.scoring import gold_of, model_result

    gold = gold_of(job.data, parser.word_rule) if job.data.is_scored else None
    for decoder in job.wanted:
        report("state", state=f"scoring {decoder}")
        _write(job.result_file(decoder), model_result(parser, gold, job.data, run, decoder, about))


def _write(path: Path, result: Result) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, as_record(result))


def _progress(report: Report, epochs: int) -> Callable[[Any], None]:
    """Reports where training is, and how long it will take at its present pace, twice a second."""
    reported = 0.0

    def on_progress(now: Any) -> None:
        nonlocal reported
        if time.monotonic() - reported >= SECONDS_BETWEEN_REPORTS:
            reported = time.monotonic()
            left = (epochs - now.epoch + 1) * now.sentences - now.sentences_done
            rate = now.sentences_per_second
            report("progress", epoch=now.epoch, epochs=epochs, seconds_left=left / rate if rate else None)

    return on_progress


def _peak(folder: Path) -> float | None:
    try:
        return float(json.loads((folder / TRAINING_FILE).read_text(encoding="utf-8"))["peak_memory_mb"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
