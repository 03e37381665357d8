"""The wheel contains every file of the package, and works after installation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ramify.model_names import bundled_models
from tests.conftest import PROJECT

pytestmark = pytest.mark.slow
NOTES = tuple(f"ramify/structures/{kind}/README.md" for kind in ("dense", "lexicalised", "low_rank"))
"""For people who read the sources"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, because building leaves files in the folder."""
    place = tmp_path_factory.mktemp("build")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, place / name)
    shutil.copytree(PROJECT / "src", place / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", "dist", "."]
    subprocess.run(command, cwd=place, check=True, capture_output=True)
    return next((place / "dist").glob("*.whl"))


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    source = PROJECT / "src"
    files = {str(file.relative_to(source)) for file in (source / "ramify").rglob("*") if file.is_file()}
    expected = {file for file in files if "__pycache__" not in file and not file.startswith(NOTES)}
    assert {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("ramify/")} == expected


def test_it_parses_where_it_is_installed(wheel, tmp_path):
    """Uses the packages of this environment; tools/try_wheel.py installs them in a new one."""
    place = tmp_path / "site"
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(place),
        str(wheel),
    ]
    subprocess.run(install, check=True, capture_output=True)
    code = """
import ramify, ramify.model_names
from ramify.runtime.compilation import postpone_loops

print(ramify.__file__)
with postpone_loops(1000):  # compiling them takes far longer than these few sentences
    for name in ramify.model_names.bundled_models():
        print(ramify.load(name).parse("The old man saw a dog."))
"""
    environment = os.environ | {"PYTHONPATH": str(place)}
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    first, *trees = found.stdout.splitlines()
    assert Path(first).is_relative_to(place)
    assert "".join(trees).count("(TOP") == len(bundled_models())
