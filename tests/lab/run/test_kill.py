"""An experiment that is killed again and again ends as one that was left in peace."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ramify.lab.plan.experiment_file import read_plan
from ramify.lab.run.runner import run_experiment
from tests.lab.tiny_experiment import TINY, WorkerHere, write_experiment

TEXT = TINY.replace("epochs = 2", "epochs = 4").replace("seeds = [0, 1]", "seeds = [0]")
TIMED = ("seconds", "sentences_per_second", "seconds_per_epoch", "peak_memory_mb")
RESULTS = ("runs/*/*/*/results/*.json", "baselines/*/*.json")


def timeless(value: object) -> object:
    """Without what the clock and the memory had to say."""
    if isinstance(value, dict):
        return {name: timeless(each) for name, each in value.items() if name not in TIMED}
    return [timeless(each) for each in value] if isinstance(value, list) else value


def told(out: Path) -> dict[str, object]:
    """Every model to the last byte, and every result."""
    models = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("model.safetensors")}
    results = (path for place in RESULTS for path in out.glob(place))
    return models | {str(path.relative_to(out)): timeless(json.loads(path.read_text())) for path in results}


def done(out: Path) -> int:
    """Epochs and results so far, of 13."""
    epochs = sum(path.read_bytes().count(b"\n") for path in out.glob("runs/*/*/*/metrics.jsonl"))
    return epochs + sum(1 for place in RESULTS for _ in out.glob(place))


@pytest.mark.slow
def test_killed_three_times_it_finishes_with_the_same_results(tmp_path):
    path, out = write_experiment(tmp_path, TEXT), tmp_path / "out"
    run_experiment(read_plan(path), tmp_path / "whole", jobs=2, start=WorkerHere)
    chance = random.Random(0)
    command = [sys.executable, "-m", "ramify", "experiment", str(path), "--out", str(out), "--jobs", "2"]
    # By what is done, not by the clock: a machine may have much else to do, or little.
    for moment in sorted(chance.sample(range(8), 3)):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
        while done(out) < moment and process.poll() is None:
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.3))
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert done(out) < 13
    run_experiment(read_plan(path), out, jobs=2, start=WorkerHere)
    assert done(out) == 13
    assert told(out) == told(tmp_path / "whole")
    assert len(told(out)) == 2 + 3 + 2
