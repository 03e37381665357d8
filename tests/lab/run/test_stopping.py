"""Signals that come twice, or to processes in another order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from ramify.errors import Stopped
from ramify.lab.plan.experiment_file import read_plan
from ramify.lab.run import runner
from ramify.lab.run.jobs import Events, Job, explain
from ramify.lab.run.runner import run_experiment
from ramify.training import stopping
from ramify.training.stopping import stop_requests
from tests.lab.tiny_experiment import TINY, write_experiment


class KilledWorker:
    """Ends at once by SIGTERM, as one does that is still being loaded; the experiment hears of the signal later."""

    def __init__(self, job: Job, _: int, events: Events) -> None:
        events.put((job.name, {"event": "ended", "code": -signal.SIGTERM}))
        main = threading.main_thread().ident
        assert main is not None
        threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGTERM)).start()

    def stop(self) -> None:
        pass

    kill = stop

    def close(self) -> str:
        return ""


def test_a_worker_that_hears_of_the_end_first_has_not_failed(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "Worker", KilledWorker)
    monkeypatch.setattr(runner, "PAUSE", 2.0)
    monkeypatch.setattr(stopping, "SAME_REQUEST_SECONDS", 60.0)
    with pytest.raises(Stopped) as stop:
        run_experiment(read_plan(write_experiment(tmp_path, TINY)), tmp_path / "out", jobs=1)
    assert stop.value.exit_code == 143
    assert not [*(tmp_path / "out").rglob("failed.json")]


def test_only_a_process_that_was_killed_may_have_lacked_memory():
    assert "SIGKILL" in explain(-signal.SIGKILL)
    assert "memory" in explain(-signal.SIGKILL)
    assert "memory" not in explain(-signal.SIGTERM)
    assert "143" in explain(143)
    assert "code 1." in explain(1)


def test_a_signal_that_comes_twice_within_a_second_is_one_wish():
    with stop_requests() as request:
        try:
            for _ in range(3):
                signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:  # which would end pytest itself
            pytest.fail("the second signal was taken for another wish")
        assert request.signal == signal.SIGINT


def test_another_signal_is_another_wish_however_soon_it_comes(monkeypatch):
    monkeypatch.setattr(stopping, "SAME_REQUEST_SECONDS", 60.0)
    with stop_requests():
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("numbers", [(signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGINT)])
def test_a_second_wish_has_its_usual_effect(monkeypatch, numbers):
    monkeypatch.setattr(stopping, "SAME_REQUEST_SECONDS", 0.0)
    with stop_requests() as request:
        signal.raise_signal(numbers[0])
        assert request.signal == numbers[0]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(numbers[1])


@pytest.mark.parametrize("closed_pipe", [True, False])
def test_notes_that_nobody_can_read_do_not_end_the_work(closed_pipe):
    program = (
        "from ramify.cli.line_output import watch_standard_output; watch_standard_output()\n"
        "from ramify.cli.common import notes\n"
        "for _ in range(3): notes.print('a note')\n"
        "print('went on')"
    )
    if closed_pipe:
        reader, writer = os.pipe()
        os.close(reader)
    else:
        writer = os.open("/dev/full", os.O_WRONLY)
    with os.fdopen(writer, "wb") as nobody:
        result = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=nobody, check=False)
    assert (result.returncode, result.stdout) == (0, b"went on\n")
