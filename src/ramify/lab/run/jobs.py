"""The jobs of an experiment: what is to be done, which of it is done already, and the processes that do it."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec import Struct

from ramify.lab.plan.experiment import DataSet, Plan
from ramify.lab.results.schema import BASELINES, RESULTS, Result, Run
from ramify.lab.run.experiment_folder import result_in

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Read when the libraries are loaded, so they must be set before."""
_CODE = "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); from ramify.lab.run.worker import main; main()"
_STDERR_BYTES = 4000
"""How many bytes of what a process wrote before it broke down are kept."""

Event = dict[str, Any]
Events = queue.Queue[tuple[str, Event]]
"""What jobs report: the name of the job and the event, last its end"""
ENDED = "ended"


class Job(Struct):
    """To train and score a run, to score an average, or to score the baselines of a data set."""

    name: str
    data: DataSet
    folder: Path
    """Of the run, or of the baselines of the data set"""
    threads: int
    wanted: tuple[str, ...]
    """The results to make: the decoders of a run, or the names of baselines"""
    run: Run | None = None
    """None for baselines"""
    others: dict[str, Path] = {}
    """The model folders of teachers or members, by the names of their runs"""

    def result_file(self, name: str) -> Path:
        """Where one of its results is."""
        return (self.folder if self.run is None else self.folder / RESULTS) / f"{name}.json"

    def missing(self) -> tuple[str, ...]:
        """The results that are yet to be made; a job without any is finished."""
        return tuple(name for name in self.wanted if result_in(self.result_file(name)) is None)

    def first_result(self) -> Result | None:
        """That of a run by its first decoder; baselines have none that stands for all."""
        return None if self.run is None else result_in(self.result_file(self.run.decoders[0]))

    def as_json(self) -> str:
        """To be read by `from_json` in the process."""
        return msgspec.json.encode(self, enc_hook=str).decode()  # paths become strings

    @staticmethod
    def from_json(text: str) -> Job:
        """What `as_json` wrote."""
        return msgspec.json.decode(text, type=Job, dec_hook=lambda kind, value: kind(value))


def jobs_of(plan: Plan, out: Path) -> dict[str, Job]:
    """By name: the baselines of every data set with gold trees, then the runs."""
    out, threads = out.absolute(), plan.threads
    jobs = [
        Job(f"{name}/baselines", data, out / BASELINES / name, threads, plan.baselines)
        for name, data in plan.data.items()
        if plan.baselines and data.is_scored
    ]
    for run in plan.runs.values():
        others = {name: out / plan.runs[name].path for name in run.needs}
        jobs.append(Job(run.name, plan.data[run.data], out / run.path, threads, run.decoders, run, others))
    return {job.name: job for job in jobs}


class Worker:
    """A process on this machine that does one job. `lock` is the lock of the experiment, which it shares."""

    def __init__(self, job: Job, lock: int | None, events: Events) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            # -P: a file json.py in the user's folder must not be imported.
            [sys.executable, "-P", "-c", _CODE, job.as_json(), json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            pass_fds=[] if lock is None else [lock],
            env=os.environ | dict.fromkeys(THREAD_VARIABLES, str(job.threads)),
        )
        threading.Thread(target=self._listen, args=(job.name, events), daemon=True).start()

    def _listen(self, name: str, events: Events) -> None:
        stdout: IO[bytes] = self._process.stdout  # type: ignore[assignment]
        for line in stdout:
            with suppress(ValueError):  # one that was killed leaves half a line
                events.put((name, json.loads(line)))
        code = self._process.wait()
        stdout.close()
        events.put((name, {"event": ENDED, "code": code}))

    def stop(self) -> None:
        """Ask it to save its run and end."""
        self._process.terminate()

    def kill(self) -> None:
        """End it now; its files stay whole."""
        self._process.kill()

    def close(self) -> str:
        """Free what it holds; gives the end of what it wrote about errors."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        with self._errors as handle:
            handle.seek(max(0, handle.seek(0, os.SEEK_END) - _STDERR_BYTES))
            return handle.read().decode("utf-8", "replace")


def explain(code: int) -> str:
    """Why a process ended that reported no reason."""
    if code < 0:
        name = signal.Signals(-code).name
        hint = "; if memory ran out, give fewer --jobs" if -code == signal.SIGKILL else ""
        return f"its process was ended by {name}{hint}."
    if code > 128:
        return f"its process was stopped from outside (exit code {code})."
    return f"its process ended with exit code {code}."
