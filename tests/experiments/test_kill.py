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

from ramify.experiments.reading import read_plan
from ramify.experiments.running import run_experiment
from tests.experiments.common import TINY, write_experiment

TEXT = TINY.replace("epochs = 2", "epochs = 4")
TIMED = ("seconds", "sentences_per_second", "seconds_per_epoch", "peak_memory_mb")


def timeless(value: object) -> object:
    """Without what the clock and the memory had to say."""
    if isinstance(value, dict):
        return {name: timeless(each) for name, each in value.items() if name not in TIMED}
    return [timeless(each) for each in value] if isinstance(value, list) else value


def told(out: Path) -> dict[str, object]:
    """Every model to the last byte, and every result."""
    models = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("model.safetensors")}
    places = ("runs/*/*/*/results/*.json", "baselines/*/*.json")
    results = (path for place in places for path in out.glob(place))
    return models | {str(path.relative_to(out)): timeless(json.loads(path.read_text())) for path in results}


@pytest.mark.slow
def test_killed_three_times_it_finishes_with_the_same_results(tmp_path):
    path, out = write_experiment(tmp_path, TEXT), tmp_path / "out"
    started = time.monotonic()
    run_experiment(read_plan(path), tmp_path / "whole", jobs=2)
    unbroken = time.monotonic() - started
    chance = random.Random(0)
    command = [sys.executable, "-m", "ramify", "experiment", str(path), "--out", str(out), "--jobs", "2"]
    killed = 0
    while killed < 3:
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            # A third of the whole at most, so that three of them cannot finish it.
            process.wait(timeout=chance.uniform(0.05, 0.33) * unbroken)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            killed += 1
        assert process.returncode == -signal.SIGKILL
    assert subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0
    assert told(out) == told(tmp_path / "whole")
    assert len(told(out)) == 4 + 6 + 2
