"""The jobs of an experiment as tasks of Ray: each starts the same process that the local engine would start.

Ray chooses a machine with enough free cores. The process saves its run and ends when the task does, however that is,
because its standard input breaks; another attempt resumes it. The folder of the experiment and the data must be on
storage that all machines share.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ramify.cluster.ray_session import ray_session
from ramify.lab.run.jobs import ENDED, Event, Events, Job, Worker

MAX_RETRIES = 3
"""How often a job is begun again, on any machine, after Ray lost the one it was on"""
PAUSE = 0.2
"""Seconds after which an end is noticed at the latest"""


class RayJobs:
    """Starts jobs on a cluster, and passes their events on."""

    def __init__(self, ray: Any, channel: Any) -> None:
        self._ray, self._channel = ray, channel
        self._workers: dict[str, RayWorker] = {}
        self._closed = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def cores(self) -> int:
        """Of all machines together."""
        return int(self._ray.cluster_resources().get("CPU", 1))

    def start(self, job: Job, lock: int, events: Events) -> RayWorker:  # noqa: ARG002
        """A job; the lock stays in this process, for the machines of a cluster cannot inherit it."""
        self._workers[job.name] = RayWorker(self._ray, self._channel, job, events)
        return self._workers[job.name]

    def close(self) -> None:
        """No more events are passed on."""
        self._closed.set()
        self._listener.join()

    def _listen(self) -> None:
        from ray.util.queue import Empty

        while not self._closed.is_set():
            with suppress(Empty):
                name, event = self._channel.get(timeout=PAUSE)
                self._workers[name].take(event)


class RayWorker:
    """One job, with the interface of `Worker`."""

    def __init__(self, ray: Any, channel: Any, job: Job, events: Events) -> None:
        self._name, self._ray, self._events = job.name, ray, events
        self._ended, self._ending = False, threading.Lock()
        self._written = ""
        task = ray.remote(num_cpus=job.threads, max_retries=MAX_RETRIES)(_work)
        self._task = task.remote(job.as_json(), channel)
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        try:
            self._ray.get(self._task)  # its end comes through the channel, after its other events
        except self._ray.exceptions.TaskCancelledError:
            self.take({"event": ENDED, "code": -signal.SIGTERM})
        except self._ray.exceptions.RayError as error:
            self.take({"event": ENDED, "code": 1, "written": str(error)})

    def take(self, event: Event) -> None:
        """Pass an event on; the end is passed on once, whoever reports it first."""
        with self._ending:
            if self._ended:
                return
            self._ended = event["event"] == ENDED
            self._written = event.get("written", "")
        self._events.put((self._name, event))

    def stop(self) -> None:
        """Ask it to save its run and end."""
        # Not recursive, which would also cancel the calls that pass its last events on.
        self._ray.cancel(self._task, force=False, recursive=False)

    def kill(self) -> None:
        """End it now; its files stay whole."""
        self._ray.cancel(self._task, force=True)

    def close(self) -> str:
        """The end of what it wrote about errors."""
        return self._written


@contextmanager
def ray_jobs(address: str | None) -> Iterator[RayJobs]:
    """Jobs on the cluster at `address`, by default on this machine."""
    with ray_session(address) as ray:
        from ray.util.queue import Queue

        channel = Queue(actor_options={"num_cpus": 0})
        jobs = RayJobs(ray, channel)
        try:
            yield jobs
        finally:
            jobs.close()
            channel.shutdown(force=True)


def _work(job: str, channel: Any) -> None:
    """Runs on a machine of the cluster, until the process of the job has ended."""
    events = Events()
    worker = Worker(Job.from_json(job), None, events)
    # Ray asks for an end by interrupting this thread, wherever it is. Another one, which is never interrupted, passes
    # events on, so that none is lost and no lock stays taken.
    passing = threading.Thread(target=_pass_on, args=(worker, events, channel), daemon=True)
    passing.start()
    try:
        while passing.is_alive():
            try:
                time.sleep(PAUSE)
            except KeyboardInterrupt:
                worker.stop()
    finally:
        worker.kill()


def _pass_on(worker: Worker, events: Events, channel: Any) -> None:
    """All events, the last one with what the process wrote about errors."""
    while True:
        name, event = events.get()
        if event["event"] == ENDED:
            channel.put((name, {**event, "written": worker.close()}))
            return
        channel.put((name, event))
