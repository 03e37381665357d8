"""An interrupted run gives the same result as an uninterrupted one, however it was stopped."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ramify
from ramify.corpus.builtin import builtin_treebank
from ramify.errors import RamifyError, RamifyWarning, Stopped
from ramify.training import folder, run
from ramify.training.settings import Settings, load_settings

SMALL = {"preterminals": 8, "nonterminals": 4, "rank": 8, "embedding": 16, "epochs": 3, "batch_size": 8}
OPTIONS = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "sentences.txt"
    parses = builtin_treebank(1, train=150, dev=1, test=1)["train"]
    path.write_text("".join(" ".join(parse.words) + "\n" for parse in parses))
    return path


@pytest.fixture(scope="module")
def uninterrupted(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    ramify.train(text, out, **SMALL)
    return out


def same(a: Path, b: Path) -> None:
    """The same model byte for byte, and the same metrics except times."""
    assert (a / "model.safetensors").read_bytes() == (b / "model.safetensors").read_bytes()
    timed = ("seconds", "sentences_per_second")
    for mine, theirs in zip(*((f / "metrics.jsonl").read_text().splitlines() for f in (a, b)), strict=True):
        one, other = json.loads(mine), json.loads(theirs)
        assert {k: v for k, v in one.items() if k not in timed} == {k: v for k, v in other.items() if k not in timed}


class Crash(Exception):  # noqa: N818
    pass


def crash_after(steps: int):
    def on_progress(_: object) -> None:
        nonlocal steps
        steps -= 1
        if steps < 0:
            raise Crash

    return on_progress


@pytest.mark.parametrize("steps", [0, 1, 7, 22, 30, 58])
def test_a_crash_between_two_steps_changes_nothing(text, uninterrupted, tmp_path, steps):
    out = tmp_path / "run"
    with pytest.raises(Crash):
        ramify.train(text, out, checkpoint_minutes=0, on_progress=crash_after(steps), **SMALL)
    ramify.train(text, out, resume=True, checkpoint_minutes=5.0)
    same(out, uninterrupted)


@pytest.mark.parametrize("family", ["nbl-pcfg", "nl-pcfg"])
@pytest.mark.slow
def test_a_lexicalised_model_resumes_in_the_middle_of_an_epoch(text, tmp_path, family):
    options = SMALL | {"model": family, "nonterminals": 2, "preterminals": 3, "epochs": 2, "max_length": 8}
    if family == "nl-pcfg":
        del options["rank"]
    ramify.train(text, tmp_path / "whole", **options)
    with pytest.raises(Crash):
        ramify.train(text, tmp_path / "run", checkpoint_minutes=0, on_progress=crash_after(7), **options)
    ramify.train(text, tmp_path / "run", resume=True, checkpoint_minutes=5.0)
    same(tmp_path / "run", tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "function"),
    [(run, "evaluate_dev"), (folder, "write_weights"), (folder, "write_card"), (folder, "save_checkpoint")],
)
@pytest.mark.parametrize("call", [0, 1, 2])
def test_a_crash_at_the_end_of_an_epoch_changes_nothing(
    text, uninterrupted, tmp_path, monkeypatch, module, function, call
):
    out, original, calls = tmp_path / "run", getattr(module, function), [0]

    def crash(*arguments, **options):
        calls[0] += 1
        if calls[0] > call:
            raise Crash
        return original(*arguments, **options)

    monkeypatch.setattr(module, function, crash)
    with pytest.raises(Crash):
        ramify.train(text, out, **SMALL)
    monkeypatch.setattr(module, function, original)
    ramify.train(text, out, resume=True)
    same(out, uninterrupted)


def test_stopping_again_and_again_changes_nothing(text, uninterrupted, tmp_path):
    out = tmp_path / "run"
    for _ in range(6):
        with pytest.raises(Crash):
            ramify.train(text, out, resume=True, checkpoint_minutes=0, on_progress=crash_after(8), **SMALL)
    ramify.train(text, out, resume=True, checkpoint_minutes=5.0, **SMALL)
    same(out, uninterrupted)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_the_run(text, uninterrupted, tmp_path, number, code):
    out = tmp_path / "run"
    before = signal.getsignal(number)
    sent = []

    def send(progress: object) -> None:
        if progress.epoch == 2 and not sent:
            sent.append(progress)
            os.kill(os.getpid(), number)

    with pytest.raises(Stopped, match=str(out)) as stop:
        ramify.train(text, out, on_progress=send, **SMALL)
    assert stop.value.exit_code == code
    assert signal.getsignal(number) == before
    ramify.train(text, out, resume=True)
    same(out, uninterrupted)


@pytest.mark.slow
def test_the_command_line_stops_at_a_signal(text, tmp_path):
    out = tmp_path / "run"
    command = [sys.executable, "-m", "ramify", "train", str(text), "--out", str(out), *OPTIONS, "--epochs", "1000"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not (out / "metrics.jsonl").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    last = error.strip().splitlines()[-1]
    assert last.startswith("Stopped")
    assert last.endswith(f"ramify train {text} --out {out} --resume")
    assert "Traceback" not in error
    ramify.train(text, out, resume=True, epochs=1 + len((out / "metrics.jsonl").read_text().splitlines()))


def test_more_epochs_give_the_same_model_as_one_longer_run(text, uninterrupted, tmp_path):
    out = tmp_path / "run"
    ramify.train(text, out, **{**SMALL, "epochs": 1})
    ramify.train(text, out, resume=True, epochs=3)
    same(out, uninterrupted)
    assert json.loads((out / "config.json").read_text())["settings"]["epochs"] == 3


def test_a_finished_run_has_nothing_left_to_do(text, uninterrupted, tmp_path):
    out = shutil.copytree(uninterrupted, tmp_path / "run")
    before = (out / "model.safetensors").stat().st_mtime_ns
    ramify.train(text, out, resume=True, on_progress=crash_after(0))
    assert (out / "model.safetensors").stat().st_mtime_ns == before


def test_another_run_is_not_resumed(text, uninterrupted, tmp_path):
    out = shutil.copytree(uninterrupted, tmp_path / "run")
    with pytest.raises(RamifyError, match="preterminals of the run to resume is 8, not 9"):
        ramify.train(text, out, resume=True, preterminals=9)
    other = tmp_path / "other.txt"
    other.write_text(text.read_text() + "one more\n")
    with pytest.raises(RamifyError, match="was trained on another train set"):
        ramify.train(other, out, resume=True)
    ramify.train(text, tmp_path / "with dev", dev=text, **SMALL | {"epochs": 1})
    with pytest.raises(RamifyError, match="was trained on another dev set"):
        ramify.train(text, tmp_path / "with dev", resume=True, dev=other)
    with pytest.raises(RamifyError, match="resume and overwrite exclude"):
        ramify.train(text, out, resume=True, overwrite=True)
    config = json.loads((out / "config.json").read_text())
    (out / "config.json").write_text(json.dumps({**config, "threads": 77}))
    with pytest.warns(RamifyWarning, match="started with 77 threads"):
        ramify.train(text, out, resume=True)


OTHERS = {
    "model": "td-pcfg", "nonterminals": 5, "preterminals": 9, "rank": 9, "embedding": 9, "compound": True,
    "activation": "tanh", "shared_projection": True, "tied_embeddings": True, "initialisation": "xavier-normal",
    "pre_norm": True, "unit_rows": True,
    "gain": 2.0, "dropout": 0.5, "seed": 1, "batch_size": 9, "batch_tokens": 9, "learning_rate": 0.1, "decay": 0.5,
    "max_length": 9, "curriculum": 9, "vocabulary": 9, "clip": 1.0, "input": "text", "column": "body", "words": "none",
    "tokenise": "xx", "split_sentences": True, "punctuation": "keep", "normal_form": "NFD",
}  # fmt: skip
FREE = {"epochs": 99, "patience": 99, "device": "cpu", "checkpoint_minutes": 9.0}


def test_a_resumed_run_may_change_only_settings_that_do_not_affect_the_model():
    for name, value in OTHERS.items():
        with pytest.raises(RamifyError, match=name):
            load_settings(None, {name: value}, earlier=Settings())
    for name, value in FREE.items():
        assert getattr(load_settings(None, {name: value}, earlier=Settings()), name) == value


@pytest.mark.parametrize("part", ["grammar", "words", "text"])
def test_a_run_that_read_its_data_in_another_way_is_not_resumed(text, uninterrupted, tmp_path, part):
    out = shutil.copytree(uninterrupted, tmp_path / "run")
    config = json.loads((out / "config.json").read_text())
    config[part] = {"grammar": config["grammar"] | {"gain": 3.0}, "words": "none"}.get(
        part, config["text"] | {"normal_form": "NFD"}
    )
    (out / "config.json").write_text(json.dumps(config))
    with pytest.raises(RamifyError, match="version"):
        ramify.train(text, out, resume=True, epochs=4)


def test_a_damaged_checkpoint_is_named(text, uninterrupted, tmp_path):
    out = shutil.copytree(uninterrupted, tmp_path / "run")
    content = bytearray((out / "checkpoint.safetensors").read_bytes())
    content[-1] ^= 1
    (out / "checkpoint.safetensors").write_bytes(content)
    with pytest.raises(RamifyError, match=r"checkpoint\.safetensors: is damaged"):
        ramify.train(text, out, resume=True, epochs=4)


def test_a_full_disk_leaves_the_last_good_checkpoint(text, uninterrupted, tmp_path, monkeypatch):
    out, synced = tmp_path / "run", []

    def fsync(_: int) -> None:
        synced.append(1)
        if len(synced) > 12:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", fsync)
    with pytest.raises(RamifyError, match=r"cannot be written \(No space left on device\); check disk space"):
        ramify.train(text, out, checkpoint_minutes=0, **SMALL)
    monkeypatch.undo()
    assert not list(out.glob(".*"))
    ramify.train(text, out, resume=True, checkpoint_minutes=5.0)
    same(out, uninterrupted)


@pytest.mark.slow
def test_kills_at_any_moment_change_nothing(text, uninterrupted, tmp_path):
    rng = random.Random(0)
    out = tmp_path / "run"
    command = [sys.executable, "-m", "ramify", "train", str(text), "--out", str(out), "--resume", *OPTIONS]
    for kill in range(6):
        process = subprocess.Popen([*command, "--checkpoint-minutes", "0"], stderr=subprocess.PIPE)
        # Half of the kills wait until files exist, so that not all of them hit the start of the program.
        while kill % 2 and not (out / "checkpoint.safetensors").exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 2.0))
        process.kill()
        process.communicate()
    finished = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    same(out, uninterrupted)
