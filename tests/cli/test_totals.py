"""Unknown words in the output of `parse`, `score` and `evaluate`, and the totals of `score`."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

import ramify
from ramify.corpus.streaming import WINDOW
from ramify.corpus.vocabulary import Vocabulary
from ramify.evaluation.coverage import NOT_COMPARABLE
from ramify.evaluation.evaluation import mean_of_runs
from ramify.storage.model_files import checksum
from tests.command import ramify as command

TINY = {"preterminals": 4, "nonterminals": 2, "rank": 4, "embedding": 8, "epochs": 1, "batch_size": 8}
TREES = "".join(f"(S (NP (D the) (N {noun})) (V ran))\n" for noun in ["dog", "dog", "fox"] * 4)
TEST = "(S (NP (D the) (N wolf)) (V ran))\n(S (NP (D the) (N dog)) (V ran))\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("totals")
    (folder / "train.trees").write_text(TREES)
    (folder / "test.trees").write_text(TEST)
    ramify.train(folder / "train.trees", folder / "all", dev=folder / "train.trees", **TINY)
    ramify.train(folder / "train.trees", folder / "frequent", dev=folder / "train.trees", min_count=5, **TINY)
    return folder


def test_parse_counts_unknown_words_but_no_punctuation(folder: Path, tmp_path: Path) -> None:
    (folder / "text.txt").write_text("the dog ran .\nthe fox ran !\n" * 5)
    ramify.train(folder / "text.txt", tmp_path / "model", **TINY)
    result = command("parse", "-m", tmp_path / "model", "--format", "json", given="The wolf ran , Wolf !\n\nthe dog\n")
    first, second, third = map(json.loads, result.stdout.splitlines())
    assert first["unknown"] == [False, True, False, False, True, False]
    assert (second["unknown"], third["unknown"]) == ([], [False, False])
    assert "2 of 6 words (33.3 %)" in result.stderr
    brackets = command("parse", "-m", tmp_path / "model", given="The wolf ran , Wolf !\n").stdout
    assert re.findall(r"([^ ()]+)\)", brackets) == ["The", "wolf", "ran", ",", "Wolf", "!"]
    assert not command("parse", "-m", tmp_path / "model", given="the dog\n").stderr


def test_score_ends_with_totals(folder: Path) -> None:
    given = "the wolf ran\nthe dog ran\ndog\n\n"
    result = command("score", "-m", folder / "all", given=given)
    numbers = [float(line) for line in result.stdout.splitlines()]
    assert len(numbers) == 4
    assert numbers[2:] == [-math.inf] * 2
    total = sum(numbers[:2])
    expected = ramify.evaluate(ramify.load(folder / "all"), folder / "test.trees")
    assert "two words or more: 2; 2 shorter" in result.stderr
    assert "1 of 7 words (14.3 %)" in result.stderr
    assert float(re.search(r"Log p\(w\): (\S+)", result.stderr)[1]) == pytest.approx(total, abs=1e-5)
    figures = [
        math.exp(-total / 8), expected.coverage.perplexity_with_spelling, expected.coverage.perplexity_of_known_words
    ]  # fmt: skip
    assert figures[0] == pytest.approx(expected.perplexity, rel=1e-5)
    shown = re.search(r"Perplexity: (\S+), with spelling (\S+), of known words (\S+) ", result.stderr)
    assert [float(figure.replace(",", "")) for figure in shown.groups()] == [
        pytest.approx(figure, abs=0.06) for figure in figures
    ]
    assert expected.coverage.perplexity_signature in result.stderr


def test_score_of_nothing_has_no_perplexity(folder: Path) -> None:
    result = command("score", "-m", folder / "all", given="dog\n")
    assert result.returncode == 0
    assert "two words or more: 0; 1 shorter" in result.stderr
    assert "erplexity" not in result.stderr


def test_score_says_that_sentences_have_no_derivation(tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text("NT-0 -> T-0 T-1 [1.0]\nT-0 -> 'the' [1.0]\nT-1 -> 'dog' [1.0]\n")
    result = command("score", "-m", tmp_path / "rules.txt", given="the dog\nthe wolf\n")
    assert result.returncode == 0, result.stderr
    assert "1 of 2 sentences has no parse: no derivation 1" in result.stderr
    assert "Perplexity: inf, of known words 1.0 " in result.stderr


def test_a_resumed_score_says_which_lines_its_totals_cover(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the wolf ran\n" * WINDOW + "the dog ran\nthe fox ran\n")
    arguments = ("score", "-m", folder / "all", tmp_path / "text.txt", "--out", tmp_path / "out.txt")
    assert command(*arguments).returncode == 0
    whole = (tmp_path / "out.txt").read_text()
    # The files of a run that stopped after its first group of lines.
    (tmp_path / "out.txt").unlink()
    (tmp_path / "out.txt.partial").write_text("".join(whole.splitlines(keepends=True)[:WINDOW]))
    made_with = {"command": "score", "version": ramify.__version__, "input": "auto", "tokenise": None}
    made_with |= {"split-sentences": None, "max-length": None, "model": checksum(folder / "all")}
    (tmp_path / "out.txt.partial.json").write_text(json.dumps(made_with))
    resumed = command(*arguments, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert f"two words or more: 2; {WINDOW:,} lines of the earlier run" in resumed.stderr
    assert (tmp_path / "out.txt").read_text() == whole


def test_evaluate_reports_unknown_words_of_each_model(folder: Path) -> None:
    result = command("evaluate", "-m", folder / "all", folder / "test.trees", "--json")
    coverage = json.loads(result.stdout)["coverage"]
    assert (coverage["vocabulary"], coverage["words"], coverage["unknown"]) == (5, 6, 1)
    assert coverage["perplexity_with_spelling"] > json.loads(result.stdout)["perplexity"]
    assert "unknown 16.67 %" in coverage["perplexity_signature"]
    shown = command("evaluate", "-m", folder / "all", "--baseline", "right", folder / "test.trees").stdout
    assert "1 of 6 words (16.7 %)" in shown
    assert coverage["perplexity_signature"] in shown
    assert NOT_COMPARABLE not in shown


def test_perplexities_of_different_vocabularies_have_a_note(folder: Path) -> None:
    models = ("-m", folder / "all", "-m", folder / "frequent")
    assert NOT_COMPARABLE in command("evaluate", *models, folder / "test.trees").stdout
    rows = [ramify.evaluate(ramify.load(folder / name), folder / "test.trees") for name in ("all", "frequent")]
    assert rows[0].coverage.perplexity_signature != rows[1].coverage.perplexity_signature
    mean = mean_of_runs(rows, "both")
    assert mean.coverage.perplexity_signature is None
    assert mean.signature == rows[0].signature
    named = ("-m", f"x={folder / 'all'}", "-m", f"x={folder / 'frequent'}")
    lines = command("evaluate", *named, folder / "test.trees", "--json").stdout.splitlines()
    assert json.loads(lines[2])["best_by_dev_likelihood"] is None  # likelihoods that cannot be compared


def test_baselines_have_no_vocabulary(folder: Path) -> None:
    assert json.loads(command("evaluate", "--baseline", "right", folder / "test.trees", "--json").stdout)[
        "coverage"
    ] is None  # fmt: skip


def test_infinite_perplexities_are_null(folder: Path) -> None:
    parser = ramify.load(folder / "all")
    found = ramify.evaluate(parser, folder / "test.trees")
    assert Vocabulary(parser.vocabulary.words).checksum == parser.vocabulary.checksum
    broken = type(found.coverage)(**{**vars(found.coverage), "perplexity_with_spelling": math.inf})
    record = type(found)(**{**vars(found), "coverage": broken}).as_record()
    assert record["coverage"]["perplexity_with_spelling"] is None
    assert record["coverage"]["unknown"] == 1
