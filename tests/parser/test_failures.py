"""Sentences without a parse: every command counts and reports their flat trees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ramify
from ramify.corpus.brackets import read_brackets
from ramify.evaluation.evaluation import mean_of_runs, score
from ramify.evaluation.gold import Prediction, load_gold
from ramify.terminal.tally import Tally
from tests.command import ramify as command

RULES = """S -> N V [0.5] | N S [0.5]
N -> 'dog' [0.5] | 'cat' [0.5]
V -> 'saw' [0.5] | 'sat' [0.5]
"""
DERIVED, NOT_DERIVED = "dog cat saw", "saw saw dog cat"
LONG = "dog " * 30 + "saw"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "rules.pcfg").write_text(RULES)
    return tmp_path / "rules.pcfg"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """The fourth of seven lines is too long."""
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in [DERIVED] * 3 + [LONG] + [DERIVED] * 3))
    return tmp_path / "text"


def flat(line: str) -> bool:
    [parse] = read_brackets([line], "line")
    return not len(parse.spans)


def test_a_line_that_is_too_long_costs_one_tree(model: Path, text: Path) -> None:
    result = command("parse", "-m", model, text, "--max-length", "20")
    assert result.returncode == 0
    assert [flat(line) for line in result.stdout.splitlines()] == [False] * 3 + [True] + [False] * 3
    assert "1 of 7 sentences" in result.stderr
    assert "too long 1" in result.stderr
    assert f"{text}, line 4" in result.stderr
    assert "no parse" not in command("parse", "-m", model, text).stderr


def test_a_line_that_does_not_fit_into_memory_costs_one_tree(
    model: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ramify.models.batches.CHART_BYTES", 0)
    monkeypatch.setattr("ramify.models.batches.chart_bytes", lambda _, length: length)
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("", (), {"available": 20}))
    result = command("parse", "-m", model, text, "--format", "json")
    failures = [json.loads(line)["failure"] for line in result.stdout.splitlines()]
    assert failures == [None] * 3 + ["too long"] + [None] * 3
    assert f"{text}, line 4" in result.stderr


def test_strict_stops_and_keeps_what_was_done(model: Path, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("parse", "-m", model, text, "--max-length", "20", "--out", out)
    result = command(*arguments, "--strict")
    assert result.returncode == 2
    assert f"{text}, line 4" in result.stderr
    assert not out.exists()
    assert len((tmp_path / "out.partial").read_text().splitlines()) == 3
    assert command(*arguments, "--resume").returncode == 0
    assert len(out.read_text().splitlines()) == 7
    printed = command("score", "-m", model, text, "--max-length", "20", "--strict")
    assert (printed.returncode, len(printed.stdout.splitlines())) == (2, 3)
    assert command("parse", "-m", model, text, "--strict").returncode == 0


def test_scores_of_sentences_without_a_parse_are_minus_infinity(model: Path) -> None:
    result = command("score", "-m", model, "--max-length", "20", given=f"{NOT_DERIVED}\n{DERIVED}\ndog\n\n{LONG}\n")
    assert [line == "-inf" for line in result.stdout.splitlines()] == [True, False, True, True, True]
    for part in ("2 of 5 sentences", "no derivation 1 (standard input, line 1)", "too long 1 (standard input, line 5)"):
        assert part in result.stderr


def test_many_failures_are_named_in_part(model: Path) -> None:
    tally = Tally()
    assert len(list(tally.watch(ramify.load(model).analyse_many([NOT_DERIVED] * 7 + [DERIVED])))) == 8
    [reported] = tally.lines()
    assert "7 of 8" in reported
    assert "sentence 5; ...)" in reported
    assert "sentence 6" not in reported


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    right = "(S (N saw) (X (N saw) (Y (N dog) (N cat))))"
    (tmp_path / "gold").write_text(f"(S (N dog))\n{right}\n(S (N dog) (X (N cat) (V saw)))\n{right}\n")
    return tmp_path / "gold"


def test_scoring_takes_the_flat_tree_as_it_is(model: Path, gold: Path) -> None:
    """Right branching, as earlier versions scored these sentences, would be completely correct."""
    result = ramify.evaluate(ramify.load(model), gold)
    assert result.failures == {"no derivation": (2, 4)}
    assert (result.not_derived, result.scores.sentences) == (2, 3)
    assert result.scores.sentence_f1 == pytest.approx(100 / 3)
    assert ramify.evaluate("right", gold).scores.sentence_f1 == 100
    assert ramify.evaluate("right", gold).not_derived == 0
    assert result.calibration is not None
    assert sum(row.spans for row in result.calibration.bins) == 2


def test_evaluate_and_compare_report_them(model: Path, gold: Path) -> None:
    for shown in (command("evaluate", "-m", model, gold), command("compare", model, "right", gold)):
        assert shown.returncode == 0, shown.stderr
        assert "2 of 3 sentences" in shown.stdout
        assert "sentence 2; sentence 4" in shown.stdout
    [row] = command("evaluate", "-m", model, gold, "--json").stdout.splitlines()
    record = json.loads(row)
    assert (record["not_derived"], record["failures"]) == (2, {"no derivation": [2, 4]})
    compared = json.loads(command("compare", "right", model, gold, "--json").stdout)
    assert [system["failures"] for system in compared["systems"]] == [{}, {"no derivation": [2, 4]}]
    assert "no parse" not in command("evaluate", "--baseline", "right", gold).stdout


def test_a_mean_of_runs_names_the_failures_of_all(gold: Path) -> None:
    trees = load_gold(gold)
    runs = [
        score(trees, Prediction("run", trees.parses, failures=failures, in_log_space=1))
        for failures in ({}, {"no derivation": (4,)}, {"no derivation": (2, 4), "too long": (3,)})
    ]
    mean = mean_of_runs(runs, "mean")
    assert mean.failures == {"no derivation": (2, 4), "too long": (3,)}
    assert mean.in_log_space == 1
