"""What an experiment's file says, and everything that is refused before a run begins."""

from __future__ import annotations

import errno
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from ramify.errors import RamifyError, RamifyWarning
from ramify.lab.plan.experiment import _files, settings_of
from ramify.lab.plan.experiment_file import presets, read_plan
from ramify.lab.results.schema import as_record
from ramify.lab.run.jobs import Job
from ramify.lab.run.runner import run_experiment, survey
from ramify.lab.run.scoring import check_data, gold_of
from ramify.lab.run.status import Status
from ramify.training.data import prepare
from ramify.training.settings import load_settings
from tests.command import ramify
from tests.conftest import PROJECT
from tests.lab.tiny_experiment import TINY, write_experiment, write_treebank

GROUPS = (
    TINY
    + """
[[group]]
name = "all"
title = "Everything"

[[group]]
name = "more"
models = ["dense"]
seeds = [5, 0]
decoders = ["viterbi"]
"""
)


def test_data_times_models_times_seeds(tmp_path):
    plan = read_plan(write_experiment(tmp_path))
    assert plan.name == "tiny"
    assert plan.title == "Tiny"
    assert plan.threads == 1
    assert plan.baselines == ("left", "random")
    assert list(plan.runs) == [f"small/{model}/seed-{seed}" for seed in (0, 1) for model in ("low-rank", "dense")]
    low_rank, dense = plan.runs["small/low-rank/seed-1"], plan.runs["small/dense/seed-0"]
    assert [low_rank.settings[name] for name in ("model", "rank", "seed")] == ["tn-pcfg", 8, 1]
    assert [dense.settings[name] for name in ("model", "preterminals", "epochs")] == ["n-pcfg", 8, 2]
    assert (low_rank.decoders, dense.decoders) == (("mbr", "viterbi"), ("mbr",))
    assert plan.data["small"].split("dev") == tmp_path / "treebank" / "dev.trees"


def test_groups_share_runs(tmp_path):
    plan = read_plan(write_experiment(tmp_path, GROUPS))
    everything, more = plan.groups
    assert (everything.name, everything.title, more.title) == ("all", "Everything", "more")
    assert len(everything.runs) == 4
    assert [run.name for run in more.runs] == ["small/dense/seed-5", "small/dense/seed-0"]
    assert len(plan.runs) == 5
    assert plan.runs["small/dense/seed-0"].decoders == ("mbr", "viterbi")
    assert plan.runs["small/dense/seed-1"].decoders == ("mbr",)
    record = as_record(plan.as_record())
    assert [len(group["runs"]) for group in record["groups"]] == [4, 2]
    assert record["groups"][1]["runs"][0] == {
        "data": "small",
        "model": "dense",
        "seed": 5,
        "decoders": ("viterbi",),
        "path": "runs/small/dense/seed-5",
    }
    assert str(tmp_path) not in str(record)


def test_settings_of_a_model_win_over_those_of_the_data_and_these_over_common_ones(tmp_path):
    text = TINY.replace('[data]\nsmall = "treebank"', '[data.small]\nfolder = "treebank"\nepochs = 3\nbatch-size = 2')
    plan = read_plan(write_experiment(tmp_path, text + "epochs = 4\n"))
    settings = {run.model: settings_of(run) for run in plan.runs.values()}
    assert (settings["low-rank"].epochs, settings["low-rank"].batch_size) == (3, 2)
    assert (settings["dense"].epochs, settings["dense"].batch_size) == (4, 2)


def test_data_is_where_the_command_line_says(tmp_path, monkeypatch):
    path = write_experiment(tmp_path / "a")
    elsewhere = write_treebank(tmp_path / "b" / "treebank")
    monkeypatch.chdir(tmp_path)
    for plan in (read_plan(path, {"small": "b/treebank"}), read_plan(path, root=tmp_path / "b")):
        assert plan.data["small"].split("test") == elsewhere / "test.trees"
    built_in = read_plan(path, {"small": "built-in"}).data["small"]
    assert built_in.files is None
    for data in (built_in, read_plan(path).data["small"]):  # as a process gets it
        assert Job.from_json(Job("name", data, tmp_path, 1, ()).as_json()).data == data


def test_without_names_all_treebanks_of_the_root_are_taken(tmp_path):
    path = write_experiment(tmp_path, TINY.replace('[data]\nsmall = "treebank"', ""))
    write_treebank(tmp_path / "another")
    (tmp_path / "empty").mkdir()
    assert list(read_plan(path, root=tmp_path).data) == ["another", "treebank"]
    assert list(read_plan(path, {"mine": str(tmp_path / "another")}).data) == ["mine"]
    with pytest.raises(RamifyError, match="--data NAME=FOLDER"):
        read_plan(path)


def test_presets_are_the_papers(tmp_path):
    write_treebank(tmp_path / "en-wsj-sample")
    plans = {name: read_plan(name, root=tmp_path) for name in presets()}
    assert set(plans) == {"main", "symbols", "multilingual", "ablations", "decoding", "families"}
    symbols = {run.settings["preterminals"] for run in plans["symbols"].runs.values()}
    assert symbols == {30, 60, 120, 250, 500}
    ablations = {run.model: settings_of(run) for run in plans["ablations"].runs.values()}
    assert ablations["direct"].model == "td-pcfg"
    assert (ablations["tanh"].activation, ablations["sigmoid"].activation) == ("tanh", "sigmoid")
    assert ablations["compound"].compound
    assert all(len(run.decoders) >= 2 for run in plans["decoding"].runs.values())
    families = {(run.data, run.settings["epochs"]) for run in plans["families"].runs.values()}
    assert families == {("built-in", 1), ("en-wsj-sample", 3)}


REFUSED = {
    "an unknown key": ("seeds =", "sedes =", ("tiny.toml", "sedes", "seeds")),
    "seeds that are no list": ("[0, 1]", "2", ("seeds", "a list", "a whole number")),
    "a seed that is no number": ("[0, 1]", '["0"]', (r"seeds\[0\]", "a whole number", "a string")),
    "a seed below zero": ("[0, 1]", "[-1]", (r"seeds\[0\]", ">= 0")),
    "a seed twice": ("[0, 1]", "[0, 0]", ("seeds", "twice")),
    "no seeds": ("[0, 1]", "[]", ("seeds is empty",)),
    "an unknown baseline": ('"left"', '"up"', ("tiny.toml, baselines", "'up'")),
    "an unknown decoder": ('["mbr", "viterbi"]', '["viterby"]', ("low-rank", "decoders", "'viterbi'")),
    "a rate of many digits": ("epochs = 2", f"learning_rate = {'9' * 400}", ("learning_rate", "64")),
    "a seed of very many digits": ("[0, 1]", f"[0x{'f' * 9999}]", ("seeds",)),
    "threads of very many digits": ("seeds =", f"threads = 0x{'f' * 9999}\nseeds =", ("threads",)),
    "a compound model that is none": ("rank = 8", "model = 'td-pcfg'\ncompound = true", ("compound", "td-pcfg")),
    "a name of many bytes": ("[models.dense]", f'[models."{"語" * 70}"]', ("200 bytes",)),
    "a name with an odd beginning": ("[models.dense]", '[models."-a"]', ("'-a'", r"\[models\]")),
    "an unknown device": ("epochs = 2", "device = 'gpu'", ("low-rank on small", "'gpu'")),
    "a title that is no text": ('"Tiny"', "3", ("title", "a string", "a whole number")),
    "a split that cannot be scored": ("seeds =", "split = 'train'\nseeds =", ("split", "'train'")),
    "threads below one": ("seeds =", "threads = 0\nseeds =", ("threads", ">= 1")),
    "an unknown setting": ("epochs = 2", "epoch = 2", (r"\[settings\]", "'epoch'", "'epochs'")),
    "a setting of the wrong type": ("epochs = 2", "epochs = '2'", ("low-rank on small", "epochs", "whole number")),
    "a setting out of range": ("epochs = 2", "epochs = 0", ("low-rank on small", "epochs is 0")),
    "a setting twice": ("epochs = 2", "batch-size = 2", (r"\[settings\]", "twice")),
    "seed as a setting": ("epochs = 2", "seed = 2", (r"\[settings\]", "seed ", "seeds = ")),
    "an unknown model": ('"n-pcfg"', '"m-pcfg"', ("dense on small", "'m-pcfg'")),
    "a decoder the model cannot have": (
        'model = "n-pcfg"',
        'model = "n-pcfg"\ndecoders = ["viterbi-rank"]',
        ("dense on small", "viterbi-rank", "low-rank"),
    ),
    "a best parse that is too large": (
        "rank = 8",
        "nonterminals = 300\npreterminals = 600",
        ("low-rank on small", "mbr", "viterbi-rank"),
    ),
    "a name that is no folder's": ("[models.dense]", '[models."../dense"]', ("'../dense'",)),
    "no model": (TINY[TINY.index("[models.low") :], "", (r"\[models.NAME\]",)),
    "models that are no tables": ("[models.dense]", "[models]\ndense = 3 #", (r"\[models.dense\]", "table")),
    "a data set that is no folder": ('"treebank"', '"treebnak"', ("treebnak", "--data", "--data-root")),
    "data that is no name": ('"treebank"', "3", (r"\[data.small\]", "table")),
    "a folder that is no name": ('"treebank"', "{folder = 3}", (r"\[data.small\]", "folder", "a string")),
    "an unknown setting of data": ('"treebank"', "{folder = 'treebank', wrods = 'ptb'}", ("'wrods'", "'words'")),
    "no TOML": ("seeds =", "seeds", ("tiny.toml", "TOML")),
}


def check_refused(path: Path, facts: tuple[str, ...]) -> None:
    """Each fact must be in the one sentence of the error."""
    with pytest.raises(RamifyError) as refused:
        read_plan(path)
    assert "\n" not in str(refused.value)
    for fact in facts:
        assert re.search(fact, str(refused.value)), str(refused.value)


@pytest.mark.parametrize("case", REFUSED)
def test_is_refused(tmp_path, case):
    old, new, facts = REFUSED[case]
    assert old in TINY
    check_refused(write_experiment(tmp_path, TINY.replace(old, new)), facts)


REFUSED_GROUPS = {
    "a group without a name": ('name = "all"', "", (r"\[\[group\]\] 1", "lacks 'name'")),
    "an unknown model": ('["dense"]', '["dens"]', (r"\[\[group\]\] 2, models", "'dens'", "'dense'")),
    "two groups of one name": ('"more"', '"all"', ("two groups",)),
    "a group that is no list": ("[[group]]", "[group]", ("tiny.toml",)),
    "an unknown key": ('title = "Every', 'titel = "Every', (r"\[\[group\]\] 1", "'titel'", "'title'")),
    "a model in no group": ('title = "Everything"', 'models = ["dense"]', ("low-rank", "no group")),
}


@pytest.mark.parametrize("case", REFUSED_GROUPS)
def test_a_group_is_refused(tmp_path, case):
    old, new, facts = REFUSED_GROUPS[case]
    assert old in GROUPS
    check_refused(write_experiment(tmp_path, GROUPS.replace(old, new)), facts)


def test_a_file_or_a_preset_must_exist(tmp_path):
    with pytest.raises(RamifyError, match=r"none\.toml"):
        read_plan(tmp_path / "none.toml")
    with pytest.raises(RamifyError, match=r"mian: .*ablations, decoding"):
        read_plan("mian")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "test.trees").unlink(), "has no test file"),
        (lambda folder: (folder / "test.trees").write_text("a sentence\n"), "neither trees nor CoNLL-U"),
        (lambda folder: (folder / "dev.txt").write_text(""), "could be the dev set"),
    ],
)
def test_a_folder_that_is_no_treebank_is_refused(tmp_path, change, message):
    path = write_experiment(tmp_path)
    change(tmp_path / "treebank")
    with pytest.raises(RamifyError, match=message):
        read_plan(path)


def test_places_that_nobody_asked_for_are_refused(tmp_path):
    path = write_experiment(tmp_path)
    with pytest.raises(RamifyError, match=r"'smal' .*'small'"):
        read_plan(path, {"smal": str(tmp_path)})
    with pytest.raises(RamifyError, match="--data-root"):
        read_plan(path, root=Path(tmp_path / "none"))


def test_the_experiments_of_the_docs_can_be_read(tmp_path):
    docs = PROJECT / "docs"
    treebank = str(write_experiment(tmp_path).parent / "treebank")
    files = sorted(docs.glob("*/*.toml"))
    assert docs / "stability" / "experiment.toml" in files
    for file in files:
        places = dict.fromkeys(tomllib.loads(file.read_text())["data"], treebank)
        plan = read_plan(file, places)
        scored = {data.scored for data in plan.data.values()}
        assert scored == {"dev" if file.parent.name == "stability" else "test"}, file


@pytest.mark.parametrize(
    ("stem", "name"),
    [("(draft) e", "draft-e"), ("-exp", "exp"), ("(-)", "all"), ("語" * 70, "語" * 66), ("my e", "my-e")],
)
def test_the_group_of_a_file_without_groups_is_called_like_it(tmp_path, stem, name):
    assert [group.name for group in read_plan(write_experiment(tmp_path, name=stem)).groups] == [name]


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    path = write_experiment(tmp_path, "\ufeff" + TINY)
    assert read_plan(path).title == "Tiny"
    assert ramify("experiment", path, "--show").stdout == TINY
    (tmp_path / "settings.toml").write_text("\ufeffepochs = 3\n")
    assert load_settings(tmp_path / "settings.toml", {}).epochs == 3


def test_a_file_that_is_no_text_is_not_shown(tmp_path):
    (tmp_path / "bin.toml").write_bytes(b"\xff\xfe")
    result = ramify("experiment", tmp_path / "bin.toml", "--show")
    assert result.returncode == 2
    assert "cannot be read as the TOML file" in result.stderr


def test_a_dry_run_looks_at_the_folder_and_makes_none(tmp_path):
    path = write_experiment(tmp_path)
    for out, message in ((path, "is a file"), (tmp_path, "is not empty and holds no experiment")):
        result = ramify("experiment", path, "--out", out, "--dry-run")
        assert result.returncode == 2
        assert message in result.stderr
    assert ramify("experiment", path, "--out", tmp_path / "new", "--dry-run").returncode == 0
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("split", "content", "message"),
    [
        ("test", "(S (A a) (B b))\n(S (A a)\n", "test.trees.* line 2"),
        ("test", "(S (A a))\n", "test.trees: no sentence has 2\\+ words"),
        ("dev", "(S (A a))\n", "dev.trees: no dev sentence has 2 words"),
        ("train", "(S (A a))\n", "train.trees: no training sentence has 2 to 40 words; .* another max_length"),
    ],
)
def test_data_that_cannot_be_used_is_refused_before_anything_begins(tmp_path, split, content, message):
    path, out = write_experiment(tmp_path), tmp_path / "out"
    (tmp_path / "treebank" / f"{split}.trees").write_text(content)
    plan = read_plan(path)
    with pytest.raises(RamifyError, match=message):
        check_data(plan, [*survey(plan, None)])
    with pytest.raises(RamifyError, match=message):
        run_experiment(plan, out)
    assert not (out / "experiment.json").exists()


def test_data_with_which_all_is_done_is_not_read_again(tmp_path):
    plan = read_plan(write_experiment(tmp_path))
    (tmp_path / "treebank" / "test.trees").unlink()
    check_data(plan, [Status(name, state="finished") for name in plan.runs])


@pytest.mark.parametrize("tree", ["(*TOP* (S (A a) (B b)))", "(TOP (-S- (A a) (B b)))", "(TOP (S ([NP] (A a)) (B b)))"])
def test_trees_with_odd_labels_are_trees(tmp_path, tree):
    path = write_experiment(tmp_path)
    for split in ("train", "dev", "test"):
        (tmp_path / "treebank" / f"{split}.trees").write_text(f"{tree}\n" * 3)
    plan = read_plan(path)
    check_data(plan, [*survey(plan, None)])
    assert len(gold_of(plan.data["small"]).parses) == 3
    corpora = [plan.data["small"].split(split) for split in ("train", "dev")]
    data = prepare(*corpora, settings_of(next(iter(plan.runs.values()))))
    assert data.train.parses[0].words == ("a", "b")


def test_folders_that_cannot_be_data_sets_are_left_out_with_a_note(tmp_path):
    path = write_experiment(tmp_path / "file", TINY.replace('[data]\nsmall = "treebank"', ""))
    root = tmp_path / "root"
    write_treebank(root / "my zh")
    with pytest.raises(RamifyError, match=r"my zh: .*'my zh'"):
        read_plan(path, root=root)
    (write_treebank(root / "twice") / "train.txt").write_text("")
    (write_treebank(root / "text") / "test.trees").write_text("no tree\n")
    (write_treebank(root / "half") / "dev.trees").unlink()
    (root / "else").mkdir()
    write_treebank(root / "en")
    with pytest.warns(RamifyWarning) as reported:
        assert list(read_plan(path, root=root).data) == ["en"]
    notes = [str(note.message) for note in reported]
    assert len(notes) == 4
    for name, note in zip(("half", "my zh", "text", "twice"), notes, strict=True):
        assert note.startswith("left out: ")
        assert str(root / name) in note


def test_data_that_may_not_be_read_is_reported(tmp_path, monkeypatch):
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    path = write_experiment(tmp_path)
    plan = read_plan(path)
    message = r"train\.trees: .*Permission denied"
    with monkeypatch.context() as locked:
        for opens in ("ramify.corpus.lines.FileIO", "ramify.lab.plan.experiment.Path.open"):
            locked.setattr(opens, refuse)
        with pytest.raises(RamifyError, match=message):
            _files(tmp_path / "treebank", "here")
        with pytest.raises(RamifyError, match=message):
            plan.data["small"].as_record()


def test_the_command_for_a_report_can_be_copied(tmp_path, monkeypatch):
    monkeypatch.setattr("ramify.lab.run.runner.run_experiment", lambda *_, **__: [Status("a", state="finished")])
    out = tmp_path / ("a folder with a name that is longer than a line of the terminal " * 3) / "ü"
    result = ramify("experiment", write_experiment(tmp_path), "--out", out)
    assert result.stderr.splitlines()[-1].endswith(f"ramify report {shlex.quote(str(out))}")
