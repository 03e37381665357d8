"""Without an extra, its tests are deselected with one line, and commands that need it say how to install it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import EXTRAS, PROJECT

WITHOUT = "import sys\nfor name in {names}:\n    sys.modules[name] = None\n"


def run_without(names: list[str], place: Path, *command: str) -> subprocess.CompletedProcess[str]:
    (place / "path").mkdir()
    (place / "path" / "sitecustomize.py").write_text(WITHOUT.format(names=names))
    path = os.pathsep.join([str(place / "path"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *command], cwd=PROJECT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_tests_of_missing_extras_are_deselected_with_one_line_each(tmp_path):
    files = ["tests/integrations/test_spacy.py", "tests/integrations/test_parquet.py"]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    result = run_without(list(EXTRAS.values()), tmp_path, "-m", "pytest", *options, *files)
    assert result.returncode == 5, result.stdout  # nothing is left to run
    for extra, library in EXTRAS.items():
        line = f"deselected: tests that need {library}; install it with: pip install 'ramify[{extra}]'"
        assert result.stdout.splitlines().count(line) == 1


REFUSED = """
import contextlib, io, json, sys
from ramify.__main__ import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["ramify", *arguments]
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code
    print(json.dumps([code, said.getvalue()]))
"""
PARSE = ["parse", "-m", "tests/fixtures/models/n-pcfg", "IN.txt"]
COMMANDS = (
    ([*PARSE, "--format", "parquet", "--out", "OUT.parquet"], "parquet"),
    ([*PARSE, "--input", "parquet"], "parquet"),
    ([*PARSE, "--engine", "ray", "--out", "OUT.txt"], "ray"),
    (["experiment", "main", "--data", "it=built-in", "--engine", "ray", "--out", "OUT"], "ray"),
)
"""Commands, and the extra that each of them needs"""


def test_commands_that_need_an_extra_say_what_to_install(tmp_path):
    """One process runs all commands, because starting a process takes seconds."""
    (tmp_path / "IN.txt").write_text("a dog\n")
    commands = [
        [str(tmp_path / word) if word.startswith(("IN", "OUT")) else word for word in words] for words, _ in COMMANDS
    ]
    result = run_without(["pyarrow", "ray"], tmp_path, "-c", REFUSED, json.dumps(commands))
    assert result.returncode == 0, result.stderr
    for line, (words, extra) in zip(result.stdout.splitlines(), COMMANDS, strict=True):
        code, said = json.loads(line)
        assert code == 2, words
        (sentence,) = said.splitlines()
        assert EXTRAS[extra] in sentence.lower(), words
        assert f"pip install 'ramify[{extra}]'" in sentence, words
    assert {path.name for path in tmp_path.iterdir()} == {"IN.txt", "path"}
