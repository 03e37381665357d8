"""Without an extra its tests are left out with one line, and what needs it says how to install it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import EXTRAS, PROJECT

WITHOUT = "import sys\nfor name in {names}:\n    sys.modules[name] = None\n"


def run_without(names: list[str], place: Path, *command: str) -> subprocess.CompletedProcess[str]:
    (place / "sitecustomize.py").write_text(WITHOUT.format(names=names))
    path = os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *command], cwd=PROJECT, env=environment, capture_output=True, text=True, check=False
    )


def test_their_tests_are_left_out_with_one_line_each(tmp_path):
    files = ["tests/integrations/test_spacy.py", "tests/integrations/test_parquet.py"]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    result = run_without(list(EXTRAS.values()), tmp_path, "-m", "pytest", *options, *files)
    assert result.returncode == 5, result.stdout  # nothing is left to run
    for extra, library in EXTRAS.items():
        line = f"deselected: tests that need {library}; install it with: pip install 'ramify[{extra}]'"
        assert result.stdout.splitlines().count(line) == 1


@pytest.mark.parametrize("options", [("--format", "parquet", "--out", "out.parquet"), ("--input", "parquet")])
def test_parquet_says_what_to_install(tmp_path, options):
    (tmp_path / "in.txt").write_text("a dog\n")
    model = "tests/fixtures/models/n-pcfg"
    command = ["-m", "ramify", "parse", "-m", model, str(tmp_path / "in.txt"), *options]
    result = run_without(["pyarrow"], tmp_path, *command)
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert "pyarrow" in line
    assert "pip install 'ramify[parquet]'" in line


@pytest.mark.parametrize(
    "command",
    [
        ("parse", "-m", "tests/fixtures/models/n-pcfg", "in.txt", "--out", "out.txt"),
        ("experiment", "main", "--data", "it=built-in", "--out", "runs"),
    ],
)
def test_ray_says_what_to_install(tmp_path, command):
    (tmp_path / "in.txt").write_text("a dog\n")
    placed = [str(tmp_path / word) if word in ("in.txt", "out.txt", "runs") else word for word in command]
    result = run_without(["ray"], tmp_path, "-m", "ramify", *placed, "--engine", "ray")
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert "pip install 'ramify[ray]'" in line
    assert {path.name for path in tmp_path.iterdir()} == {"in.txt", "sitecustomize.py"}
