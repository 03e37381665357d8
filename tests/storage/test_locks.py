"""One writer per folder or file; a lock ends with its process; planted links are not followed."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import ramify
from ramify.corpus.builtin import builtin_treebank
from ramify.errors import RamifyError, RamifyWarning
from ramify.storage.files import folder_contents, locked_output, remove_unfinished, write_atomically
from ramify.storage.locks import LOCK, check_unlocked, locked_file, locked_folder
from tests.command import ramify as command

SMALL = {"preterminals": 8, "nonterminals": 4, "rank": 8, "embedding": 16, "epochs": 2, "batch_size": 16}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "sentences.txt"
    parses = builtin_treebank(1, train=80, dev=1, test=1)["train"]
    path.write_text("".join(" ".join(parse.words) + "\n" for parse in parses))
    return path


@pytest.fixture(scope="module")
def model(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("model") / "run"
    ramify.train(text, out, **SMALL)
    return out


def refuses(folder: Path) -> bool:
    try:
        with locked_folder(folder):
            return False
    except RamifyError as error:
        return "another ramify process" in str(error)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_has_one_writer_and_no_lock_when_it_is_done(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    with locked_folder(folder):
        assert refuses(folder)
        with pytest.raises(RamifyError, match="another ramify process"):
            check_unlocked(folder)
        (folder / "file").write_text("kept")
    check_unlocked(folder)
    assert names(folder) == ["file"]
    assert not refuses(folder)


def test_an_unused_new_folder_is_removed(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked_folder(tmp_path / "a" / "b"):
        1 / 0  # noqa: B018
    assert not names(tmp_path)
    (tmp_path / "mine").mkdir()
    with locked_folder(tmp_path / "mine"):
        pass
    assert names(tmp_path) == ["mine"]


def test_threads_take_turns(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")

    def count() -> None:
        for _ in range(5):
            with locked_folder(tmp_path / "folder", patience=60):
                before = int(counter.read_text())
                time.sleep(0.001)
                counter.write_text(str(before + 1))

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.read_text() == "30"
    # A waiting process may have put its lock there before the creator of the folder could remove it.
    folder = tmp_path / "folder"
    assert not folder.exists() or list(folder.iterdir()) == []


@pytest.mark.parametrize("error", [errno.EEXIST, errno.ENOENT])
def test_a_folder_that_its_creator_removes_meanwhile_is_created_again(tmp_path: Path, monkeypatch, error: int) -> None:
    mkdir, errors = os.mkdir, [error]

    def late(path: Path, *args: int) -> None:
        if errors:
            raise OSError(errors.pop(), "too late", str(path))
        mkdir(path, *args)

    monkeypatch.setattr("os.mkdir", late)
    with locked_folder(tmp_path / "folder"):
        assert (tmp_path / "folder" / LOCK).exists()
    assert not names(tmp_path)


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for folder in ("file", "file/folder", "link", "link/folder"):
        with pytest.raises(RamifyError, match="cannot be created"), locked_folder(tmp_path / folder):
            pass


HOLDER = """
import subprocess, sys, time
from pathlib import Path
from ramify.storage.locks import locked_folder
with locked_folder(Path(sys.argv[1])) as descriptor:
    child = subprocess.Popen(["sleep", "600"], pass_fds=[descriptor] if sys.argv[2] == "inherit" else [])
    print(child.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("inherited", [False, True])
def test_a_lock_ends_with_the_last_process_that_has_it(tmp_path: Path, inherited: bool) -> None:
    folder = tmp_path / "folder"
    arguments = [sys.executable, "-c", HOLDER, str(folder), "inherit" if inherited else "alone"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as holder:
        child = int(holder.stdout.readline())
        assert refuses(folder)
        holder.kill()
        holder.wait()
        assert refuses(folder) == inherited
        os.kill(child, signal.SIGKILL)
        with locked_folder(folder, patience=60):
            pass


def test_links_in_place_of_locks_are_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / LOCK).symlink_to(victim)
    (tmp_path / "out.partial").symlink_to(tmp_path / "nowhere")
    with pytest.raises(RamifyError, match=r"\.lock: this is a link"), locked_folder(tmp_path / "folder"):
        pass
    with pytest.raises(RamifyError, match=r"out\.partial: this is a link"), locked_output(tmp_path / "out", False):
        pass
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RamifyError, match="not a regular file"), locked_file(tmp_path / "pipe", tmp_path / "out"):
        pass
    assert victim.read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(("number", "expected"), [(errno.ENOLCK, RamifyWarning), (errno.EIO, RamifyError)])
def test_a_file_system_without_locks_is_reported(tmp_path, monkeypatch, number, expected) -> None:
    def flock(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", flock)
    context = pytest.warns(expected) if issubclass(expected, Warning) else pytest.raises(expected)
    with context as seen, locked_folder(tmp_path / "folder"):
        pass
    assert os.strerror(number) in str(seen[0].message if issubclass(expected, Warning) else seen.value)


def test_a_file_has_one_writer(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with locked_output(out, False) as place:
        with pytest.raises(RamifyError, match="out: another ramify process"), locked_output(out, True):
            pass
        place.write_text("first")
    assert names(tmp_path) == ["out"]
    (tmp_path / "out.partial").write_text("lines of a run that was stopped")
    with locked_output(out, True):
        pass
    assert (tmp_path / "out.partial").exists()


def test_new_files_have_usual_permissions_and_follow_no_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for name in (".file.partial", ".file.00000000.partial", "file"):
        (tmp_path / name).symlink_to(victim)
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "file", b"new")
    finally:
        os.umask(before)
    assert victim.read_text() == "mine"
    assert (tmp_path / "file").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "file").lstat().st_mode) == 0o640
    assert len(names(tmp_path)) == 4


def test_a_write_that_is_interrupted_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "file", b"new")
    assert not names(tmp_path)


def test_files_of_killed_processes_are_recognised_and_removed(tmp_path: Path) -> None:
    for name in (".a.json.partial", ".a.json.0123abcd.partial", ".b.0123abcd.partial", ".lock", "a.json"):
        (tmp_path / name).write_text("x")
    assert folder_contents(tmp_path, ["a.json"]) == {".b.0123abcd.partial", "a.json"}
    remove_unfinished(tmp_path, ["a.json"])
    assert names(tmp_path) == [".b.0123abcd.partial", ".lock", "a.json"]
    assert folder_contents(tmp_path / "nowhere", []) == set()


def test_two_trainings_in_one_folder(text: Path, model: Path, tmp_path: Path) -> None:
    out, refused = tmp_path / "run", []

    def train_too(_: object) -> None:
        if not refused:
            for options in ({"overwrite": True}, {"resume": True}, {}):
                with pytest.raises(RamifyError, match="run: another ramify process") as error:
                    ramify.train(text, out, **options)
                refused.append(error)
            result = command("train", text, "--out", out)
            assert (result.returncode, "another ramify process" in result.stderr) == (2, True)

    ramify.train(text, out, on_progress=train_too, **SMALL)
    assert len(refused) == 3
    assert (out / "model.safetensors").read_bytes() == (model / "model.safetensors").read_bytes()
    assert names(out) == names(model)


def test_training_follows_no_planted_link_and_removes_files_of_a_killed_run(text: Path, tmp_path: Path) -> None:
    out, victim = tmp_path / "run", tmp_path / "victim"
    victim.write_text("mine")
    out.mkdir()
    (out / ".config.json.partial").symlink_to(victim)
    (out / ".vocab.txt.0123abcd.partial").write_text("half")
    (out / LOCK).touch()
    ramify.train(text, out, **SMALL | {"epochs": 1})
    assert victim.read_text() == "mine"
    assert (out / ".config.json.partial").is_symlink()
    assert [name for name in names(out) if name.startswith(".")] == [".config.json.partial"]


def test_a_training_that_is_refused_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(RamifyError, match="does not exist"):
        ramify.train(tmp_path / "nowhere", tmp_path / "runs" / "run")
    assert not names(tmp_path)


@pytest.mark.parametrize("subcommand", ["parse", "score"])
def test_two_parses_into_one_file(text: Path, model: Path, tmp_path: Path, monkeypatch, subcommand: str) -> None:
    out, codes = tmp_path / "trees", []
    expected = command(subcommand, "-m", model, text).stdout

    def and_another() -> dict[str, object]:
        if not codes:
            codes.append(0)
            for option in ("--overwrite", "--resume"):
                result = command(subcommand, "-m", model, text, "--out", out, option)
                assert "trees: another ramify process" in result.stderr
                codes.append(result.returncode)
        return {}

    monkeypatch.setattr(f"ramify.cli.{subcommand}.made_with_models", lambda *_, **__: and_another)
    assert command(subcommand, "-m", model, text, "--out", out).returncode == 0
    assert codes == [0, 2, 2]
    assert out.read_text() == expected
    assert names(tmp_path) == ["trees"]


@pytest.mark.parametrize("name", ["trees.partial", "trees.partial.json"])
@pytest.mark.parametrize("options", [[], ["--overwrite"], ["--resume"]])
def test_parsing_follows_no_planted_link(text: Path, model: Path, tmp_path: Path, name: str, options) -> None:
    victim = tmp_path / "victim"
    victim.write_text("{}\n")
    (tmp_path / name).symlink_to(victim)
    result = command("parse", "-m", model, text, "--out", tmp_path / "trees", *options)
    assert result.returncode == 2
    assert f"{name}: this is a link" in result.stderr
    assert victim.read_text() == "{}\n"
    assert names(tmp_path) == sorted([name, "victim"])


def test_a_file_that_appeared_meanwhile_is_not_replaced(text: Path, model: Path, tmp_path: Path, monkeypatch) -> None:
    out = tmp_path / "trees"
    monkeypatch.setattr("ramify.cli.line_output.locked_file", lambda *a: (out.write_text("mine"), locked_file(*a))[1])
    result = command("parse", "-m", model, text, "--out", out)
    assert result.returncode == 2
    assert out.read_text() == "mine"


def test_grammars_and_rules_have_one_writer_too(model: Path, tmp_path: Path) -> None:
    for arguments in (("export", "-m", model), ("grammar", "-m", model)):
        out = tmp_path / "out.txt"
        with locked_output(out, False):
            result = command(*arguments, "--out", out)
            assert (result.returncode, "another ramify process" in result.stderr) == (2, True)
        assert command(*arguments, "--out", out).returncode == 0
        out.unlink()
    assert not names(tmp_path)


@pytest.mark.slow
def test_a_killed_training_can_be_resumed_at_once(text: Path, tmp_path: Path) -> None:
    whole, out = tmp_path / "whole", tmp_path / "run"
    options = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    start = [sys.executable, "-m", "ramify", "train", str(text), "--checkpoint-minutes", "0", *options]
    process = subprocess.Popen([*start, "--out", str(out), "--epochs", "500"], stderr=subprocess.DEVNULL)
    while not (out / "metrics.jsonl").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert (out / LOCK).exists()
    epochs = len((out / "metrics.jsonl").read_text().splitlines()) + 1
    resumed = subprocess.run([*start, "--out", str(out), "--epochs", str(epochs), "--resume"], capture_output=True)
    assert resumed.returncode == 0, resumed.stderr
    subprocess.run([*start, "--out", str(whole), "--epochs", str(epochs)], capture_output=True, check=True)
    assert (out / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
