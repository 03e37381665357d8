"""An experiment from its plan to its results: what is missing is done, several runs at a time."""

from __future__ import annotations

import queue
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ramify.errors import RamifyWarning, Stopped
from ramify.lab.plan.experiment import Plan
from ramify.lab.results.result_paths import BASELINES, result_file
from ramify.lab.run import experiment_folder as folder
from ramify.lab.run.scoring import check_data
from ramify.lab.run.status import Status
from ramify.lab.run.worker_process import ENDED, Event, Job, Worker, cores, explain
from ramify.storage.locks import locked_folder
from ramify.training.stopping import SIGNALS, StopRequest, stop_requests

if TYPE_CHECKING:
    from ramify.lab.run.ray_jobs import RayWorker

PAUSE = 0.2
"""Seconds after which a signal is noticed at the latest."""

STOPPED = frozenset(code for number in SIGNALS for code in (-number, 128 + number))
"""Exit codes of processes that were signalled to stop."""

OnChange = Callable[[Status, Event], None]
Start = Callable[[str, Job, int, "queue.Queue[tuple[str, Event]]"], "Worker | RayWorker"]
"""Starts a job, given its name, the lock of the experiment, and where its events go"""


def run_experiment(
    plan: Plan,
    out: Path,
    *,
    jobs: int | None = None,
    on_begin: Callable[[list[Status]], None] = lambda _: None,
    on_change: OnChange = lambda _, __: None,
    start: Start | None = None,
) -> list[Status]:
    """Do everything that `out` does not hold yet; gives the state of every run and of the baselines of every data set.

    `jobs` processes work at a time, by default as many as there are cores for. `start` starts a job, by default in a
    process on this machine. A job that fails is reported, and the
    others continue. Ctrl-C and SIGTERM raise `Stopped` once all runs are saved.
    """
    folder.check_folder(out)
    with locked_folder(out, folder.LOCK_PATIENCE) as lock:
        folder.check_same(out, plan)
        statuses = {status.name: status for status in survey(plan, out)}
        check_data(plan, statuses.values())
        folder.write_plan(out, plan)  # after the check: data of a plan cannot be changed any more
        on_begin([*statuses.values()])
        waiting = [name for name, status in statuses.items() if status.state == "waiting"]
        experiment = _Experiment(plan, out, statuses, on_change, lock, start or Worker)
        with stop_requests() as request:
            experiment.work(waiting, jobs or default_jobs(plan), request)
    return [*statuses.values()]


def default_jobs(plan: Plan, there: int | None = None) -> int:
    """As many as the cores have threads for, by default those of this machine."""
    return max(1, (there or cores()) // plan.threads)


def check_jobs(plan: Plan, jobs: int | None) -> None:
    """Warn if there would be more threads than cores."""
    available, needed = cores(), (jobs or 1) * plan.threads
    if needed > available:
        warnings.warn(
            f"{jobs or 1} jobs of {plan.threads} threads each are more than the {available} cores; they will slow each "
            "other down.",
            RamifyWarning,
            stacklevel=2,
        )


def survey(plan: Plan, out: Path | None) -> Iterator[Status]:
    """The state of every job, by what is in the folder; one that failed waits for another try."""
    scored = [name for name, data in plan.data.items() if data.is_scored]
    for data in scored if plan.baselines else ():
        done = out is not None and not folder.missing_baselines(out, plan, data)
        yield Status(_baselines_name(data), state="finished" if done else "waiting")
    for run in plan.runs.values():
        status = Status(run.name)
        if run.settings is not None:
            status.epochs = run.settings["epochs"]
            status.vocabulary = f"{run.data}: {run.settings['vocabulary']}, {run.settings['min_count']}"
        if out is not None and not folder.missing_decoders(out, run):
            status.finish(folder.result_in(result_file(out / run.path, run.decoders[0])))
        elif out is not None:
            status.resume(folder.epochs_done(out / run.path))
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
    def __init__(
        self, plan: Plan, out: Path, statuses: dict[str, Status], on_change: OnChange, lock: int, start: Start
    ) -> None:
        self._plan, self._out, self._statuses, self._on_change, self._lock = plan, out, statuses, on_change, lock
        self._start = start
        self._data_of = {_baselines_name(data): data for data in plan.data}
        self._places = {name: out.absolute() / BASELINES / data for name, data in self._data_of.items()}
        self._places |= {name: out.absolute() / run.path for name, run in plan.runs.items()}
        self._events: queue.Queue[tuple[str, Event]] = queue.Queue()
        self._workers: dict[str, Worker | RayWorker] = {}

    def work(self, waiting: list[str], jobs: int, request: StopRequest) -> None:
        """Until all is done; a request to stop is passed on once, and the processes are waited for."""
        stopping = False
        try:
            while self._workers or (waiting and not stopping):
                while not stopping and len(self._workers) < jobs and (name := self._next(waiting)) is not None:
                    self._workers[name] = self._start(name, self._job(name), self._lock, self._events)
                    self._change(name, {"event": "state", "state": "starting"})
                with suppress(queue.Empty):
                    self._take(*self._events.get(timeout=PAUSE), request)
                if request.signal is not None and not stopping:
                    stopping = True
                    for worker in self._workers.values():
                        worker.stop()
        finally:
            for worker in self._workers.values():
                worker.kill()
                worker.close()
        if request.signal is not None and any(
            status.state in ("waiting", "stopped") for status in self._statuses.values()
        ):
            raise Stopped(request.signal, "Stopped; all runs are saved, and the same command resumes them.")

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

    def _job(self, name: str) -> Job:
        place, threads = str(self._places[name]), self._plan.threads
        if name in self._data_of:
            data = self._data_of[name]
            missing = folder.missing_baselines(self._out, self._plan, data)
            return Job(self._plan.data[data], place, threads, baselines=missing)
        run = self._plan.runs[name]
        run = replace(run, decoders=folder.missing_decoders(self._out, run))
        others = {other: str(self._places[other]) for other in run.needs}
        return Job(self._plan.data[run.data], place, threads, run, others)

    def _take(self, name: str, event: Event, request: StopRequest) -> None:
        if event["event"] != ENDED:
            self._change(name, event)
            return
        written = self._workers.pop(name).close()
        code = event["code"]
        if code == 0:
            run = self._plan.runs.get(name)
            result = folder.result_in(result_file(self._places[name], run.decoders[0])) if run else None
            self._change(name, {"event": "finished", "result": result})
        elif _was_stopped(code, request):
            self._change(name, {"event": "state", "state": "stopped"})
        else:
            error = self._statuses[name].error or explain(code)
            folder.save_failure(self._places[name], error, self._statuses[name].details or written)
            self._change(name, {"event": "failed", "error": error, "final": True})

    def _change(self, name: str, event: Event) -> None:
        status = self._statuses[name]
        status.take(event)
        self._on_change(status, event)
