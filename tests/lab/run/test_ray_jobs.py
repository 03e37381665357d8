"""The events of a job on Ray, without Ray."""

from __future__ import annotations

import queue
import threading
import time
from types import SimpleNamespace

import pytest

from ramify.lab.run import ray_jobs
from ramify.lab.run.jobs import ENDED
from ramify.lab.run.ray_jobs import RayWorker


class LostError(Exception):
    pass


class CancelledError(LostError):
    pass


class FakeRay:
    """Its tasks end when a test says so, with an error or without one."""

    exceptions = SimpleNamespace(TaskCancelledError=CancelledError, RayError=LostError)

    def __init__(self, error: Exception | None = None) -> None:
        self.over, self._error = threading.Event(), error

    def remote(self, **_: object):
        return lambda _: SimpleNamespace(remote=lambda *_: "task")

    def get(self, _: str) -> None:
        self.over.wait(60)
        if self._error:
            raise self._error


JOB = SimpleNamespace(name="one", threads=1, as_json=lambda: "{}")


def test_a_job_ends_once_although_two_events_report_its_end():
    events = queue.Queue()
    worker = RayWorker(FakeRay(), None, JOB, events)
    given = [{"event": "epoch"}, {"event": ENDED, "code": 0, "written": "a warning"}, {"event": ENDED, "code": 1}]
    for event in given:
        worker.take(event)
    assert [events.get_nowait() for _ in range(events.qsize())] == [("one", event) for event in given[:2]]
    assert worker.close() == "a warning"


@pytest.mark.parametrize(("error", "code"), [(CancelledError(), -15), (LostError("the machine has no memory left"), 1)])
def test_a_job_that_ray_ended_has_an_exit_code(error, code):
    events, ray = queue.Queue(), FakeRay(error)
    worker = RayWorker(ray, None, JOB, events)
    ray.over.set()
    name, event = events.get(timeout=60)
    assert (name, event["event"], event["code"]) == ("one", ENDED, code)
    assert worker.close() == str(error)


def test_a_job_that_ray_cancels_is_asked_to_save_its_run(monkeypatch):
    """And all of its events are passed on, its end too."""
    done, channel = [], queue.Queue()

    class FakeWorker:
        def __init__(self, job: SimpleNamespace, _lock: object, events: queue.Queue) -> None:
            self._name, self._events = job.name, events
            events.put((job.name, {"event": "epoch"}))
            FakeWorker.end = self.end

        def end(self) -> None:
            self._events.put((self._name, {"event": ENDED, "code": 130}))

        def stop(self) -> None:
            done.append("stopped")
            self.end()

        def kill(self) -> None:
            done.append("killed")

        def close(self) -> str:
            return "a warning"

    def interrupted(_: float) -> None:
        pauses.append(1)
        if len(pauses) == 1:
            raise KeyboardInterrupt
        if len(pauses) == 500:  # it was not asked
            FakeWorker.end()
        time.sleep(0.001)

    pauses: list[int] = []
    monkeypatch.setattr(ray_jobs, "Worker", FakeWorker)
    monkeypatch.setattr(ray_jobs, "Job", SimpleNamespace(from_json=lambda _: JOB))
    monkeypatch.setattr(ray_jobs, "time", SimpleNamespace(sleep=interrupted))
    ray_jobs._work("{}", channel)
    assert done == ["stopped", "killed"]
    ended = {"event": ENDED, "code": 130, "written": "a warning"}
    assert [channel.get_nowait() for _ in range(channel.qsize())] == [("one", {"event": "epoch"}), ("one", ended)]
