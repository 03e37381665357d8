"""Every command and every block of Python in the README and the docs is run, on small data."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from ramify.cli.common import app
from ramify.corpus.brackets import write_brackets
from ramify.corpus.builtin import builtin_treebank
from ramify.corpus.conllu import write_conllu
from ramify.corpus.sentence import Sentence
from ramify.drawing.svg import STYLE
from ramify.lab.plan.experiment_file import read_plan
from ramify.lab.plan.recipe import recipe_from
from ramify.lab.report.write_report import sections_of
from ramify.lab.results.collection import collect_results
from ramify.training.settings import load_settings
from tests.command import ramify
from tests.conftest import PROJECT
from tests.lab.made_results import FAMILIES, make_folder
from tests.lab.tiny_experiment import WorkerHere

EXAMPLE = PROJECT / "docs" / "example"
README = PROJECT / "README.md"
PAGES = [README, *sorted((PROJECT / "docs").rglob("*.md"))]
COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def toml_blocks() -> list[str]:
    return [content for page in PAGES for language, content in blocks(page) if language == "toml"]


def is_experiment(content: str) -> bool:
    return "models" in tomllib.loads(content)


def is_recipe(content: str) -> bool:
    return "student" in tomllib.loads(content)


def examples(page: Path) -> list[tuple[str, str]]:
    """The blocks of Python and the single commands of a page, with "python" or "ramify"."""
    found = []
    for language, content in blocks(page):
        if language == "python":
            found.append((language, content))
        elif language == "":
            # Commands for several machines are run by training/test_torchrun.py.
            lines = (line for line in content.splitlines() if "ramify " in line and "--nnodes" not in line)
            found += [("ramify", line) for line in lines if line.split()[0] in ("ramify", "echo", "torchrun")]
    return found


def pages_to_run() -> list[Path]:
    """Pages with examples, without those whose examples are all on another page."""
    found = {page: set(examples(page)) for page in PAGES if examples(page)}
    return [
        page for number, (page, those) in enumerate(found.items())
        if not any(those < others for others in found.values()) and those not in [*found.values()][:number]
    ]  # fmt: skip


PROSE = (
    """\
Dr. Smith's neighbour, who had never seen a badger, saw one at 5 a.m. on Sunday. "It was
grey," he said, "and quick!" Nobody else saw it; nobody believed him.

The well-known badger came back on Monday. It ate 3 % of the apples (the red ones) and left.
"""
    * 10
)


def write_files(place: Path) -> None:
    """The files that the commands name."""
    many = builtin_treebank(0, train=120, dev=30, test=30)
    # Short sentences, because the models in the docs have realistic sizes.
    short = {name: [parse for parse in parses if 4 <= len(parse) <= 10] for name, parses in many.items()}
    treebank = {name: short[name][:count] for name, count in (("train", 30), ("dev", 8), ("test", 8))}
    (place / "treebank").mkdir()
    for name, parses in treebank.items():
        trees = "".join(write_brackets(parse) + "\n" for parse in parses)
        (place / "treebank" / f"{name}.trees").write_text(trees)
    (place / "ud").mkdir()
    for name, parses in treebank.items():
        blocks_of = []
        for parse in parses:
            heads = [*range(2, len(parse) + 1), 0]
            blocks_of.append(write_conllu(Sentence.from_tokens(parse.words), parse.tags, parse, heads))
        (place / "ud" / f"{name}.conllu").write_text("\n".join(blocks_of) + "\n")
    shutil.copy(place / "ud" / "test.conllu", place / "other.conllu")
    (place / "sentences.txt").write_text("".join(" ".join(p.words) + "\n" for p in treebank["train"]))
    (place / "constraints.jsonl").write_text('{"must": [[0, 2]]}\n' + "{}\n" * (len(treebank["train"]) - 1))
    rows = ({"id": number, "body": " ".join(p.words), "lang": "en"} for number, p in enumerate(treebank["train"]))
    (place / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "prose.txt").write_text(PROSE)
    parsed = place / "treebank_3" / "parsed" / "mrg" / "wsj"
    for section in range(2, 24):
        (parsed / f"{section:02}").mkdir(parents=True)
        trees = "( (S (NP-SBJ (-NONE- *)) (VP (VB Buy) (NP (NNS shares))) (. .)) )\n" * 10
        (parsed / f"{section:02}" / f"wsj_{section:02}00.mrg").write_text(trees)
    for number, parse in enumerate(many["train"][:60]):
        (place / "mrg").mkdir(exist_ok=True)
        (place / "mrg" / f"{number:02}.mrg").write_text(write_brackets(parse))
    (place / "experiment.toml").write_text(next(content for content in toml_blocks() if is_experiment(content)))
    (place / "recipe.toml").write_text(next(content for content in toml_blocks() if is_recipe(content)))
    make_folder(place / "runs" / "paper", {"main": (["en", "de"], FAMILIES[2:])})
    (place / "docs").mkdir()
    (place / "docs" / "example").symlink_to(EXAMPLE)
    (place / "treebanks").mkdir()
    for name in tomllib.loads((EXAMPLE / "experiment.toml").read_text())["data"]:
        (place / "treebanks" / name).symlink_to("../treebank")


@pytest.fixture(scope="session")
def after_readme(made_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """The files that the commands name, and the results of the commands in the README, which other pages use."""

    def fill(place: Path) -> None:
        write_files(place)
        run_examples(place, examples(README))

    return made_once("docs", fill)


def run_examples(place: Path, those: list[tuple[str, str]]) -> None:
    with contextlib.chdir(place):
        for language, content in those:
            if language == "ramify" and not is_on_ray(content):
                run_command(content)
        run_on_ray([shlex.split(content, comments=True) for _, content in those if is_on_ray(content)])
    run_python(place, [content for language, content in those if language == "python"])


def run_python(place: Path, blocks_of: list[str]) -> None:
    """Run all examples in one process, because importing torch takes seconds, each block in a separate namespace."""
    code = "import json, sys\nfor block in json.load(sys.stdin): exec(block, {'__name__': '__main__'})"
    command = [sys.executable, "-W", "error", "-c", code]
    given = json.dumps(blocks_of)
    if blocks_of:
        result = subprocess.run(command, cwd=place, input=given, capture_output=True, text=True, check=False)
        assert result.returncode == 0, f"{blocks_of}: {result.stderr}"


def is_on_ray(content: str) -> bool:
    return "--engine ray" in content


ON_RAY = """
import contextlib, json, sys
from ramify.__main__ import main
from ramify.cluster.ray_session import ray_session

first, *others = json.load(sys.stdin)

def run(words):
    sys.argv = words
    try:
        main()
    except SystemExit as end:
        assert not end.code, words

run(first)
with ray_session(None):
    for words in others:
        run(words)
"""


def run_on_ray(lines: list[list[str]]) -> None:
    """In a separate process, whose threads and sockets end with it; one for all, because Ray takes seconds to start."""
    if lines:
        result = subprocess.run(
            [sys.executable, "-c", ON_RAY], input=json.dumps(lines), capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, f"{lines}: {result.stderr}"


def run_command(line: str) -> None:
    """Run `ramify ...` or `echo ... | ramify ...` without a shell, which avoids starting torch each time."""
    words = shlex.split(line, comments=True)
    given = ""
    if words[0] == "torchrun":
        words[words.index("--nproc-per-node") + 1] = "2"  # each process takes seconds to start
        command = [sys.executable, "-m", "torch.distributed.run", *words[1:]]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, f"{line}: {result.stderr}"
        return
    if words[0] == "echo":
        bar = words.index("|")
        given, words = " ".join(words[1:bar]) + "\n", words[bar + 1 :]
    assert words[0] == "ramify", line
    assert not {"|", ">", "<", "&&", ";"} & set(words), f"{line}: this shell is too simple for it"
    if words[1] == "serve":
        serve_briefly(words[1:])
        return
    with (
        mock.patch("ramify.lab.run.runner.Worker", WorkerHere),
        mock.patch("ramify.bench.timing.SQUARES", (8,)),  # the peak of a machine takes seconds to measure
    ):
        result = ramify(*words[1:], given=given)
    assert result.returncode == 0, f"{line}: {result.stderr}"


def serve_briefly(words: list[str]) -> None:
    """Stop a server as soon as it listens, on any free port."""
    if "--port" in words:
        words = [*words[: words.index("--port")], *words[words.index("--port") + 2 :]]
    command = [sys.executable, "-m", "ramify", *words, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = []
        for line in server.stderr:
            said.append(line)
            if " at http://" in line:
                break
        server.terminate()
        said += server.stderr
        assert server.wait(120) == 0, "".join(said)


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_to_run(), ids=lambda page: str(page.relative_to(PROJECT)))
def test_commands_and_python(page, after_readme, tmp_path):
    """The examples of the README were already run for the other pages."""
    place = shutil.copytree(after_readme, tmp_path / "place", symlinks=True, copy_function=os.link)
    before = examples(README)
    run_examples(place, [each for each in examples(page) if each not in before])


def test_there_are_commands_and_python():
    assert len([page for page in PAGES if examples(page)]) > 20
    run = {each for page in [README, *pages_to_run()] for each in examples(page)}
    assert run == {each for page in PAGES for each in examples(page)}
    assert len({each for page in PAGES for each in examples(page)}) > 100


def test_the_example_report_is_that_of_its_results():
    report = EXAMPLE / "report"
    exhibits = [exhibit for found in sections_of(collect_results(EXAMPLE)).values() for exhibit in found]
    tables = {exhibit.name: exhibit.table.as_csv() for exhibit in exhibits if exhibit.table}
    assert {path.stem: path.read_text() for path in (report / "tables").glob("*.csv")} == tables
    figures = {exhibit.name for exhibit in exhibits if exhibit.draw}
    assert {path.stem for path in (report / "figures").glob("*.svg")} == figures
    page = (report / "report.md").read_text()
    assert all(f"figures/{name}.svg" in page for name in figures)


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
    for content in toml_blocks():
        if is_recipe(content):
            assert recipe_from(tomllib.loads(content), "docs", {}).runs
        elif not is_experiment(content):
            (tmp_path / "settings.toml").write_text(content)
            load_settings(tmp_path / "settings.toml", {})


def test_experiments_in_the_docs_are_experiments(tmp_path):
    write_files(tmp_path)
    experiments = [content for content in toml_blocks() if is_experiment(content)]
    for content in experiments:
        (tmp_path / "another.toml").write_text(content)
        assert read_plan(tmp_path / "another.toml").runs
    assert len(experiments) == 3


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_options_named_in_the_docs_exist():
    help_pages = "".join(ramify(command, "--help").stdout for command in COMMANDS)
    for page in PAGES:
        for option in re.findall(r"`(--[a-z-]+)", page.read_text(encoding="utf-8")):
            assert option in help_pages or option == "--help", f"{page.name}: {option}"
        for line in (line for _, text in blocks(page) for line in text.splitlines() if line.startswith("ramify ")):
            assert all(part in help_pages for part in shlex.split(line) if part.startswith("--"))


def test_the_picture_in_the_docs_is_drawn_by_this_version():
    page, shown = (PROJECT / "docs" / "pictures.md").read_text(), (EXAMPLE / "tree.svg").read_text()
    (sentence,) = re.findall(r"!\[The tree of “(.+)”\]", page)
    assert f'aria-label="Tree of: {sentence}"' in shown
    assert f"<style>\n{STYLE}</style>" in shown
