"""An experiment from its plan to its results: what is missing is done, several runs at a time."""

from __future__ import annotations

import queue
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ramify.errors import RamifyWarning, Stopped
from ramify.lab.plan.data_check import check_data
from ramify.lab.plan.experiment import Plan
from ramify.lab.run import experiment_folder as folder
from ramify.lab.run.status import Status
from ramify.lab.run.worker_process import ENDED, Event, Worker, cores, explain
from ramify.storage.locks import locked_folder
from ramify.training.stopping import SIGNALS, StopRequest, stop_requests

PAUSE = 0.2
"""Seconds after which a signal is noticed at the latest."""

STOPPED = frozenset(code for number in SIGNALS for code in (-number, 128 + number))
"""Exit codes of processes that were asked to end."""

OnChange = Callable[[Status, Event], None]


def run_experiment(
    plan: Plan,
    out: Path,
    *,
    jobs: int | None = None,
    on_begin: Callable[[list[Status]], None] = lambda _: None,
    on_change: OnChange = lambda _, __: None,
) -> list[Status]:
    """Do everything that `out` does not hold yet; gives where every run, and the baselines of every data set, came to.

    `jobs` processes work at a time, unless told as many as there are cores for. A job that fails is told, and the
    others go on. Ctrl-C and SIGTERM raise `Stopped` once all runs are saved.
    """
    folder.check_folder(out)
    with locked_folder(out, folder.LOCK_PATIENCE) as lock:
        folder.check_same(out, plan)
        statuses = {status.name: status for status in survey(plan, out)}
        check_data(plan, statuses.values())
        folder.write_plan(out, plan)  # not before the data is known to be good: in a plan it cannot be mended any more
        on_begin([*statuses.values()])
        waiting = [name for name, status in statuses.items() if status.state == "waiting"]
        experiment = _Experiment(plan, out, statuses, on_change, lock)
        with stop_requests() as request:
            experiment.work(waiting, jobs or default_jobs(plan), request)
    return [*statuses.values()]


def default_jobs(plan: Plan) -> int:
    """As many as the cores have threads for."""
    return max(1, cores() // plan.threads)


def check_jobs(plan: Plan, jobs: int | None) -> None:
    """Say so where there would be more threads than cores."""
    there, wanted = cores(), (jobs or 1) * plan.threads
    if wanted > there:
        warnings.warn(
            f"{jobs or 1} jobs of {plan.threads} threads each are more than the {there} cores; they will be in each "
            "other's way.",
            RamifyWarning,
            stacklevel=2,
        )


def survey(plan: Plan, out: Path | None) -> Iterator[Status]:
    """Where every job is, as the folder tells; one that failed waits for another try."""
    scored = [name for name, data in plan.data.items() if data.is_scored]
    for data in scored if plan.baselines else ():
        done = out is not None and not folder.missing_baselines(out, plan, data)
        yield Status(_baselines_name(data), state="finished" if done else "waiting")
    for run in plan.runs.values():
        status = Status(run.name)
        if run.settings is not None:
            status.epochs = run.settings.epochs
            status.vocabulary = f"{run.data}: {run.settings.vocabulary}, {run.settings.min_count}"
        if out is not None and not folder.missing_decoders(out, run):
            status.finish(folder.read_json(folder.result_file(folder.run_folder(out, run), run.decoders[0])))
        elif out is not None:
            status.resume(folder.epochs_done(folder.run_folder(out, run)))
        yield status


def _was_stopped(code: int, request: StopRequest) -> bool:
    """Whether a process ended because all shall end.

    A signal to the whole group may end a process that is still being loaded before this one hears of it.
    """
    if request.signal is None and code in STOPPED:
        time.sleep(PAUSE)
    return request.signal is not None


def _baselines_name(data: str) -> str:
    return f"{data}/baselines"


class _Experiment:
    def __init__(self, plan: Plan, out: Path, statuses: dict[str, Status], on_change: OnChange, lock: int) -> None:
        self._plan, self._out, self._statuses, self._on_change, self._lock = plan, out, statuses, on_change, lock
        self._data_of = {_baselines_name(data): data for data in plan.data}
        self._events: queue.Queue[tuple[str, Event]] = queue.Queue()
        self._workers: dict[str, Worker] = {}

    def work(self, waiting: list[str], jobs: int, request: StopRequest) -> None:
        """Until all is done; an end that is asked for is passed on once, and waited for."""
        stopping = False
        with self._killing_at_the_end():
            while self._workers or (waiting and not stopping):
                while not stopping and len(self._workers) < jobs and (name := self._next(waiting)) is not None:
                    self._begin(name)
                with suppress(queue.Empty):
                    self._take(*self._events.get(timeout=PAUSE), request)
                if request.signal is not None and not stopping:
                    stopping = True
                    for worker in self._workers.values():
                        worker.stop()
        if request.signal is not None and any(
            status.state in ("waiting", "stopped") for status in self._statuses.values()
        ):
            raise Stopped(request.signal, "Stopped; all runs are saved, and the same command goes on with them.")

    @contextmanager
    def _killing_at_the_end(self) -> Iterator[None]:
        try:
            yield
        finally:
            for worker in self._workers.values():
                worker.kill()
                worker.close()

    def _next(self, waiting: list[str]) -> str | None:
        """Take the first job that can begin; what waits for a run that failed fails too."""
        for name in list(waiting):
            run = self._plan.runs.get(name)
            states = {other: self._statuses[other].state for other in run.needs} if run else {}
            failed = [other for other, state in states.items() if state == "failed"]
            if failed:
                waiting.remove(name)
                self._change(name, {"event": "failed", "error": f"it needs {failed[0]}, which failed.", "final": True})
            elif all(state == "finished" for state in states.values()):
                waiting.remove(name)
                return name
        return None

    def _begin(self, name: str) -> None:
        self._workers[name] = Worker(name, self._job(name), self._plan.threads, self._lock, self._events)
        self._change(name, {"event": "state", "state": "starting"})

    def _job(self, name: str) -> dict[str, Any]:
        if name in self._data_of:
            data = self._data_of[name]
            missing = folder.missing_baselines(self._out, self._plan, data)
            job: dict[str, Any] = {"kind": "baselines", "baselines": missing}
        else:
            run = self._plan.runs[name]
            data = run.data
            job = {"model": run.model, "decoders": folder.missing_decoders(self._out, run)}
            others = {other: str(self._place(other).absolute()) for other in run.needs}
            if run.settings is None:
                job |= {"kind": "average", "members": others}
            else:
                settings = {key: value for key, value in asdict(run.settings).items() if value is not None}
                job |= {"kind": "run", "settings": settings, "teachers": others}
        place = str(self._place(name).absolute())
        return job | {"data": self._plan.data[data].as_job(), "folder": place, "threads": self._plan.threads}

    def _place(self, name: str) -> Path:
        if name in self._data_of:
            return self._out / folder.BASELINES / self._data_of[name]
        return folder.run_folder(self._out, self._plan.runs[name])

    def _take(self, name: str, event: Event, request: StopRequest) -> None:
        if event["event"] != ENDED:
            self._change(name, event)
            return
        said = self._workers.pop(name).close()
        code = event["code"]
        if code == 0:
            self._change(name, {"event": "finished", "result": self._first_result(name)})
        elif _was_stopped(code, request):
            self._change(name, {"event": "state", "state": "stopped"})
        else:
            told = self._statuses[name].error
            folder.tell_failure(self._place(name), told or explain(code), self._statuses[name].details or said)
            self._change(name, {"event": "failed", "error": told or explain(code), "final": True})

    def _first_result(self, name: str) -> dict[str, Any] | None:
        run = self._plan.runs.get(name)
        return None if run is None else folder.read_json(folder.result_file(self._place(name), run.decoders[0]))

    def _change(self, name: str, event: Event) -> None:
        status = self._statuses[name]
        status.take(event)
        self._on_change(status, event)
