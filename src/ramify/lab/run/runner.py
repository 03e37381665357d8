"""Runs an experiment: does everything that is missing, several jobs at a time."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ramify.errors import RamifyWarning, Stopped
from ramify.lab.plan.experiment import Plan
from ramify.lab.run import experiment_folder as folder
from ramify.lab.run.jobs import ENDED, Event, Events, Job, Worker, explain, jobs_of
from ramify.lab.run.scoring import check_data
from ramify.lab.run.status import Status
from ramify.runtime.machine import cores
from ramify.storage.locks import locked_folder
from ramify.training.stopping import SIGNALS, StopRequest, stop_requests

if TYPE_CHECKING:
    from ramify.lab.run.ray_jobs import RayWorker

PAUSE = 0.2
"""Seconds after which a signal is noticed at the latest."""

STOPPED = frozenset(code for number in SIGNALS for code in (-number, 128 + number))
"""Exit codes of processes that were signalled to stop."""

OnChange = Callable[[Status, Event], None]
Start = Callable[[Job, int, Events], "Worker | RayWorker"]
"""Starts a job, given the lock of the experiment and where events go"""


def run_experiment(
    plan: Plan,
    out: Path,
    *,
    jobs: int | None = None,
    on_begin: Callable[[list[Status]], None] = lambda _: None,
    on_change: OnChange = lambda _, __: None,
    start: Start | None = None,
) -> list[Status]:
    """Do everything that `out` does not hold yet, and return the state of every job.

    `jobs` processes work at a time, by default as many as there are cores for. `start` starts a job, by default in a
    process on this machine. A job that fails is reported, and the others continue. Ctrl-C and SIGTERM raise `Stopped`
    once all runs are saved.
    """
    folder.check_folder(out)
    with locked_folder(out, folder.LOCK_PATIENCE) as lock:
        folder.check_same(out, plan)
        statuses = {status.name: status for status in survey(plan, out)}
        check_data(plan, statuses.values())
        folder.write_plan(out, plan)  # after the check: data of a plan cannot be changed any more
        on_begin([*statuses.values()])
        experiment = _Experiment(jobs_of(plan, out), statuses, on_change, lock, start or Worker)
        with stop_requests() as request:
            experiment.work(jobs or default_jobs(plan), request)
    return [*statuses.values()]


def default_jobs(plan: Plan, there: int | None = None) -> int:
    """How many jobs there are cores for, by default on this machine."""
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
    for job in jobs_of(plan, out or Path()).values():
        status = Status(job.name)
        if job.run is not None and job.run.settings is not None:
            settings = job.run.settings
            status.epochs = settings["epochs"]
            status.vocabulary = f"{job.run.data}: {settings['vocabulary']}, {settings['min_count']}"
        if out is not None and not job.missing():
            status.finish(job.first_result())
        elif out is not None:
            status.resume(folder.epochs_done(job.folder))
        yield status


def _was_stopped(code: int, request: StopRequest) -> bool:
    """Whether a process ended because the experiment is being stopped.

    A signal to the whole group may end a process that is still being loaded before this one hears of it.
    """
    if request.signal is None and code in STOPPED:
        time.sleep(PAUSE)
    return request.signal is not None


class _Experiment:
    def __init__(
        self, jobs: dict[str, Job], statuses: dict[str, Status], on_change: OnChange, lock: int, start: Start
    ) -> None:
        self._jobs, self._statuses, self._on_change, self._lock, self._start = jobs, statuses, on_change, lock, start
        self._waiting = [name for name, status in statuses.items() if status.state == "waiting"]
        self._events = Events()
        self._workers: dict[str, Worker | RayWorker] = {}

    def work(self, at_a_time: int, request: StopRequest) -> None:
        """Work until all is done. A request to stop is passed on once; then the processes are waited for."""
        stopping = False
        try:
            while self._workers or (self._waiting and not stopping):
                while not stopping and len(self._workers) < at_a_time and (job := self._next()) is not None:
                    job = replace(job, wanted=job.missing())
                    self._workers[job.name] = self._start(job, self._lock, self._events)
                    self._change(job.name, {"event": "state", "state": "starting"})
                with suppress(Empty):
                    self._take(*self._events.get(timeout=PAUSE), request)
                if request.signal is not None and not stopping:
                    stopping = True
                    for worker in self._workers.values():
                        worker.stop()
        finally:
            for worker in self._workers.values():
                worker.kill()
                worker.close()
        if request.signal is not None and any(s.state in ("waiting", "stopped") for s in self._statuses.values()):
            raise Stopped(request.signal, "Stopped; all runs are saved, and the same command resumes them.")

    def _next(self) -> Job | None:
        """Take the first job that can begin; jobs that need a failed one fail too."""
        for name in list(self._waiting):
            job = self._jobs[name]
            states = {other: self._statuses[other].state for other in job.others}
            failed = [other for other, state in states.items() if state == "failed"]
            if failed:
                self._waiting.remove(name)
                self._change(name, {"event": "failed", "error": f"it needs {failed[0]}, which failed.", "final": True})
            elif all(state == "finished" for state in states.values()):
                self._waiting.remove(name)
                return job
        return None

    def _take(self, name: str, event: Event, request: StopRequest) -> None:
        if event["event"] != ENDED:
            self._change(name, event)
            return
        written = self._workers.pop(name).close()
        job, status, code = self._jobs[name], self._statuses[name], event["code"]
        if code == 0:
            self._change(name, {"event": "finished", "result": job.first_result()})
        elif _was_stopped(code, request):
            self._change(name, {"event": "state", "state": "stopped"})
        else:
            error = status.error or explain(code)
            folder.save_failure(job.folder, error, status.details or written)
            self._change(name, {"event": "failed", "error": error, "final": True})

    def _change(self, name: str, event: Event) -> None:
        status = self._statuses[name]
        status.take(event)
        self._on_change(status, event)
