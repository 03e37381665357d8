"""What an experiment's file says, and everything that is refused before a run begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from ramify.errors import RamifyError
from ramify.experiments.plan import DataSet
from ramify.experiments.reading import presets, read_plan
from tests.experiments.common import TINY, write_experiment, write_treebank

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
    assert (low_rank.settings.model, low_rank.settings.rank, low_rank.settings.seed) == ("tn-pcfg", 8, 1)
    assert (dense.settings.model, dense.settings.preterminals, dense.settings.epochs) == ("n-pcfg", 8, 2)
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
    record = plan.as_record()
    assert [len(group["runs"]) for group in record["groups"]] == [4, 2]
    assert record["groups"][1]["runs"][0] == {
        "data": "small",
        "model": "dense",
        "seed": 5,
        "decoders": ["viterbi"],
        "path": "runs/small/dense/seed-5",
    }
    assert str(tmp_path) not in str(record)


def test_settings_of_a_model_win_over_those_of_the_data_and_these_over_common_ones(tmp_path):
    text = TINY.replace('[data]\nsmall = "treebank"', '[data.small]\nfolder = "treebank"\nepochs = 3\nbatch-size = 2')
    plan = read_plan(write_experiment(tmp_path, text + "epochs = 4\n"))
    settings = {run.model: run.settings for run in plan.runs.values()}
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
    assert DataSet.from_job(built_in.as_job()) == built_in


def test_without_names_all_treebanks_of_the_root_are_taken(tmp_path):
    path = write_experiment(tmp_path, TINY.replace('[data]\nsmall = "treebank"', ""))
    write_treebank(tmp_path / "another")
    (tmp_path / "empty").mkdir()
    assert list(read_plan(path, root=tmp_path).data) == ["another", "treebank"]
    assert list(read_plan(path, {"mine": str(tmp_path / "another")}).data) == ["mine"]
    with pytest.raises(RamifyError, match="names no data; give --data NAME=FOLDER"):
        read_plan(path)


def test_presets_are_the_papers(tmp_path):
    write_treebank(tmp_path / "en-wsj-sample")
    plans = {name: read_plan(name, root=tmp_path) for name in presets()}
    assert set(plans) == {"main", "symbols", "multilingual", "ablations", "decoding", "families"}
    symbols = {run.settings.preterminals for run in plans["symbols"].runs.values()}
    assert symbols == {30, 60, 120, 250, 500}
    ablations = {run.model: run.settings for run in plans["ablations"].runs.values()}
    assert ablations["direct"].model == "td-pcfg"
    assert (ablations["tanh"].activation, ablations["sigmoid"].activation) == ("tanh", "sigmoid")
    assert ablations["compound"].compound
    assert all(len(run.decoders) >= 2 for run in plans["decoding"].runs.values())
    families = {(run.data, run.settings.epochs) for run in plans["families"].runs.values()}
    assert families == {("built-in", 1), ("en-wsj-sample", 3)}


REFUSED = {
    "an unknown key": ("seeds =", "sedes =", "'sedes' is unknown; did you mean 'seeds'"),
    "seeds that are no list": ("[0, 1]", "2", "seeds is 2, but must be a list of whole numbers"),
    "a seed that is no number": ("[0, 1]", '["0"]', "must be a list of whole numbers"),
    "a seed below zero": ("[0, 1]", "[-1]", "seed is -1"),
    "a seed twice": ("[0, 1]", "[0, 0]", "names something twice"),
    "no seeds": ("[0, 1]", "[]", "seeds is empty; name at least one"),
    "an unknown baseline": ('"left"', '"up"', "baseline 'up' is unknown"),
    "an unknown decoder": ('["mbr", "viterbi"]', '["viterby"]', "did you mean 'viterbi'"),
    "a title that is no text": ('"Tiny"', "3", "title is 3, but must be a string"),
    "threads below one": ("seeds =", "threads = 0\nseeds =", "threads is 0, but must be a whole number from 1"),
    "an unknown setting": ("epochs = 2", "epoch = 2", "'epoch' is unknown; did you mean 'epochs'"),
    "a setting of the wrong type": ("epochs = 2", "epochs = '2'", "model low-rank on small: .*must be of type int"),
    "a setting out of range": ("epochs = 2", "epochs = 0", "model low-rank on small: epochs is 0"),
    "a setting twice": ("epochs = 2", "batch-size = 2", "stands there twice"),
    "seed as a setting": ("epochs = 2", "seed = 2", r"seed cannot be set here: .*seeds = \[0, 1\]"),
    "an unknown model": ('"n-pcfg"', '"m-pcfg"', "model dense on small: model 'm-pcfg' is unknown"),
    "a decoder the model cannot have": (
        'model = "n-pcfg"',
        'model = "n-pcfg"\ndecoders = ["viterbi-rank"]',
        "model dense on small: The decoder viterbi-rank is for low-rank grammars",
    ),
    "a best parse that is too large": (
        "rank = 8",
        "nonterminals = 300\npreterminals = 600",
        "rules written out.*use the decoder mbr, or viterbi-rank",
    ),
    "a name that is no folder's": ("[models.dense]", '[models."../dense"]', "the name '../dense' must be letters"),
    "no model": (TINY[TINY.index("[models.low") :], "", "there is no model"),
    "models that are no tables": (
        "[models.dense]",
        "[models]\ndense = 3 #",
        r"\[models.dense\]: is 3, but must be a table",
    ),
    "a data set that is no folder": ('"treebank"', '"treebnak"', "there is no such folder.*--data or --data-root"),
    "data that is no name": ('"treebank"', "3", r"\[data.small\]: is 3, but must be a table"),
    "a folder that is no name": ('"treebank"', "{folder = 3}", "folder is 3, but must be a string"),
    "an unknown setting of data": (
        '"treebank"',
        "{folder = 'treebank', wrods = 'ptb'}",
        "'wrods' is unknown; did you mean 'words'",
    ),
    "no TOML": ("seeds =", "seeds", "cannot be read as the TOML file of an experiment"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_is_refused(tmp_path, case):
    old, new, message = REFUSED[case]
    assert old in TINY
    with pytest.raises(RamifyError, match=message):
        read_plan(write_experiment(tmp_path, TINY.replace(old, new)))


REFUSED_GROUPS = {
    "a group without a name": ('name = "all"', "", "1: has no name"),
    "an unknown model": ('["dense"]', '["dens"]', r"\[\[group\]\] 2, models: 'dens' is unknown; did you mean 'dense'"),
    "two groups of one name": ('"more"', '"all"', "two groups have one name"),
    "a group that is no table": ("[[group]]", "[group]", "cannot be read|must be written"),
    "an unknown key": ('title = "Every', 'titel = "Every', "'titel' is unknown; did you mean 'title'"),
    "a model in no group": (
        'title = "Everything"',
        'models = ["dense"]',
        "the model low-rank is in no group",
    ),
}


@pytest.mark.parametrize("case", REFUSED_GROUPS)
def test_a_group_is_refused(tmp_path, case):
    old, new, message = REFUSED_GROUPS[case]
    assert old in GROUPS
    with pytest.raises(RamifyError, match=message):
        read_plan(write_experiment(tmp_path, GROUPS.replace(old, new)))


def test_a_file_or_a_preset_must_exist(tmp_path):
    with pytest.raises(RamifyError, match="there is no such file"):
        read_plan(tmp_path / "none.toml")
    with pytest.raises(RamifyError, match="no preset; presets are ablations, decoding"):
        read_plan("mian")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "test.trees").unlink(), "has no test file"),
        (lambda folder: (folder / "test.trees").write_text("a sentence\n"), "holds no trees"),
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
    with pytest.raises(RamifyError, match="'smal' is unknown; did you mean 'small'"):
        read_plan(path, {"smal": str(tmp_path)})
    with pytest.raises(RamifyError, match="check --data-root"):
        read_plan(path, root=Path(tmp_path / "none"))
