"""The process in which one run is trained and scored, or the baselines of one data set are.

Its only argument is the job, in JSON. Standard input is the line to the process that started it: when that one ends,
however it does, the line breaks, and this one saves its run and ends as well. Standard output takes an event a line.
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
from typing import IO, Any, NoReturn

from ramify.errors import RamifyError, RamifyWarning, Stopped
from ramify.lab.plan.experiment import DataSet, Run
from ramify.lab.run.experiment_folder import forget_failure, result_file
from ramify.runtime.memory import keep_freed_memory, peak_memory
from ramify.storage.files import write_json
from ramify.training.settings import load_settings

TRAINING = "training.json"
"""What the metrics of a run do not tell, kept from one process of the run to the next."""
EVERY = 0.5
"""Seconds between two notices of progress."""

Tell = Callable[..., None]


def main() -> NoReturn:
    """Do the job and end the process."""
    # Ctrl-C reaches every process of a terminal; the one that started this one passes on what is to be done.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, _stop)
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as events:
        os.dup2(2, 1)  # whatever else is printed is no event
        threading.Thread(target=_end_when_alone, daemon=True).start()
        keep_freed_memory()
        code = work(json.loads(sys.argv[1]), lambda event, **facts: _send(events, {"event": event, **facts}))
    sys.exit(code)


def _stop(number: int, _: FrameType | None) -> NoReturn:
    raise Stopped(number)


def _end_when_alone() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _send(events: IO[str], event: dict[str, Any]) -> None:
    try:
        events.write(json.dumps(event) + "\n")
        events.flush()
    except OSError:
        pass  # nobody listens any more, and the end is near


def work(job: dict[str, Any], tell: Tell) -> int:
    """The exit code of a job; why it failed is told, not raised."""
    warnings.simplefilter("default")

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if issubclass(category, RamifyWarning):
            tell("note", text=str(message))

    warnings.showwarning = show
    try:
        _WORK[job["kind"]](job, tell)
    except Stopped as stop:
        return stop.exit_code
    except Exception as error:
        known = isinstance(error, (RamifyError, OSError))
        sentence = _sentence(error) if known else f"{type(error).__name__}: {error}"
        tell("failed", error=sentence, details="" if known else traceback.format_exc())
        return 1
    return 0


def _sentence(error: Exception) -> str:
    """What went wrong, without the numbers of the operating system."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}; check the path, its permissions and the space there."
    return str(error)


def _score_baselines(job: dict[str, Any], tell: Tell) -> None:
    from ramify.lab.run.scoring import baseline_result, gold_of

    data, folder = DataSet.from_job(job["data"]), Path(job["folder"])
    forget_failure(folder)
    tell("state", state="scoring")
    gold = gold_of(data)
    folder.mkdir(parents=True, exist_ok=True)
    for name in job["baselines"]:
        write_json(folder / f"{name}.json", baseline_result(name, data.name, gold))


def _train_and_score(job: dict[str, Any], tell: Tell) -> None:
    import torch

    from ramify.lab.run.scoring import gold_of, model_result, training_record
    from ramify.runtime.compilation import tell_of_compilation
    from ramify.training import train

    torch.set_num_threads(job["threads"])
    tell_of_compilation(lambda notice: tell("note", text=notice))
    data, folder, settings = DataSet.from_job(job["data"]), Path(job["folder"]), load_settings(None, job["settings"])
    run = Run(data.name, job["model"], settings, tuple(job["decoders"]))
    forget_failure(folder)
    tell("state", state="training")

    def on_epoch(record: dict[str, Any]) -> None:
        _remember_peak(folder)
        tell("epoch", record=record)

    train_set = data.split("train")
    assert train_set is not None
    parser = train(
        train_set, folder, dev=data.split("dev"), teachers=_named(job["teachers"]), resume=True,
        on_epoch=on_epoch, on_progress=_progress(tell, settings.epochs), **job["settings"],
    )  # fmt: skip
    training = training_record(folder, job["threads"], _peak(folder))
    gold = gold_of(data, parser.word_rule) if data.is_scored else None
    for decoder in run.decoders:
        tell("state", state=f"scoring {decoder}")
        _write_result(folder, decoder, model_result(parser, gold, run, decoder, training))


def _score_average(job: dict[str, Any], tell: Tell) -> None:
    import torch

    from ramify.lab.run.scoring import agreement_on_dev, gold_of, model_result
    from ramify.parser import Ensemble

    torch.set_num_threads(job["threads"])
    data, folder = DataSet.from_job(job["data"]), Path(job["folder"])
    run = Run(data.name, job["model"], None, tuple(job["decoders"]), members=tuple(job["members"]))
    folder.mkdir(parents=True, exist_ok=True)
    forget_failure(folder)
    tell("state", state="scoring")
    ensemble = Ensemble(_named(job["members"]))
    about: dict[str, Any] = {"members": list(run.members)}
    gold = gold_of(data, ensemble.word_rule) if data.is_scored else None
    if gold is None:
        about["evaluation"] = {"agreement": agreement_on_dev(ensemble, data, Path(next(iter(job["members"].values()))))}
    for decoder in run.decoders:
        _write_result(folder, decoder, model_result(ensemble, gold, run, decoder, about))


def _named(folders: dict[str, str]) -> list[str]:
    """Model folders with the names of their runs, without the data that all have in common."""
    return [f"{name.partition('/')[2]}={folder}" for name, folder in folders.items()]


def _write_result(folder: Path, decoder: str, result: dict[str, Any]) -> None:
    result_file(folder, decoder).parent.mkdir(exist_ok=True)
    write_json(result_file(folder, decoder), result)


_WORK = {"baselines": _score_baselines, "run": _train_and_score, "average": _score_average}
"""What is done for each kind of job"""


def _progress(tell: Tell, epochs: int) -> Callable[[Any], None]:
    """Tells where training is, and how long it will take at its present pace, twice a second."""
    told = 0.0

    def on_progress(now: Any) -> None:
        nonlocal told
        if time.monotonic() - told >= EVERY:
            told = time.monotonic()
            left = (epochs - now.epoch + 1) * now.sentences - now.sentences_done
            rate = now.sentences_per_second
            tell("progress", epoch=now.epoch, epochs=epochs, seconds_left=left / rate if rate else None)

    return on_progress


def _remember_peak(folder: Path) -> None:
    write_json(folder / TRAINING, {"peak_memory_mb": round(max(peak_memory(), _peak(folder) or 0.0), 1)})


def _peak(folder: Path) -> float | None:
    try:
        return float(json.loads((folder / TRAINING).read_text(encoding="utf-8"))["peak_memory_mb"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
