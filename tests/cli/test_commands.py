from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import ramify as ramify_package
from ramify.cli.train import DATA, MODEL, RUN
from ramify.corpus.brackets import read_brackets, write_brackets
from ramify.corpus.builtin import builtin_treebank
from ramify.training.settings import Settings
from tests.command import ramify

SMALL = ["--preterminals", "8", "--rank", "8", "--embedding", "16", "--epochs", "1", "--batch-size", "8"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    parses = builtin_treebank(0, train=100, dev=10, test=10)
    for name in ("train", "test"):
        (folder / f"{name}.trees").write_text("".join(write_brackets(parse) + "\n" for parse in parses[name]))
    result = ramify("train", folder / "train.trees", "--out", folder / "model", *SMALL)
    assert result.returncode == 0, result.stderr
    assert "epoch 1: perplexity" in result.stderr
    assert not result.stdout
    return folder


def test_help_names_every_command_and_setting():
    overview = ramify("--help").stdout
    for command in ("prepare", "train", "parse", "evaluate", "compare", "score", "demo"):
        assert command in overview
        page = ramify(command, "--help").stdout
        assert "Example: ramify" in page or "Example: echo" in page
    page = ramify("train", "--help").stdout
    options = "nonterminals preterminals rank embedding activation seed epochs batch-size learning-rate max-length"
    for option in f"{options} vocabulary device dev config model input".split():
        assert f"--{option}" in page


def test_help_shows_the_defaults():
    page = " ".join(ramify("train", "--help").stdout.split())
    assert "[default: 60]" in page
    assert "half of the preterminals]" in page


def test_help_does_not_wait_for_torch():
    code = """
import contextlib, sys
from ramify.__main__ import main
for arguments in (["--version"], ["--help"], ["train", "--help"], ["evaluate", "--help"]):
    sys.argv = ["ramify", *arguments]
    with contextlib.suppress(SystemExit):
        main()
print("loaded:", {"torch", "numba", "spacy"} & set(sys.modules))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--preterminals" in result.stdout
    assert result.stdout.endswith("loaded: set()\n")


@pytest.mark.parametrize("command", [[], ["train"], ["parse"], ["evaluate"], ["bench"], ["experiment"]])
def test_flags_take_no_value_in_help(command):
    page = ramify(*command, "--help").stdout
    assert "--help" in page
    assert "bool" not in page.lower()


def test_a_switch_can_be_turned_off_again(folder, tmp_path):
    config = tmp_path / "settings.toml"
    config.write_text("compound = true\n")
    few = tmp_path / "few.trees"
    few.write_text("".join((folder / "train.trees").read_text().splitlines(True)[:20]))
    arguments = ("train", few, "--config", config, "--out")
    options = ["--preterminals", "4", "--rank", "4", "--embedding", "8", "--epochs", "1", "--batch-size", "20"]
    for given, expected in (((), True), (("--no-compound",), False)):
        out = tmp_path / f"run{len(given)}"
        done = ramify(*arguments, out, *options, *given)
        assert done.returncode == 0, done.stderr
        assert json.loads((out / "config.json").read_text())["settings"]["compound"] is expected


def test_help_groups_every_setting_that_is_named():
    names = {setting.name for setting in fields(Settings)}
    assert {*DATA, *MODEL, *RUN} <= names
    page = ramify("train", "--help").stdout
    for panel in ("Data", "Model", "Switches", "Training", "Run"):
        assert f"─ {panel} ─" in page


def test_the_package_lists_its_names():
    code = "import sys, ramify; print(dir(ramify) == sorted(ramify.__all__), 'torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "True False\n"
    assert all(hasattr(ramify_package, name) for name in dir(ramify_package))


def test_version():
    assert ramify("--version").stdout.startswith("ramify 0.")


def test_parse_prints_one_tree_per_line_in_order(folder):
    sentences = "the dog will see a cat\n\nword\nÉtrange ünseen 42 words\n"
    result = ramify("parse", "-m", folder / "model", "-", given=sentences)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) == 4
    assert lines[1] == ""
    for line, sentence in zip(lines, sentences.splitlines(), strict=True):
        found = [word for parse in read_brackets([line], "line") for word in parse.words]
        assert found == sentence.split()


def test_parse_formats(folder):
    for name, check in {
        "json": lambda line: json.loads(line)["tokens"] == ["the", "dog", "sees"],
        "spans": lambda line: line.startswith("0-3:NT-"),
        "pretty": lambda line: line.strip() == "TOP",
        "svg": lambda line: line.startswith("<svg "),
        "html": lambda line: line == "<!DOCTYPE html>",
        "forest": lambda line: line == r"\begin{forest}",
        "qtree": lambda line: line == r"\Tree",
    }.items():
        result = ramify("parse", "-m", folder / "model", "--format", name, "--posteriors", given="the dog sees\n")
        assert result.returncode == 0, result.stderr
        assert check(result.stdout.splitlines()[0]), result.stdout


def test_parse_reads_the_words_of_trees(folder):
    result = ramify("parse", "-m", folder / "model", folder / "test.trees")
    gold = [parse.words for parse in read_brackets((folder / "test.trees").read_text().splitlines(), "gold")]
    assert [parse.words for parse in read_brackets(result.stdout.splitlines(), "out")] == gold


def test_score_prints_a_number_per_line(folder):
    result = ramify("score", "-m", folder / "model", given="the dog will see a cat\nword\n")
    first, second = result.stdout.split()
    assert float(first) < 0
    assert second == "-inf"


def test_evaluate_a_model_and_a_baseline(folder):
    result = ramify("evaluate", "-m", folder / "model", folder / "test.trees", "--json")
    record = json.loads(result.stdout)
    assert 0 < record["scores"]["sentence_f1"] < 100
    assert record["perplexity"] > 1
    shown = ramify("evaluate", "--baseline", "oracle", folder / "test.trees", "--convention", "kim").stdout
    assert "100.00" in shown
    assert "S-F1 kim" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["parse", "-m", "nowhere"], "nowhere: this model folder does not exist"),
        (["parse", "-m", "MODEL", "nowhere"], "nowhere: cannot be read"),
        (["parse", "-m", "MODEL", "--format", "xml"], "xml"),
        (["parse", "-m", "MODEL", "--device", "tpu"], "device 'tpu' is not available"),
        (["train", "nowhere", "--out", "x"], "nowhere: does not exist"),
        (["train", "DATA", "--out", "MODEL"], "is not empty"),
        (["train", "DATA", "--out", "x", "--preterminals", "0"], "preterminals is 0"),
        (["train", "DATA", "--out", "x", "--model", "gpt"], "model 'gpt' is unknown"),
        (["train", "DATA", "--out", "x", "--config", "nowhere"], "nowhere: cannot be read"),
        (["train", "DATA", "--out", "x", "--words", "A,B"], "separated by spaces"),
        (["evaluate", "DATA"], "--model FOLDER, --predicted FILE or --baseline NAME"),
        (["evaluate", "--predicted", "nowhere", "DATA"], "nowhere: cannot be read"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(folder, tmp_path, arguments, message):
    names = {"MODEL": str(folder / "model"), "DATA": str(folder / "train.trees"), "x": str(tmp_path / "x")}
    result = ramify(*(names.get(argument, argument) for argument in arguments))
    assert result.returncode == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "x").exists()


def test_debug_shows_the_traceback():
    command = [sys.executable, "-m", "ramify", "--debug", "parse", "-m", "nowhere"]
    assert "Traceback" in subprocess.run(command, capture_output=True, text=True, check=False).stderr


@pytest.mark.slow
def test_a_closed_pipe_is_not_an_error(folder):
    many = folder / "many.txt"
    many.write_text("the dog will see a cat\n" * 5000)
    command = f"{sys.executable} -m ramify parse -m {folder / 'model'} {many} | head -n 1"
    result = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert result.stdout.startswith("(TOP")
    assert not result.stderr
    assert result.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("ramify evaluate --baseline right test.trees | true", 0, ""),
        ("ramify compare left right test.trees --json | true", 0, ""),
        ("ramify evaluate --baseline right test.trees >&-", 2, "standard output: cannot be written (Bad file"),
        ("ramify score -m model test.trees > /dev/full", 2, "standard output: cannot be written (No space left on"),
        (
            "PYTHONIOENCODING=latin-1 ramify evaluate --predicted łódź=test.trees test.trees",
            2,
            "cannot be written in latin-1; set",
        ),
        ("ramify evaluate --baseline nowhere test.trees 2>&-", 2, ""),
    ],
)
def test_a_result_that_cannot_be_written(folder, command, code, message):
    line = command.replace("ramify", f"{sys.executable} -m ramify")
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, check=False, cwd=folder
    )
    assert result.returncode == code, result.stderr
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == bool(message)


def test_brackets_in_names_are_printed_as_they_are(folder):
    assert "[/x].txt: cannot be read" in ramify("score", "-m", folder / "model", "[/x].txt").stderr


def test_the_demo_replaces_no_run_but_its_own(folder):
    before = (folder / "model" / "model.safetensors").read_bytes()
    result = ramify("demo", "--out", folder / "model")
    assert result.returncode == 2
    assert "is not empty" in result.stderr
    assert (folder / "model" / "model.safetensors").read_bytes() == before
