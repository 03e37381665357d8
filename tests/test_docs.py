"""Every command and every block of Python in the README and the docs is run, on small data."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ramify.corpus.brackets import write_brackets
from ramify.corpus.builtin import builtin_treebank
from ramify.training.settings import load_settings
from tests.conftest import PROJECT

PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the commands name."""
    place = tmp_path_factory.mktemp("docs")
    treebank = builtin_treebank(0, train=60, dev=10, test=10)
    (place / "treebank").mkdir()
    for name, parses in treebank.items():
        trees = "".join(write_brackets(parse) + "\n" for parse in parses)
        (place / "treebank" / f"{name}.trees").write_text(trees)
    (place / "sentences.txt").write_text("".join(" ".join(p.words) + "\n" for p in treebank["train"]))
    return place


def run(place: Path, *command: str) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    result = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{command}: {result.stderr}"


def test_commands_and_python(place):
    ran = 0
    for page in PAGES:
        for language, content in blocks(page):
            if language == "python":
                run(place, sys.executable, "-W", "error", "-c", content)
                ran += 1
            for line in content.splitlines():
                if language == "" and "ramify " in line and line.split()[0] in ("ramify", "echo"):
                    run(place, "bash", "-c", line)
                    ran += 1
    assert ran >= 7


def test_make_targets_exist():
    targets = [
        line.split()[1] for page in PAGES for _, text in blocks(page) for line in text.splitlines()
        if line.startswith("make ")
    ]  # fmt: skip
    assert {"demo", "test"} <= set(targets)
    makefile = (PROJECT / "Makefile").read_text()
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_settings_in_the_docs_are_settings(tmp_path):
    for page in PAGES:
        for language, content in blocks(page):
            if language == "toml":
                tomllib.loads(content)
                (tmp_path / "settings.toml").write_text(content)
                load_settings(tmp_path / "settings.toml", {})


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_options_named_in_the_docs_exist():
    help_pages = "".join(
        subprocess.run([sys.executable, "-m", "ramify", command, "--help"], capture_output=True, text=True, check=True,
                       env={**os.environ, "COLUMNS": "200"}).stdout
        for command in ("train", "parse", "evaluate", "score", "bench", "demo")
    )  # fmt: skip
    for page in PAGES:
        for option in re.findall(r"`(--[a-z-]+)", page.read_text(encoding="utf-8")):
            assert option in help_pages or option == "--help", f"{page.name}: {option}"
        for line in (line for _, text in blocks(page) for line in text.splitlines() if line.startswith("ramify ")):
            assert all(part in help_pages for part in shlex.split(line) if part.startswith("--"))
