"""Several systems in one table, on the command line within this process, because starting another takes seconds."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import ramify
from ramify.cli import app
from ramify.corpus.brackets import write_brackets
from ramify.corpus.builtin import builtin_treebank
from ramify.errors import RamifyError
from ramify.parser.systems import System, common_rule
from ramify.terminal import detail_tables, evaluation_table

TINY = {"preterminals": 8, "rank": 8, "embedding": 16, "epochs": 2, "batch_size": 8}


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def records(*arguments: object) -> list[dict]:
    return [json.loads(line) for line in run("evaluate", "--json", *arguments).splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("systems")
    for name, parses in builtin_treebank(0, train=60, dev=10, test=20).items():
        (folder / f"{name}.trees").write_text("".join(write_brackets(parse) + "\n" for parse in parses))
    for seed in range(2):
        ramify.train(folder / "train.trees", folder / f"seed{seed}", seed=seed, **TINY)
    (folder / "bare.trees").write_text(
        "".join(f"({' ('.join(p.words)}{')' * len(p)}\n" for p in builtin_treebank(0, train=1, dev=1, test=20)["test"])
    )
    return folder


def test_runs_of_one_system_get_a_row_for_their_mean(folder: Path) -> None:
    first, second, mean, right = records(
        "-m", folder / "seed0", "-m", folder / "seed1", "--baseline", "right", folder / "test.trees"
    )
    f1 = [row["scores"]["sentence_f1"] for row in (first, second)]
    assert mean["run_f1"] == f1
    assert mean["scores"]["sentence_f1"] == pytest.approx(sum(f1) / 2)
    assert mean["f1_std"] == pytest.approx(abs(f1[0] - f1[1]) / 2)
    assert mean["f1_max"] == max(f1)
    assert right["system"] == "right branching"
    best = {
        seed: min(
            json.loads(line)["dev_perplexity"] for line in (folder / seed / "metrics.jsonl").read_text().splitlines()
        )
        for seed in ("seed0", "seed1")
    }
    assert mean["best_by_dev_likelihood"] == f"{folder / min(best, key=best.__getitem__)} (mbr)"
    assert first["calibration"]["bins"][0]["spans"] > 0
    assert first["labels"]["items"] > 0
    assert first["tags"]["v_measure"] > 0
    shown = run("evaluate", "-m", folder / "seed0", "-m", folder / "seed1", "--details", folder / "test.trees")
    for part in (
        "over 2 runs, max", "best by dev likelihood:", "by length", "Recall by label", "V-measure", "posterior"
    ):  # fmt: skip
        assert part in shown


def test_other_settings_are_another_system(folder: Path, tmp_path: Path) -> None:
    ramify.train(folder / "train.trees", tmp_path / "other", **{**TINY, "rank": 4, "epochs": 1})
    rows = records("-m", folder / "seed0", "-m", tmp_path / "other", folder / "test.trees")
    assert [bool(row["run_f1"]) for row in rows] == [False, False]
    named = records("-m", f"ours={folder / 'seed0'}", "-m", f"ours={tmp_path / 'other'}", folder / "test.trees")
    assert [row["system"] for row in named] == ["ours (mbr) #1", "ours (mbr) #2", "mean of 2: ours"]


def test_a_baseline_keeps_the_name_it_is_given(folder: Path) -> None:
    rows = records("--baseline", "mine=right", "--baseline", "right", folder / "test.trees")
    assert [row["system"] for row in rows] == ["mine", "right branching"]
    assert "A: mine, S-F1" in run("compare", "mine=right", "left", folder / "test.trees")


def test_predicted_trees_and_baselines_share_a_table(folder: Path) -> None:
    given = [f"PRPN={folder / 'bare.trees'}", f"gold={folder / 'test.trees'}", f"gold={folder / 'test.trees'}"]
    options = [part for text in given for part in ("--predicted", text)]
    rows = records(*options, "--baseline", "right", "--evalb", folder / "test.trees")
    named = {row["system"]: row for row in rows}
    assert named["PRPN"]["scores"] == named["right branching"]["scores"]
    assert named["PRPN"]["evalb"] is None
    assert named["gold #2"]["evalb"]["all"]["f1"] == 100
    mean = named["mean of 2: gold"]
    assert (mean["scores"]["sentence_f1"], mean["f1_std"], mean["best_by_dev_likelihood"]) == (100, 0, None)
    shown = run("evaluate", *options, "--evalb", "--max-length", 10, folder / "test.trees")
    assert "sentences of 2-10 words" in shown
    assert "EVALB COLLINS.prm" in shown
    assert "\nPRPN" in re.sub(" +", "", shown)


@pytest.mark.parametrize("width", [80, 60])
def test_no_digit_is_lost_in_a_narrow_terminal(folder: Path, width: int) -> None:
    rows = [ramify.evaluate(name, folder / "test.trees") for name in ("random", "oracle")]
    console = Console(width=width, file=io.StringIO())
    console.print(evaluation_table(rows), *detail_tables(rows))
    shown = console.file.getvalue()
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= width
    assert "100.00" in shown


def test_a_pipe_gets_whole_lines_whatever_the_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    shown = run("evaluate", "--baseline", "random", "--baseline", "oracle", folder / "test.trees")
    assert re.search(r"^ *oracle +100\.00 +100\.00 +100\.00 ", shown, re.MULTILINE)
    assert re.search(r"^ *random +[0-9.]+±[0-9.]+ ", shown, re.MULTILINE)


def test_compare_prints_the_difference_and_its_significance(folder: Path) -> None:
    left_right = json.loads(run("compare", "left", "right", folder / "test.trees", "--json", "--samples", 500))
    scores = [
        row["scores"]["sentence_f1"]
        for row in records("--baseline", "left", "--baseline", "right", folder / "test.trees")
    ]
    assert [system["sentence_f1"] for system in left_right["systems"]] == scores
    assert left_right["difference"] == pytest.approx(scores[1] - scores[0])
    assert left_right["low"] < left_right["difference"] < left_right["high"]
    assert "sha256" in left_right["signature"]
    shown = run("compare", folder / "bare.trees", folder / "seed0", folder / "test.trees")
    assert "B - A: " in shown
    assert "95 % interval" in shown
    same = run("compare", f"flat={folder / 'bare.trees'}", "right", folder / "test.trees")
    assert "B - A: +0.00, 95 % interval +0.00 to +0.00; p = 1.0000" in same


def edited(folder: Path, out: Path, **changes: object) -> Path:
    out.mkdir()
    for file in folder.iterdir():
        (out / file.name).write_bytes(file.read_bytes())
    config = json.loads((out / "config.json").read_text())
    (out / "config.json").write_text(json.dumps({**config, **changes}))
    return out


def test_mistakes_are_reported(folder: Path, tmp_path: Path) -> None:
    other_words = edited(folder / "seed0", tmp_path / "other-words", words="PU")
    systems = [System.of("model", str(path)) for path in (folder / "seed0", other_words)]
    assert str(common_rule(systems[1:])) == "PU"
    assert common_rule([System.guess("left")]) is None
    with pytest.raises(RamifyError, match="different rules for words"):
        common_rule(systems)
    no_metrics = edited(folder / "seed1", tmp_path / "no-metrics")
    (no_metrics / "metrics.jsonl").write_text('{"epoch": 1}\n')
    with pytest.raises(RamifyError, match="the dev perplexity of an epoch"):
        run("evaluate", "-m", folder / "seed0", "-m", no_metrics, folder / "test.trees")
    (no_metrics / "metrics.jsonl").unlink()
    rows = records("-m", folder / "seed0", "-m", no_metrics, folder / "test.trees")
    assert rows[-1]["best_by_dev_likelihood"] is None
    for arguments, message in {
        ("evaluate", folder / "test.trees"): "Nothing to evaluate; give --model",
        ("compare", "up", "left", folder / "test.trees"): "up: is not a model folder, a file of trees or a baseline",
        ("evaluate", "--baseline", "up", folder / "test.trees"): "baseline 'up' is unknown",
        ("evaluate", "--predicted", "nowhere", folder / "test.trees"): "nowhere: cannot be read",
        ("compare", folder, "left", folder / "test.trees"): "is not a model folder",
    }.items():
        with pytest.raises(RamifyError, match=message):
            run(*arguments)


def test_runs_from_before_a_setting_existed_belong_to_the_others(folder: Path, tmp_path: Path) -> None:
    old = edited(folder / "seed1", tmp_path / "old")
    config = json.loads((old / "config.json").read_text())
    del config["settings"]["min_count"]
    (old / "config.json").write_text(json.dumps(config))
    assert System.of("model", str(old)).group == System.of("model", str(folder / "seed0")).group
