"""A real Ray on this machine: the same bytes, even if workers or the driver die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ramify.lab.plan.experiment_file import read_plan
from ramify.lab.run.runner import run_experiment
from tests.cluster.conftest import MODEL, sentence
from tests.command import ramify
from tests.integrations.test_tables import write_rows
from tests.lab.run.test_kill import told
from tests.lab.tiny_experiment import TINY, WorkerHere, write_experiment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs("ray"),
    # Ray's processes close its sockets and pipes.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]


def local(file: Path, out: Path, *options: object) -> bytes:
    result = ramify("parse", "-m", MODEL, file, "--out", out, *options)
    assert result.returncode == 0, result.stderr
    return out.read_bytes()


def on_ray(file: Path, out: Path, *options: object, workers: int = 1) -> list[str]:
    """Each worker is a process that takes seconds to start."""
    return [
        "parse", "-m", str(MODEL), str(file), "--out", str(out), "--engine", "ray", "--block-size", "1024",
        "--workers", str(workers), *map(str, options),
    ]  # fmt: skip


def begun(ray, command: list[str]) -> subprocess.Popen[str]:
    """A command in another process that uses the same Ray."""
    address = ray.get_runtime_context().gcs_address
    whole = [sys.executable, "-m", "ramify", *command, "--ray-address", address]
    return subprocess.Popen(whole, stderr=subprocess.PIPE, text=True)


def until(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def workers_of(parts: Path) -> list[int]:
    """The processes that are parsing blocks."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"_RayWorker" in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found if list(parts.glob("*.tries")) else []


@pytest.fixture
def long_text(tmp_path: Path) -> Path:
    """Twelve blocks."""
    file = tmp_path / "long.txt"
    file.write_text("".join(f"{sentence(number)}\n" for number in range(12 * 1024 - 100)))
    return file


@pytest.mark.usefixtures("ray")
def test_text(text, tmp_path):
    result = ramify(*on_ray(text, tmp_path / "out.txt", workers=2))
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "out.txt").read_bytes() == local(text, tmp_path / "expected")
    assert result.stderr == ramify("parse", "-m", MODEL, text, "--out", tmp_path / "again").stderr


@pytest.mark.usefixtures("ray")
def test_json_lines_with_bad_rows(tmp_path):
    rows = [{"key": number, "text": sentence(number)} for number in range(1500)]
    rows[1100]["text"] = 3
    file = write_rows(tmp_path / "rows.jsonl", rows)
    result = ramify(*on_ray(file, tmp_path / "out.jsonl", "--format", "json"))
    assert result.returncode == 0, result.stderr
    rows[1100]["text"] = None
    good = local(write_rows(tmp_path / "good.jsonl", rows), tmp_path / "expected", "--format", "json")
    assert (tmp_path / "out.jsonl").read_bytes() == good
    [bad] = (tmp_path / "out.jsonl.bad-rows.jsonl").read_text().splitlines()
    assert json.loads(bad)["row"] == 1101


@pytest.mark.needs("parquet")
@pytest.mark.usefixtures("ray")
def test_parquet(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    texts = [sentence(number) for number in range(9000)]
    parquet.write_table(pa.table({"key": range(9000), "text": texts}), tmp_path / "in.parquet", row_group_size=1000)
    options = ("--format", "parquet", "--block-size", 8192)
    result = ramify(*on_ray(tmp_path / "in.parquet", tmp_path / "out.parquet", *options, workers=2))
    assert result.returncode == 0, result.stderr
    expected = local(tmp_path / "in.parquet", tmp_path / "expected.parquet", "--format", "parquet")
    assert (tmp_path / "out.parquet").read_bytes() == expected


def test_a_killed_driver_is_resumed(ray, long_text, tmp_path):
    out = tmp_path / "out.txt"
    parts = tmp_path / "out.txt.parts"
    process = begun(ray, on_ray(long_text, out))
    until(lambda: list(parts.glob("*.done")), process)
    process.kill()
    process.communicate()
    assert not out.exists()
    kept = {path.name: path.stat().st_mtime_ns for path in parts.glob("*.done")}
    assert 0 < len(kept) < 12
    seen: dict[str, int] = {}

    def still_there() -> bool:
        seen.update({path.name: path.stat().st_mtime_ns for path in parts.glob("*.done")} if parts.exists() else {})
        return out.exists()

    process = begun(ray, on_ray(long_text, out))
    until(still_there, process)
    assert process.wait() == 0
    process.communicate()
    assert {name: seen[name] for name in kept} == kept  # none of them was parsed again
    assert out.read_bytes() == local(long_text, tmp_path / "expected")
    assert not parts.exists()


def test_a_killed_worker_is_replaced(ray, long_text, tmp_path):
    out, parts = tmp_path / "out.txt", tmp_path / "out.txt.parts"
    process = begun(ray, on_ray(long_text, out, workers=2))
    until(lambda: workers_of(parts), process)
    for worker in workers_of(parts):
        os.kill(worker, signal.SIGKILL)
    _, error = process.communicate()
    assert process.returncode == 0, error
    assert out.read_bytes() == local(long_text, tmp_path / "expected")
    assert "Traceback" not in error


def test_ctrl_c_keeps_finished_blocks(ray, long_text, tmp_path):
    out, parts = tmp_path / "out.txt", tmp_path / "out.txt.parts"
    process = begun(ray, on_ray(long_text, out))
    until(lambda: list(parts.glob("*.done")), process)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    assert process.returncode == 130
    assert error.strip().splitlines()[-1].endswith("of 12 blocks are done, and the same command resumes.")
    assert list(parts.glob("*.done"))


@pytest.mark.usefixtures("ray")
def test_mistakes_are_one_sentence(text, tmp_path, monkeypatch):
    result = ramify(*on_ray(text, tmp_path / "out.txt", "--gpus-per-worker", "4096.5"))
    assert result.returncode == 2
    assert "4096.5 GPUs" in result.stderr
    model = tmp_path / "model"
    monkeypatch.setattr("ramify.cli.parse.absolute", lambda _: str(model))
    monkeypatch.setattr(
        "ramify.cluster.parse_in_blocks._checked_rules", lambda _: __import__("ramify").load(MODEL).text_rules
    )
    result = ramify(*on_ray(text, tmp_path / "out.txt"))
    assert result.returncode == 2
    assert f"{model}: this model folder does not exist" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("address", ["127.0.0.1:9", "http://127.0.0.1:8265"])
def test_an_address_without_a_cluster_is_refused_before_the_text_is_read(text, tmp_path, address):
    command = [sys.executable, "-m", "ramify", *on_ray(text, tmp_path / "out.txt"), "--ray-address", address]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "HOST:PORT as printed by ray start --head" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.glob("out*"))


def test_workers_of_another_version_are_refused(ray, text, tmp_path):
    """A worker without ramify, or with other dependencies, fails at the same place."""
    code = "import ramify.version; ramify.version.VERSION = '0.0.1'; from ramify.__main__ import main; main()"
    address = ray.get_runtime_context().gcs_address
    command = [sys.executable, "-c", code, *on_ray(text, tmp_path / "out.txt"), "--ray-address", address]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    [line] = result.stderr.strip().splitlines()
    assert line.startswith("error: A Ray worker cannot start (")
    assert "but 0.0.1 where the job started" in line


@pytest.mark.usefixtures("ray")
def test_an_experiment(tmp_path):
    plan = write_experiment(tmp_path, TINY)
    result = ramify("experiment", plan, "--out", tmp_path / "ray", "--engine", "ray")
    assert result.returncode == 0, result.stderr
    assert result.stderr.count(": finished") == 5
    run_experiment(read_plan(plan), tmp_path / "local", jobs=2, start=WorkerHere)
    assert told(tmp_path / "ray") == told(tmp_path / "local")


def test_an_experiment_that_was_stopped_resumes(ray, tmp_path):
    plan, out = write_experiment(tmp_path, TINY.replace("epochs = 2", "epochs = 300")), tmp_path / "out"
    process = begun(ray, ["experiment", str(plan), "--out", str(out), "--engine", "ray"])
    until(lambda: list(out.glob("runs/*/*/*/metrics.jsonl")), process)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    assert process.returncode == 130, error
    assert "Stopped; all runs are saved, and the same command resumes them." in error
    assert not list(out.rglob("failed.json"))
    assert list(out.rglob("checkpoint.safetensors"))
