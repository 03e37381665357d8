"""Processes that work on jobs, several at a time."""

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
from typing import IO, Any

import msgspec
from msgspec import Struct

from ramify.lab.plan.experiment import DataSet
from ramify.lab.results.schema import Run

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Read when the libraries are loaded, so they must be set before."""
_CODE = "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); from ramify.lab.run.worker import main; main()"
_STDERR_BYTES = 4000
"""How many bytes of what a process wrote before it broke down are kept."""

Event = dict[str, Any]
ENDED = "ended"


class Job(Struct):
    """What a process has to do: train and score a run, score an average, or score baselines."""

    data: DataSet
    folder: str
    threads: int
    run: Run | None = None
    """With the decoders whose results are missing; None for baselines"""
    others: dict[str, str] = {}
    """The model folders of teachers or members, by the names of their runs"""
    baselines: tuple[str, ...] = ()

    def as_json(self) -> str:
        """To be read by `from_json` in the process."""
        return msgspec.json.encode(self, enc_hook=str).decode()  # paths become strings

    @staticmethod
    def from_json(text: str) -> Job:
        """What `as_json` wrote."""
        return msgspec.json.decode(text, type=Job, dec_hook=lambda kind, value: kind(value))


class Worker:
    """A process on this machine that does one job. `lock` is the lock of the experiment, which it shares.

    What it reports comes into a queue as (job's name, event), last its end.
    """

    def __init__(self, name: str, job: Job, lock: int | None, events: queue.Queue[tuple[str, Event]]) -> None:
        self.name = name
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
        threading.Thread(target=self._listen, args=(events,), daemon=True).start()

    def _listen(self, events: queue.Queue[tuple[str, Event]]) -> None:
        stdout: IO[bytes] = self._process.stdout  # type: ignore[assignment]
        for line in stdout:
            with suppress(ValueError):  # one that was killed leaves half a line
                events.put((self.name, json.loads(line)))
        code = self._process.wait()
        stdout.close()
        events.put((self.name, {"event": ENDED, "code": code}))

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
    """Why a process ended that did not say it."""
    if code < 0:
        name = signal.Signals(-code).name
        hint = "; if memory ran out, give fewer --jobs" if -code == signal.SIGKILL else ""
        return f"its process was ended by {name}{hint}."
    if code > 128:
        return f"its process was stopped from outside (exit code {code})."
    return f"its process ended with exit code {code}."


def cores() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
