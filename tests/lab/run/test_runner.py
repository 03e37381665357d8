"""Real experiments on little data: what they leave, what they do not do again, and what they refuse."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from safetensors.numpy import load_file

import ramify as package
from ramify.errors import RamifyError
from ramify.evaluation.baselines import BASELINES
from ramify.lab.plan.experiment_file import read_plan
from ramify.lab.results.collection import collect_results
from ramify.lab.run import experiment_folder as folder_module
from ramify.lab.run.jobs import jobs_of
from ramify.lab.run.runner import check_jobs, run_experiment, survey
from ramify.lab.run.scoring import baseline_result, gold_of, model_result
from ramify.storage.locks import locked_folder
from tests.command import ramify
from tests.lab.made_results import tiny, write
from tests.lab.tiny_experiment import TINY, WorkerHere, conllu_of, write_experiment, write_treebank

ONE = TINY.replace("seeds = [0, 1]", "seeds = [0]")
WHOLE = ONE.replace('[models.dense]\nmodel = "n-pcfg"\n', '[models.student]\nrank = 8\nteachers = ["low-rank"]\n')
WHOLE += '[averages.both]\nmembers = ["low-rank", "student"]\n'
DENSE_ALONE = TINY[: TINY.index("[models.low")] + TINY[TINY.index("[models.dense") :]
BROKEN = ONE.replace("rank = 8", "rank = 8\nlearning_rate = 1e30\ngain = 1e30")


def states(statuses) -> dict[str, str]:
    return {status.name: status.state for status in statuses}


@pytest.fixture(scope="session")
def finished(made_once) -> Path:
    """A folder with the experiment WHOLE, done, in `out`: a grammar, a student focused on it, and their average."""

    def run(place: Path) -> None:
        order = []
        statuses = run_experiment(
            read_plan(write_experiment(place, WHOLE)), place / "out", jobs=2, start=WorkerHere,
            on_change=lambda status, event: order.append(status.name) if event["event"] == "finished" else None,
        )  # fmt: skip
        assert set(states(statuses).values()) == {"finished"}
        (place / "order.json").write_text(json.dumps(order))

    return made_once("experiment", run)


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    return shutil.copytree(finished, tmp_path / "copied")


def test_results_are_those_of_the_model_folders(finished):
    folder = finished / "out" / "runs" / "small" / "low-rank" / "seed-0"
    parser = package.load(folder)
    for decoder in ("mbr", "viterbi"):
        result = json.loads((folder / "results" / f"{decoder}.json").read_text())
        expected = package.evaluate(parser, finished / "treebank" / "test.trees", decoder=decoder)
        told = result["evaluation"]
        assert told["scores"]["sentence_f1"] == expected.scores.sentence_f1
        assert told["signature"] == expected.signature
        assert told["perplexity"] == pytest.approx(expected.perplexity, rel=1e-6)
        assert sum(result["sentence_f1"]) / 12 == pytest.approx(expected.scores.sentence_f1, abs=1e-3)
        names = ("format", "kind", "data", "model", "seed", "decoder", "split", "threads")
        assert [result[name] for name in names] == [1, "model", "small", "low-rank", 0, decoder, "test", 1]
        config = json.loads((folder / "config.json").read_text())
        assert result["settings"] == config["settings"]
        assert config["threads"] == 1
        assert result["parameters"] == sum(map(np.size, load_file(folder / "model.safetensors").values()))
        for epoch, line in zip(result["epochs"], (folder / "metrics.jsonl").read_text().splitlines(), strict=True):
            assert {name: value for name, value in epoch.items() if value is not None} == json.loads(line)
        assert result["seconds_per_epoch"] > 0
        assert result["peak_memory_mb"] > 10
        assert result["machine"]["cores"] == os.cpu_count()
        words = sum(
            len(parse.words)
            for parse in package.corpus.reading.read_sentences(finished / "treebank" / "test.trees").parses
        )
        assert sum(result["induced"]["usage"].values()) == words - 12


def test_the_dev_set_is_scored_instead_where_the_file_says_so(finished, tmp_path):
    """By the models that are there already, as if they were of this experiment."""
    text = 'split = "dev"\n' + WHOLE.replace('"treebank"', f'"{finished / "treebank"}"')
    plan = read_plan(write_experiment(tmp_path, text))
    assert plan.as_record().data["small"].split == "dev"
    data, run = plan.data["small"], plan.runs["small/low-rank/seed-0"]
    parser, dev = package.load(finished / "out" / run.path), finished / "treebank" / "dev.trees"
    gold = gold_of(data, parser.word_rule)
    for result, system in (
        (model_result(parser, gold, data, run, "mbr", {}), parser),
        (baseline_result("left", data, gold), "left"),
    ):
        expected = package.evaluate(system, dev)
        assert result.split == "dev"
        assert result.scores.signature == expected.signature
        assert result.f1 == expected.scores.sentence_f1
        assert result.scores.rule_cosine == expected.rule_cosine
        assert len(result.sentence_f1) == 10  # the test set has 12


def test_teachers_are_trained_before_students_and_averages_last(finished):
    plan = read_plan(finished / "tiny.toml")
    order = json.loads((finished / "order.json").read_text())
    for run in plan.runs.values():
        assert all(order.index(other) < order.index(run.name) for other in run.needs)
    out = finished / "out"
    config = json.loads((out / "runs/small/student/seed-0/config.json").read_text())
    assert [teacher["name"] for teacher in config["teachers"]] == ["low-rank/seed-0"]
    members = plan.runs["small/both/average"].members
    assert members == ("small/low-rank/seed-0", "small/student/seed-0")
    ensemble = package.Ensemble([out / "runs" / name for name in members])
    expected = package.evaluate(ensemble, finished / "treebank" / "test.trees")
    study = collect_results(out)
    average = next(each for each in study.results if each.model == "both")
    assert average.f1 == pytest.approx(expected.scores.sentence_f1)
    assert (average.members, average.seed, study.problems) == (members, None, [])
    assert average.scores.agreement is not None


def test_baselines_are_scored_once_for_every_data_set(finished):
    for name in ("left", "random"):
        result = json.loads((finished / "out" / "baselines" / "small" / f"{name}.json").read_text())
        expected = package.evaluate(name, finished / "treebank" / "test.trees")
        assert result["kind"] == "baseline"
        assert result["evaluation"]["scores"]["sentence_f1"] == expected.scores.sentence_f1
        assert len(result["sentence_f1"]) == 12
        # Of random trees, the mean of all draws.
        assert sum(result["sentence_f1"]) / 12 == pytest.approx(expected.scores.sentence_f1, abs=1e-3)
    assert len([*(finished / "out" / "baselines" / "small").iterdir()]) == 2 < len(BASELINES)


def test_the_plan_is_written(finished):
    plan = json.loads((finished / "out" / "experiment.json").read_text())
    assert plan["format"] == 1
    assert [run["path"] for run in plan["groups"][0]["runs"]] == [
        "runs/small/low-rank/seed-0",
        "runs/small/student/seed-0",
        "runs/small/both/average",
    ]
    assert all((finished / "out" / run["path"] / "results" / "mbr.json").exists() for run in plan["runs"])


def test_what_is_finished_is_not_done_again(copied, monkeypatch):
    monkeypatch.setattr("ramify.lab.run.runner.Worker", None)
    files = {path: path.stat().st_mtime_ns for path in (copied / "out" / "runs").rglob("*") if path.is_file()}
    statuses = run_experiment(read_plan(copied / "tiny.toml"), copied / "out")
    assert set(states(statuses).values()) == {"finished"}
    assert files == {path: path.stat().st_mtime_ns for path in (copied / "out" / "runs").rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_missing_result_is_made_again_without_training(copied):
    folder = copied / "out" / "runs" / "small" / "low-rank" / "seed-0"
    lost = folder / "results" / "viterbi.json"
    before = json.loads(lost.read_text())
    lost.write_text(lost.read_text()[:100])
    halfway = next(status for status in survey(read_plan(copied / "tiny.toml"), copied / "out") if status.epoch)
    assert (halfway.name, halfway.state, halfway.epoch) == ("small/low-rank/seed-0", "waiting", 2)
    kept = {name: (folder / name).stat().st_mtime_ns for name in ("model.safetensors", "results/mbr.json")}
    statuses = run_experiment(read_plan(copied / "tiny.toml"), copied / "out", start=WorkerHere)
    assert set(states(statuses).values()) == {"finished"}
    assert json.loads(lost.read_text()) == before
    assert kept == {name: (folder / name).stat().st_mtime_ns for name in kept}


@pytest.mark.slow
def test_a_run_that_fails_is_told_and_the_others_go_on(tmp_path):
    path, out = write_experiment(tmp_path, BROKEN), tmp_path / "out"
    with mock.patch("ramify.lab.run.runner.Worker", WorkerHere):
        result = ramify("experiment", path, "--out", out, "--jobs", 2)
    assert result.returncode == 1
    assert "small/low-rank/seed-0 failed: Training diverged in epoch 1" in result.stderr
    assert "1 of 3 runs failed: small/low-rank/seed-0." in result.stderr
    assert "small/dense/seed-0: finished, S-F1" in result.stderr
    failed = json.loads((out / "runs" / "small" / "low-rank" / "seed-0" / "failed.json").read_text())
    assert failed["error"].startswith("Training diverged in epoch 1")
    assert (out / "runs" / "small" / "dense" / "seed-0" / "results" / "mbr.json").exists()
    assert states(survey(read_plan(path), out))["small/low-rank/seed-0"] == "waiting"


@pytest.mark.slow
def test_a_process_that_breaks_down_is_a_failure_too_and_can_be_tried_again(tmp_path, monkeypatch):
    plan, out = read_plan(write_experiment(tmp_path, DENSE_ALONE.replace("[0, 1]", "[0]"))), tmp_path / "out"
    with monkeypatch.context() as broken:
        broken.setattr("ramify.lab.run.jobs._CODE", "import os, sys; sys.stderr.write('ouch'); os.kill(os.getpid(), 9)")
        assert set(states(run_experiment(plan, out)).values()) == {"failed"}
    failed = json.loads((out / "runs" / "small" / "dense" / "seed-0" / "failed.json").read_text())
    assert "SIGKILL; if memory ran out, give fewer --jobs" in failed["error"]
    assert failed["details"] == "ouch"
    assert set(states(run_experiment(plan, out)).values()) == {"finished"}
    assert not [*out.rglob("failed.json")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("epochs = 2", "epochs = 3"), "low-rank/seed-0: holds a run with epochs 2, not 3"),
        (lambda text: "threads = 2\n" + text, "holds a run with 1 threads, not 2; set threads = 1"),
        (lambda text: text.replace("rank = 8", ""), "holds a run with rank 8, not None"),
        (lambda text: 'split = "dev"\n' + text, "begun with split = 'test' for small, not 'dev'"),
    ],
)
def test_runs_with_other_settings_are_refused(copied, change, message):
    (copied / "tiny.toml").write_text(change(WHOLE))
    with pytest.raises(RamifyError, match=message):
        run_experiment(read_plan(copied / "tiny.toml"), copied / "out")


def test_other_data_and_other_experiments_are_refused(copied):
    plan = read_plan(write_experiment(copied, WHOLE, "another"))
    with pytest.raises(RamifyError, match="holds the experiment 'tiny'; give another --out"):
        run_experiment(plan, copied / "out")
    test = copied / "treebank" / "test.trees"
    test.write_text(test.read_text() * 2)
    with pytest.raises(RamifyError, match="was begun with other files of small"):
        run_experiment(read_plan(copied / "tiny.toml"), copied / "out")


TWO_SETS = ONE.replace('small = "treebank"', 'small = "treebank"\nother = "other"')


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda place: (place / "other" / "test.trees").write_text("(S (A a) (B b))\n"), "other files of other"),
        (
            lambda place: write_experiment(
                place, TWO_SETS.replace('other = "other"', 'other = {folder = "other", words = "none"}')
            ),
            "begun with words = 'auto' for other, not 'none'",
        ),
    ],
)
def test_data_that_were_changed_while_the_plan_lacked_them_are_refused(tmp_path, change, message):
    write_treebank(tmp_path / "other")
    out = tmp_path / "out"
    out.mkdir()
    folder_module.write_plan(out, read_plan(write_experiment(tmp_path, TWO_SETS)))
    for text in (ONE, ONE.replace("Tiny", "Tinier")):
        folder_module.write_plan(out, read_plan(write_experiment(tmp_path, text)))
    assert list(json.loads((out / "experiment.json").read_text())["data"]) == ["small"]
    folder_module.check_same(out, read_plan(write_experiment(tmp_path, TWO_SETS)))
    change(tmp_path)
    with pytest.raises(RamifyError, match=message):
        folder_module.check_same(out, read_plan(tmp_path / "tiny.toml"))


def test_a_damaged_result_is_made_again(tmp_path):
    plan, out = read_plan(write_experiment(tmp_path, ONE)), tmp_path / "out"
    run, baselines = (jobs_of(plan, out)[name] for name in ("small/dense/seed-0", "small/baselines"))
    result = tiny("small", "dense", 0, 50.0)
    files = {out / "runs/small/dense/seed-0/results/mbr.json": result, out / "baselines/small/left.json": result}
    for damaged in (True, False):
        for file, content in files.items():
            write(file, {"format": 1} if damaged else content)
        assert run.missing() == (("mbr",) if damaged else ())
        assert baselines.missing() == (("left", "random") if damaged else ("random",))


def test_a_run_whose_folder_cannot_be_made_is_one_that_failed(tmp_path, monkeypatch):
    monkeypatch.setattr("ramify.lab.run.jobs._CODE", "raise SystemExit(1)")
    plan, out = read_plan(write_experiment(tmp_path, ONE)), tmp_path / "out"
    out.mkdir()
    folder_module.write_plan(out, plan)
    (out / "runs").write_text("in the way")
    assert set(states(run_experiment(plan, out)).values()) == {"failed"}


def test_a_folder_in_which_nothing_can_be_written_is_told(tmp_path):
    (tmp_path / ".lock").mkdir()
    with pytest.raises(RamifyError, match="cannot be written"), locked_folder(tmp_path):
        pass


def test_a_folder_of_something_else_is_refused(tmp_path):
    plan = read_plan(write_experiment(tmp_path))
    with pytest.raises(RamifyError, match="is not empty and holds no experiment"):
        run_experiment(plan, tmp_path)
    with pytest.raises(RamifyError, match="is a file"):
        run_experiment(plan, tmp_path / "tiny.toml")


def test_two_experiments_in_one_folder_are_refused(copied, monkeypatch):
    monkeypatch.setattr(folder_module, "LOCK_PATIENCE", 0.2)
    with (
        locked_folder(copied / "out"),
        pytest.raises(RamifyError, match=r"out: another ramify process"),
    ):
        run_experiment(read_plan(copied / "tiny.toml"), copied / "out")
    run_experiment(read_plan(copied / "tiny.toml"), copied / "out")


def begin(path: Path, out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ramify", "experiment", str(path), "--out", str(out), "--jobs", "2"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)


def wait_for(out: Path, pattern: str, process: subprocess.Popen[str]) -> None:
    while not [*out.glob(pattern)]:
        assert process.poll() is None
        time.sleep(0.05)


LONG = DENSE_ALONE.replace("epochs = 2", "epochs = 100000\npatience = 100000")


@pytest.mark.slow
def test_a_stop_saves_every_run_and_ends_every_process(tmp_path):
    out = tmp_path / "out"
    process = begin(write_experiment(tmp_path, LONG), out)
    wait_for(out, "runs/*/*/*/metrics.jsonl", process)
    # As a terminal does it: Ctrl-C goes to all processes.
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 130
    assert error.splitlines()[-1].startswith("Stopped")
    assert "Traceback" not in error
    assert not [*out.rglob("failed.json")]
    with locked_folder(out):
        pass


@pytest.mark.slow
def test_processes_that_are_left_alone_end_and_hold_the_lock_until_then(tmp_path):
    out = tmp_path / "out"
    process = begin(write_experiment(tmp_path, LONG), out)
    wait_for(out, "runs/*/*/*/metrics.jsonl", process)
    process.kill()
    process.communicate(timeout=60)
    with locked_folder(out, patience=60):
        checkpoints = {path: path.read_bytes() for path in out.rglob("checkpoint.safetensors")}
        time.sleep(1)
        assert checkpoints == {path: path.read_bytes() for path in out.rglob("checkpoint.safetensors")}
    assert not [*out.rglob("failed.json")]


def test_the_command_line(copied):
    path, out = copied / "tiny.toml", copied / "out"
    result = ramify("experiment", path, "--out", out)
    assert result.returncode == 0
    assert "4 jobs: 4 finished" in result.stdout
    assert "ramify report" in result.stderr
    dry = ramify("experiment", path, "--dry-run", "--data", f"small={copied / 'treebank'}")
    assert "4 jobs: 4 waiting" in dry.stdout
    assert ramify("experiment", "main", "--show").stdout.startswith("# The paper's main table")
    for arguments, message in (
        ([path], "--out"),
        ([path, "--data", "small", "--out", out], "NAME=FOLDER"),
        ([path, "--data", "small=a", "--data", "small=b", "--out", out], "small is given twice"),
    ):
        result = ramify("experiment", *arguments)
        assert result.returncode == 2
        assert message in result.stderr


def test_more_threads_than_cores_are_told(finished, monkeypatch):
    monkeypatch.setattr("ramify.lab.run.runner.cores", lambda: 2)
    plan = read_plan(finished / "tiny.toml")
    check_jobs(plan, None)
    check_jobs(plan, 2)
    with pytest.warns(package.RamifyWarning, match=r"3 jobs of 1 threads .* 2 cores"):
        check_jobs(plan, 3)


@pytest.mark.slow
def test_a_lexicalised_model_learns_the_same_from_conllu_as_from_trees_of_the_same_words(tmp_path):
    text = ONE[: ONE.index("[models")].replace('small = "treebank"', 'small = "treebank"\nheads = "heads"')
    text = text.replace("epochs = 2", "epochs = 1\nmin_count = 1").replace('"left", "random"', '"left"')
    path = write_experiment(tmp_path, text + '[models.bilexical]\nmodel = "nbl-pcfg"\nrank = 8\n')
    (tmp_path / "heads").mkdir()
    for file in (tmp_path / "treebank").iterdir():
        parses = package.corpus.reading.read_sentences(file).parses
        (tmp_path / "heads" / f"{file.stem}.conllu").write_text(conllu_of(parses))
    statuses = run_experiment(read_plan(path), tmp_path / "out", jobs=2, start=WorkerHere)
    finished = ("small/baselines", "small/bilexical/seed-0", "heads/bilexical/seed-0")
    assert states(statuses) == dict.fromkeys(finished, "finished")  # there are no trees in `heads` for baselines
    runs = {name: tmp_path / "out" / "runs" / name / "bilexical" / "seed-0" for name in ("small", "heads")}
    weights, same = (load_file(folder / "model.safetensors") for folder in runs.values())
    assert weights.keys() == same.keys()
    assert all(np.array_equal(value, same[name]) for name, value in weights.items())
    results = {name: json.loads((folder / "results" / "mbr.json").read_text()) for name, folder in runs.items()}
    expected = package.evaluate(package.load(runs["small"]), tmp_path / "treebank" / "test.trees")
    assert results["small"]["evaluation"]["scores"]["sentence_f1"] == expected.scores.sentence_f1
    assert "evaluation" not in results["heads"]
    assert results["heads"]["epochs"][0]["dev_perplexity"] == results["small"]["epochs"][0]["dev_perplexity"]
