"""Commands import only what they need, and report mistakes before they import it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import ramify
from ramify.cli.parse import FEW_WORDS
from ramify.models import FAMILIES
from ramify.runtime.compilation import postpone_loops
from ramify.runtime.shapes import only_shapes
from tests.conftest import FIXTURES

MODELS = FIXTURES / "models"
SLOW_TO_IMPORT = ("torch", "torch._dynamo", "numba", "sympy", "nltk", "spacy")
SENTENCE = "the dog saw a cat\n"
REFUSED = """
import contextlib, io, json
from ramify.__main__ import main
for arguments in {}:
    sys.argv = ["ramify", *arguments]
    with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.suppress(SystemExit):
        main()
    print(json.dumps([said.getvalue(), [name for name in {} if name in sys.modules]]))
"""


def loaded_by(code: str, cwd: Path | None = None) -> set[str]:
    """The slow packages that a process has imported after running some code."""
    tell = f"print('loaded:', *(name for name in {SLOW_TO_IMPORT} if name in sys.modules))"
    return set(run(f"{code}\n{tell}", cwd).rpartition("loaded:")[2].split())


def run(code: str, cwd: Path | None = None) -> str:
    command = [sys.executable, "-c", f"import sys\n{code}"]
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=cwd, env=environment).stdout


def loaded_by_commands(commands: list[list[str]], cwd: Path) -> set[str]:
    """The packages imported by several commands in one process, because importing torch takes seconds."""
    return loaded_by(
        f"""
from ramify.__main__ import main
for arguments in {commands!r}:
    sys.argv = ["ramify", *arguments]
    try:
        main()
    except SystemExit as end:
        assert not end.code""",
        cwd,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with broken models and a sentence."""
    place = tmp_path_factory.mktemp("startup")
    (place / "one.txt").write_text(SENTENCE)
    config = json.loads((MODELS / "tn-pcfg" / "config.json").read_text())
    for name, changes in {"unknown": {"model": "x-pcfg"}, "unfinished": {}, "old": {"format": 1}}.items():
        (place / name).mkdir()
        (place / name / "config.json").write_text(json.dumps(config | changes))
        (place / name / "vocab.txt").write_text("<unk>\n")
    return place


WHOLE = str(MODELS / "tn-pcfg")


REFUSALS = (
    (["parse", "-m", "nowhere"], "nowhere: "),
    (["score", "-m", "."], ".: "),
    (["grammar", "-m", "nowhere"], "nowhere: "),
    (["generate", "-m", "nowhere"], "nowhere: "),
    (["export", "-m", "nowhere", "--out", "x"], "nowhere: "),
    (["evaluate", "-m", "name=nowhere", "gold"], "nowhere: "),
    (["compare", "left", "nowhere", "gold"], "nowhere: "),
    (["compare", ".", "left", "gold"], ".: "),
    (["train", "nowhere", "--out", "x"], "nowhere: "),
    (["train", ".", "--dev", "nowhere", "--out", "x"], "nowhere: "),
    (["parse", "-m", "unknown"], "'x-pcfg'"),
    (["parse", "-m", "unfinished"], "model.safetensors"),
    (["evaluate", "-m", "old", "one.txt"], "format"),
    (["train", "one.txt", "--teacher", "unknown", "--out", "x"], "'x-pcfg'"),
    (["parse", "-m", WHOLE, "missing.txt"], "missing.txt: cannot be read (No such file or directory)"),
    (["score", "-m", WHOLE, "old"], "old: cannot be read (Is a directory)"),
    (["parse", "-m", WHOLE, "--constraints", "missing"], "missing: "),
    (["parse", "-m", WHOLE, "--resume", "--decoder", "sample"], "resumed"),
    (["parse", "-m", WHOLE, "--wrong"], "--wrong"),
)
"""Mistakes, and a part of the error for each"""


def test_mistakes_are_reported_before_slow_imports(folder):
    """One process makes all the mistakes, one after another."""
    commands = [arguments for arguments, _ in REFUSALS]
    lines = run(REFUSED.format(commands, SLOW_TO_IMPORT), folder).splitlines()
    for line, (arguments, message) in zip(lines, REFUSALS, strict=True):
        said, loaded = json.loads(line)
        assert message in " ".join(said.split()), arguments
        assert loaded == [], arguments


@pytest.mark.slow
def test_one_sentence_needs_only_torch(folder):
    commands = [["parse", "-m", str(MODELS / family), "one.txt"] for family in ("tn-pcfg", "n-pcfg", "sn-pcfg")]
    assert loaded_by_commands(commands, folder) == {"torch"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [["many.txt"], ["one.txt", "--out", "one.trees"], ["one.txt", "--format", "json"]]
)
def test_many_sentences_files_and_numbers_need_compiled_loops(arguments, folder):
    (folder / "many.txt").write_text(SENTENCE * FEW_WORDS)
    assert loaded_by_commands([["parse", "-m", WHOLE, *arguments]], folder) == {"torch", "numba"}


@pytest.mark.parametrize("name", ["tn-pcfg", "n-pcfg", "sn-pcfg", "nbl-pcfg"])
def test_few_sentences_have_the_same_trees_as_many(name):
    """Few sentences use the torch engine and plain loops, many the compiled ones."""
    parser = ramify.load(MODELS / name)
    sentences = ["the dog saw a cat", "a cat", "dog", "the old cat in the garden saw the dog with a man"]
    with postpone_loops(FEW_WORDS):
        few = list(parser.analyse_many(sentences))
    for analysis, sentence in zip(few, sentences, strict=True):
        found, expected = (each.as_record(with_posteriors=True) for each in (analysis, parser.analyse(sentence)))
        posteriors, others = found.pop("posteriors"), expected.pop("posteriors")
        log_p, other_log_p = found.pop("log_probability"), expected.pop("log_probability")
        assert found == expected
        assert log_p == pytest.approx(other_log_p, abs=1e-4)
        for kind in ("constituents", "labels", "tags"):
            assert posteriors[kind] == pytest.approx(others[kind], abs=2e-5)


@pytest.mark.slow
def test_a_learner_does_not_import_the_compiler_of_torch():
    loaded = loaded_by(
        """
import torch
from ramify.models import FAMILIES
for model in (FAMILIES["n-pcfg"](2, 3, 4, embedding=4), FAMILIES["em-pcfg"](2, 3, 4)):
    learner = model.learner(0.01, 1.0)
    learner.update(model.objective(torch.tensor([[1, 2, 3]]), torch.tensor([3])))
    learner.load_state_dict(learner.state_dict())"""
    )
    assert loaded == {"torch", "numba"}


ARGUMENTS = {"nonterminals": 2, "preterminals": 3, "rank": 4, "words": 5, "embedding": 10, "latent": 2}


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_models_as_shapes_alone(name):
    family = FAMILIES[name]
    options = {key: value for key, value in ARGUMENTS.items() if key in ("words", *family.option_names())}
    with only_shapes():
        shapes = family(**options).state_dict()
    expected = family(**options).state_dict()
    assert list(shapes) == list(expected)
    for key, tensor in expected.items():
        assert shapes[key].device.type == "meta"
        assert (shapes[key].shape, shapes[key].dtype) == (tensor.shape, tensor.dtype)


@pytest.mark.slow
def test_shapes_need_no_slow_imports():
    loaded = loaded_by(
        f"""
from ramify.models import FAMILIES
from ramify.runtime.shapes import only_shapes
for family in FAMILIES.values():
    given = {{name: value for name, value in {ARGUMENTS}.items() if name in ("words", *family.option_names())}}
    with only_shapes():
        family(**given)"""
    )
    assert loaded == {"torch"}


def test_shapes_accept_a_generator():
    with only_shapes():
        drawn = torch.randn(2, 3, generator=torch.Generator())
    assert drawn.shape == (2, 3)
