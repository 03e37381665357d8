"""Recipes of teachers and students, averages in experiments, and `ramify focus`."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import pytest

import ramify
from ramify.corpus.builtin import builtin_treebank
from ramify.corpus.reading import read_sentences
from ramify.errors import RamifyError, RamifyWarning
from ramify.lab.plan import time_budget
from ramify.lab.plan.experiment import settings_of
from ramify.lab.plan.experiment_file import read_plan
from ramify.lab.plan.recipe import data_set, default_recipe, plan_of, read_recipe, recipe_from
from ramify.lab.plan.time_budget import expected_minutes, fitting_recipe, seconds_per_epoch, versions_of
from ramify.lab.run.focus import MODEL, PlannedFocus, prepare_focus, run_focus, stage_table
from ramify.lab.run.jobs import jobs_of
from ramify.lab.run.runner import _Experiment
from ramify.lab.run.status import Status
from ramify.training.data import prepare
from ramify.training.settings import Settings, load_settings
from tests.command import ramify as ramify_here
from tests.lab.run.test_kill import told
from tests.lab.tiny_experiment import TINY, WorkerHere, conllu_of, write_experiment, write_treebank

FOCUSED = TINY.replace('[models.dense]\nmodel = "n-pcfg"\n', '[models.student]\nrank = 8\nteachers = ["low-rank"]\n')
FOCUSED += '[averages.both]\nmembers = ["low-rank", "student"]\n'
RECIPE = """\
rounds = 2

[settings]
epochs = 2
embedding = 8
nonterminals = 4
preterminals = 8
batch_size = 8
checkpoint_minutes = 0

[teachers.low-rank]
rank = 8
seeds = [0, 1]

[teachers.dense]
model = "n-pcfg"

[student]
rank = 8
focus = 2.0
seeds = [3, 4]
"""
SHORT = RECIPE.replace("rounds = 2", "rounds = 1").replace("seeds = [0, 1]", "seeds = [0]")
"""Two teachers and two students: every run is a process, and starting one takes longer than its training."""


@pytest.fixture
def recipe_file(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('teachers = ["low-rank"]', 'teachers = ["other"]'), "teacher of student, 'other' is unknown"),
        (('teachers = ["low-rank"]', 'teachers = ["student"]'), "student is one of its own teachers"),
        (('teachers = ["low-rank"]', 'teachers = ["both"]'), "an average; name its members"),
        (('teachers = ["low-rank"]', 'teachers = ["low-rank"]\nteacher_seeds = [7]'), "seed-7, which no group"),
        (('teachers = ["low-rank"]', "focus = 1.0"), "focus"),
        (('teachers = ["low-rank"]', "teacher_seeds = [0]"), "teacher_seeds"),
        (('members = ["low-rank", "student"]', "members = []"), "members is empty"),
        (('members = ["low-rank", "student"]', 'members = ["low-rank"]\nweights = [1]'), "weights.? is unknown"),
        (("[averages.both]", "[averages.student]"), "a model and an average"),
    ],
)
def test_what_cannot_be_planned_is_refused(tmp_path, change, message):
    with pytest.raises(RamifyError, match=message):
        read_plan(write_experiment(tmp_path, FOCUSED.replace(*change)))


def test_a_model_can_have_its_own_seeds(tmp_path):
    text = FOCUSED.replace("[models.low-rank]", "[models.low-rank]\nseeds = [5, 6, 7]")
    runs = read_plan(write_experiment(tmp_path, text)).runs
    taught = tuple(f"small/low-rank/seed-{seed}" for seed in (5, 6, 7))
    assert {name for name in runs if "low-rank" in name} == set(taught)
    assert runs["small/student/seed-0"].teachers == taught
    assert runs["small/both/average"].members == (*taught, "small/student/seed-0", "small/student/seed-1")


def test_an_average_says_how_it_is_made(tmp_path):
    text = FOCUSED + "leave_out_collapsed = true\n"
    assert read_plan(write_experiment(tmp_path, text)).runs["small/both/average"].leave_out_collapsed


def test_what_needs_a_failed_run_fails_with_the_reason(tmp_path):
    plan = read_plan(write_experiment(tmp_path, FOCUSED))
    statuses = {name: Status(name, state="waiting") for name in plan.runs}
    for name in ("small/low-rank/seed-0", "small/low-rank/seed-1"):
        statuses[name].state = "training"
    jobs = jobs_of(plan, tmp_path)
    experiment = _Experiment(jobs, statuses, lambda *_: None, 0, lambda *_: pytest.fail("nothing may start"))
    assert experiment._next() is None  # their teachers are not trained yet
    statuses["small/low-rank/seed-0"].state = "finished"
    statuses["small/low-rank/seed-1"].state = "failed"
    assert experiment._next() is None
    assert experiment._waiting == []
    assert "small/low-rank/seed-1" in statuses["small/student/seed-0"].error
    assert statuses["small/both/average"].state == "failed"


def test_each_round_teaches_the_next(recipe_file, tmp_path):
    recipe = read_recipe(recipe_file, {"max_length": 20})
    data = data_set(write_treebank(tmp_path / "mine"))
    runs = plan_of(recipe, data).runs
    teachers = ("mine/low-rank/seed-0", "mine/low-rank/seed-1", "mine/dense/seed-0")
    assert runs["mine/student-1/seed-3"].teachers == teachers
    assert runs["mine/student-2/seed-4"].teachers == ("mine/student-1/seed-3", "mine/student-1/seed-4")
    assert runs["mine/teachers/average"].members == teachers
    result = runs["mine/result/average"]
    assert result.members == teachers
    assert result.leave_out_collapsed
    assert not runs["mine/teachers/average"].leave_out_collapsed
    assert runs["mine/students-2/average"].members == ("mine/student-2/seed-3", "mine/student-2/seed-4")
    settings = settings_of(runs["mine/student-2/seed-4"])
    assert (settings.focus, settings.seed, settings.max_length) == (2.0, 4, 20)
    assert settings_of(runs["mine/low-rank/seed-1"]).focus is None
    assert recipe.runs == 3 + 4
    assert recipe_from(recipe.as_record(), "again", {}) == recipe


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("rounds = 2", "rounds = 0"), "rounds"),
        (("rounds = 2", "round = 2"), "round.? is unknown"),
        (("rank = 8\nseeds = [0, 1]", "rank = 8\nfocus = 1.0"), "focus applies only to the student"),
        (("[teachers.dense]", "[teachers.student-9]"), "names that begin with student"),
        (("seeds = [3, 4]", "seeds = []"), "seeds is empty"),
        (("rank = 8\nfocus", "ranks = 8\nfocus"), "'ranks' is not a setting"),
        (("seeds = [0, 1]", "seeds = [-1]"), r"low-rank\]: seeds\[0\]"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused(tmp_path, change, message):
    (tmp_path / "recipe.toml").write_text(RECIPE.replace(*change))
    with pytest.raises(RamifyError, match=message):
        read_recipe(tmp_path / "recipe.toml", {})


def test_a_recipe_needs_teachers_and_a_file_that_exists(tmp_path):
    (tmp_path / "recipe.toml").write_text("[student]\npreterminals = 8\n")
    with pytest.raises(RamifyError, match="no teachers"):
        read_recipe(tmp_path / "recipe.toml", {})
    with pytest.raises(RamifyError, match=r"nowhere\.toml: this file does not exist"):
        read_recipe(Path("nowhere.toml"), {})
    with pytest.raises(RamifyError, match=r"nowhere: .* choose one of english, little-text, much-text"):
        read_recipe("nowhere", {})


@pytest.mark.parametrize(("sentences", "seeds", "focus"), [(9_999, [2, 3], 3.0), (10_000, [2, 2, 1, 1], 8.0)])
def test_default_recipes_have_teachers_of_different_kinds(sentences, seeds, focus):
    recipe = read_recipe(default_recipe(sentences), {"tokenise": None}).for_text(sentences)
    assert [len(each.seeds) for each in recipe.teachers] == seeds
    assert recipe.runs == sum(seeds) + 1
    assert len({seed for each in recipe.teachers for seed in each.seeds}) == sum(seeds)
    assert recipe_from(recipe.as_record(), "again", {}) == recipe
    first, *others = (each.with_seed(0) for each in recipe.teachers)
    assert first == load_settings(None, {}, sentences=sentences)
    assert all(each.crossing_penalty == 0 and each.initialisation == Settings().initialisation for each in others)
    student = recipe.student.with_seed(0)
    assert (student.preterminals, student.focus_on, student.focus) == (60, "average", focus)


def test_the_recipe_for_english_has_three_kinds_of_teachers_that_see_words_alone():
    recipe = read_recipe("english", {"preterminals": 8})
    kinds = [each.with_seed(each.seeds[-1]) for each in recipe.teachers]
    assert [(each.model, each.pre_norm, each.unit_rows) for each in kinds] == [
        ("tn-pcfg", False, True), ("tn-pcfg", True, True), ("hol-pcfg", False, False)
    ]  # fmt: skip
    assert all(each.crossing_penalty == 0 and each.preterminals == 8 for each in kinds)
    assert recipe.runs == 10


def test_the_amount_of_text_chooses_the_default_recipe(tmp_path, monkeypatch):
    data = write_treebank(tmp_path / "mine")
    for threshold, kinds in ((10_000, 2), (10, 4)):
        monkeypatch.setattr("ramify.lab.plan.recipe.FEW_SENTENCES", threshold)
        planned = prepare_focus(data, tmp_path / "out", None, {"preterminals": 8}, None, None)
        assert len(planned.recipe.teachers) == kinds
        assert all(each.settings["preterminals"] == 8 for each in planned.recipe.teachers)


def test_expected_minutes_follow_from_epochs_seeds_and_jobs(recipe_file, monkeypatch):
    monkeypatch.setattr(time_budget, "OVERHEAD", 1.0)
    monkeypatch.setattr(time_budget, "PARSING_EPOCHS", 0.0)
    recipe = read_recipe(recipe_file, {})
    seconds = {"low-rank": 30.0, "dense": 60.0, "student": 15.0}
    # Teachers: 2 x 60 s and 120 s; students: 2 x 30 s in each of two rounds.
    assert expected_minutes(recipe, seconds, 1) == pytest.approx((240 + 120) / 60)
    assert expected_minutes(recipe, seconds, 2) == pytest.approx((180 + 60) / 60)
    assert expected_minutes(recipe, seconds, 9) == pytest.approx((120 + 60) / 60)
    monkeypatch.setattr(time_budget, "PARSING_EPOCHS", 0.5)
    # Two students parse with three teachers (60 s), then two with two students (15 s).
    assert expected_minutes(recipe, seconds, 1) == pytest.approx((240 + 60 + 2 * 60 + 60 + 2 * 15) / 60)


def test_the_longest_version_that_fits_is_chosen(recipe_file, tmp_path, monkeypatch):
    monkeypatch.setattr(time_budget, "seconds_per_epoch", lambda grammars, _: {"dense": 60.0}.get(grammars.name, 20.0))
    recipe, data = read_recipe(recipe_file, {}), data_set(write_treebank(tmp_path / "mine"))
    whole, needed = fitting_recipe(recipe, data, 1000, jobs=1)
    assert whole.runs == recipe.runs
    assert [each.with_seed(0).epochs for each in (*whole.teachers, whole.student)] == [2, 2, 2]
    seconds = {"low-rank": 20.0, "dense": 60.0, "student": 20.0}
    for minutes in (needed * 0.99, needed * 0.7, needed * 0.5):
        chosen, expected = fitting_recipe(recipe, data, minutes, jobs=1)
        every = [expected_minutes(version, seconds, 1) for version in versions_of(recipe)]
        assert expected == max(each for each in every if each <= minutes)
        assert len(chosen.teachers) == 2  # of every kind at least one
    with pytest.raises(RamifyError, match="Even the shortest version"):
        fitting_recipe(recipe, data, 0.1, jobs=1)
    with pytest.raises(RamifyError, match="positive"):
        fitting_recipe(recipe, data, -1, jobs=1)


def test_the_seconds_of_an_epoch_are_those_of_its_steps(recipe_file, tmp_path, monkeypatch):
    """With a clock that counts the words of every step."""
    clock = [0.0]

    def step(model, learner, word_ids, noise, dropout):  # noqa: ARG001
        clock[0] += word_ids.numel()

    monkeypatch.setattr(time_budget, "train_step", step)
    monkeypatch.setattr(time_budget.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(time_budget, "TIMED_STEPS", 4000)
    recipe, data = read_recipe(recipe_file, {}), data_set(write_treebank(tmp_path / "mine"))
    words = sum(len(parse) for parse in read_sentences(data.split("train")).parses if 2 <= len(parse) <= 40)
    assert seconds_per_epoch(recipe.student, data) == pytest.approx(words, rel=0.02)


def test_data_is_a_file_or_a_folder(tmp_path):
    treebank = write_treebank(tmp_path / "mine")
    assert data_set(treebank).is_scored
    alone = data_set(treebank / "train.trees")
    assert (alone.name, alone.is_scored, alone.split("dev")) == ("train", False, None)
    (treebank / "test.trees").write_text("no tree\n")
    assert not data_set(treebank).is_scored
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "dev.txt").write_text("a b\n")
    with pytest.raises(RamifyError, match="no training file"):
        data_set(tmp_path / "empty")


def test_conllu_is_data_like_text_and_has_no_trees_to_score_against(tmp_path):
    for name, parses in builtin_treebank(0, train=40, dev=10, test=10).items():
        (tmp_path / f"{name}.conllu").write_text(conllu_of(parses))
    data = data_set(tmp_path)
    assert not data.is_scored
    assert data.split("test") is None
    settings = load_settings(None, {"preterminals": 8})
    prepared = prepare(data.split("train"), data.split("dev"), settings)
    assert (len(prepared.train), len(prepared.dev)) == (40, 10)
    assert "text" not in prepared.vocabulary.words  # comments are not words
    alone = data_set(tmp_path / "train.conllu")
    divided = prepare(alone.split("train"), alone.split("dev"), settings)
    assert len(divided.train) + len(divided.dev) == 40


@pytest.fixture(scope="session")
def focused(made_once) -> Path:
    """A folder with text, a recipe, and what that recipe leaves in `out`."""

    def fill(place: Path) -> None:
        parses = read_sentences(write_treebank(place / "mine") / "train.trees").parses
        (place / "sentences.txt").write_text("".join(" ".join(parse.words) + "\n" for parse in parses))
        (place / "recipe.toml").write_text(SHORT)
        with pytest.MonkeyPatch.context() as patched, warnings.catch_warnings():
            warnings.simplefilter("ignore", RamifyWarning)  # grammars as small as these may collapse
            patched.setattr("ramify.lab.run.runner.Worker", WorkerHere)
            run_focus(begun(place, place / "out"), jobs=2)

    return made_once("focus", fill)


def begun(place: Path, out: Path) -> PlannedFocus:
    return prepare_focus(place / "sentences.txt", out, str(place / "recipe.toml"), {}, None, 2)


@pytest.mark.slow
def test_raw_text_is_enough(focused, tmp_path):
    place = shutil.copytree(focused, tmp_path / "copied")
    planned = begun(place, place / "out")
    columns = {column.header: [*column.cells] for column in stage_table(planned).columns}
    assert columns["stage"] == ["teachers", "result", "students-1"]
    assert columns["S-F1"] == columns["S-F1 of their average"] == [""] * 3
    assert all(columns["agreement"])
    assert float(columns["dev perplexity"][1]) > 1
    ensemble = ramify.load(place / "out" / MODEL)
    assert ensemble.names == ("low-rank/seed-0", "dense/seed-0")
    assert ramify.load(planned.student).has_likelihood
    assert len(ensemble.parse("the old man saw a dog").leaves()) == 6
    again = prepare_focus(place / "sentences.txt", place / "out", None, {}, None, None)
    assert again.recipe == planned.recipe  # what was begun is continued
    run_focus(again)
    (place / "recipe.toml").write_text(RECIPE)
    with pytest.raises(RamifyError, match="another recipe"):
        begun(place, place / "out")


@pytest.mark.slow
@pytest.mark.parametrize("collapsed", ["low-rank", "seed"])
def test_grammars_that_collapsed_are_not_in_the_result(focused, tmp_path, monkeypatch, collapsed):
    place = shutil.copytree(focused, tmp_path / "copied")
    planned = begun(place, place / "out")
    shutil.rmtree(planned.model)

    def found(members, sentences):
        assert len(sentences) > 20
        return {place: "it is a test" for place, member in enumerate(members) if collapsed in member.name}

    monkeypatch.setattr("ramify.parser.ensemble_members._collapsed", found)
    every = [name.partition("/")[2] for name in planned.plan.runs["sentences/result/average"].members]
    kept = [name for name in every if collapsed not in name]
    with pytest.warns(RamifyWarning, match=collapsed) if kept else nullcontext():
        run_focus(planned)
    assert [*ramify.load(planned.model).names] == (kept or every)  # if all collapsed, nothing better is left


def test_a_failed_grammar_is_named(recipe_file, tmp_path, monkeypatch):
    planned = prepare_focus(write_treebank(tmp_path / "mine"), tmp_path / "out", str(recipe_file), {}, None, 1)
    failed = Status("mine/low-rank/seed-0", state="failed", error="no luck.")
    monkeypatch.setattr("ramify.lab.run.focus.run_experiment", lambda *_, **__: [failed, Status("other")])
    with pytest.raises(RamifyError, match=r"mine/low-rank/seed-0 failed: no luck\..*1 of 2"):
        run_focus(planned)


@pytest.mark.slow
def test_killed_three_times_at_different_stages_it_ends_with_the_same_result(focused, tmp_path):
    out, chance = tmp_path / "out", random.Random(1)
    command = [sys.executable, "-m", "ramify", "focus", str(focused / "sentences.txt"), "--out", str(out)]
    command += ["--recipe", str(focused / "recipe.toml"), "--jobs", "2"]

    def epochs() -> int:
        return sum(path.read_bytes().count(b"\n") for path in out.glob("runs/*/*/*/metrics.jsonl"))

    # Twice among the teachers, once among the students: 4 epochs each.
    for low, high in ((0, 1), (2, 3), (4, 5)):
        moment = chance.randint(low, high)
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        while epochs() < moment and process.poll() is None:
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.3))
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    with mock.patch("ramify.lab.run.runner.Worker", WorkerHere):
        finished = ramify_here(*command[3:])
    assert finished.returncode == 0, finished.stderr
    assert "students-1" in finished.stdout
    assert told(out) == told(focused / "out")
    assert len([name for name in told(out) if name.startswith("model/")]) == 2
