"""Training in several processes under torchrun: the same bits as in one process, and only one writes and prints."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest

import ramify
from ramify.corpus.builtin import builtin_treebank
from tests.conftest import PROJECT
from tests.hosts import hosts
from tests.training.test_resume import same

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="torchrun does not work on Windows")

SMALL = {
    "preterminals": 8, "nonterminals": 4, "rank": 8, "embedding": 16, "epochs": 2, "batch_size": 8, "vocabulary": 500,
}  # fmt: skip
OPTIONS = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]

WORKER = """
import os
from pathlib import Path

place = Path(f"process{os.environ['RANK']}")
place.mkdir(exist_ok=True)
os.chdir(place)
from ramify.__main__ import main
main()
"""
"""Each process in a separate folder, as on separate machines"""


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "sentences.txt"
    parses = builtin_treebank(1, train=90, dev=1, test=1)["train"]
    path.write_text("".join(" ".join(parse.words) + "\n" for parse in parses))
    return path


@pytest.fixture(scope="module")
def alone(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("alone") / "run"
    ramify.train(text, out, gradient_groups=4, **SMALL)
    return out


def command(processes: int, *arguments: object, options: tuple[str, ...] = (), script: Path | None = None) -> list[str]:
    started = [str(script)] if script else ["-m", "ramify"]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    return [*launcher, *options, *started, "train", *map(str, arguments)]


def environment() -> dict[str, str]:
    paths = [*filter(None, [os.environ.get("PYTHONPATH")]), str(PROJECT / "src")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}


def torchrun(*given: object, cwd: Path, patience: int = 300, **how: object) -> subprocess.CompletedProcess[str]:
    line = command(*given, **how)  # type: ignore[arg-type]
    return subprocess.run(
        line, cwd=cwd, env=environment(), capture_output=True, text=True, check=False, timeout=patience
    )


def as_separate_machines(folder: Path) -> Path:
    script = folder / "worker.py"
    script.write_text(WORKER)
    return script


@pytest.mark.slow
def test_two_processes_give_the_bits_of_one_and_only_the_first_writes(text, alone, tmp_path):
    result = torchrun(2, text, "--out", "run", *OPTIONS, cwd=tmp_path, script=as_separate_machines(tmp_path))
    assert result.returncode == 0, result.stderr
    same(tmp_path / "process0" / "run", alone)
    assert {path.name for path in (tmp_path / "process0" / "run").iterdir()} == {path.name for path in alone.iterdir()}
    assert not list((tmp_path / "process1").iterdir())
    assert result.stderr.count("epoch 2: perplexity") == 1
    assert result.stderr.count("The model is in run") == 1
    settings = json.loads((tmp_path / "process0" / "run" / "config.json").read_text())["settings"]
    assert settings["gradient_groups"] == 4


@pytest.mark.slow
def test_a_mistake_in_one_process_is_one_sentence(text, tmp_path):
    """The second process, which is on another machine, has no file of sentences."""
    (tmp_path / "process0").mkdir()
    (tmp_path / "process0" / "sentences.txt").write_text(text.read_text())
    script = as_separate_machines(tmp_path)
    result = torchrun(2, "sentences.txt", "--out", "run", *OPTIONS, cwd=tmp_path, script=script)
    assert result.returncode != 0
    assert result.stderr.count("error: sentences.txt: does not exist; check the name.") == 1
    assert result.stderr.count("error: ") == 1, result.stderr
    assert "ramify/" not in result.stderr.replace(str(PROJECT), ""), "a traceback"


@pytest.mark.slow
def test_other_data_in_one_process_is_refused(text, tmp_path):
    for number in range(2):
        (tmp_path / f"process{number}").mkdir()
        (tmp_path / f"process{number}" / "sentences.txt").write_text(text.read_text() + "one more\n" * number)
    script = as_separate_machines(tmp_path)
    result = torchrun(2, "sentences.txt", "--out", "run", *OPTIONS, cwd=tmp_path, script=script)
    assert result.returncode != 0
    assert result.stderr.count("error: In process 1, data differs from that of the first process") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("--preterminals", "none"), (), "Invalid value for '--preterminals'"),
        (("--gradient-groups", "1"), (), "gradient_groups is 1, but there are 2 processes"),
        ((), ("--max-restarts=1",), "add --resume"),
        (("--learning-rate", "1e30", "--clip", "1e30"), (), "Training diverged in epoch 1"),
    ],
)
def test_a_mistake_of_all_processes_is_one_sentence(text, tmp_path, arguments, options, message):
    result = torchrun(2, text, "--out", "run", *OPTIONS, *arguments, options=options, cwd=tmp_path)
    assert result.returncode != 0
    # torchrun restarts it like any failure.
    assert result.stderr.count(message) == (2 if options else 1), result.stderr
    # An error before the first step leaves no folder that would make the corrected command fail.
    assert (tmp_path / "run").exists() == ("diverged" in message)


@pytest.mark.slow
def test_a_single_process_gives_the_same_bits(text, alone, tmp_path):
    """Two processes are tested above; three, one of which has more groups than the others, below."""
    result = torchrun(1, text, "--out", "run", *OPTIONS, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    same(tmp_path / "run", alone)


FAMILIES = {
    "n-pcfg": {"nonterminals": 3, "preterminals": 6, "embedding": 16},
    "c-pcfg": {"nonterminals": 2, "preterminals": 4, "embedding": 16},
    "sn-pcfg": {"nonterminals": 4, "preterminals": 8, "embedding": 16},
    "nbl-pcfg": {"nonterminals": 2, "preterminals": 3, "rank": 4, "embedding": 16},
    "em-pcfg": {"nonterminals": 3, "preterminals": 6},
    "structformer": {"width": 16, "layers": 2},
    "on-lstm": {"embedding": 20, "width": 20, "layers": 2},
}


ONE_AFTER_ANOTHER = """
import json, sys
from ramify.__main__ import main

for options in json.loads(sys.argv[2]):
    sys.argv = ["ramify", "train", *options]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""
"""Several runs in one start, because starting three processes takes far longer than training such a model"""


def settings_of(family: str) -> dict[str, object]:
    settings = FAMILIES[family] | {"model": family, "epochs": 2, "batch_size": 3, "max_length": 10}
    return settings | ({"dropout": 0.2} if ramify.models.FAMILIES[family].allows_dropout else {})


@pytest.fixture(scope="session")
def of_every_family(made_once) -> Path:
    """The text, and the run of each family in two processes."""

    def fill(place: Path) -> None:
        parses = builtin_treebank(1, train=90, dev=1, test=1)["train"]
        (place / "sentences.txt").write_text("".join(" ".join(parse.words) + "\n" for parse in parses))
        (place / "several.py").write_text(ONE_AFTER_ANOTHER)
        lines = []
        for family in FAMILIES:
            options = [f"--{name.replace('_', '-')}={value}" for name, value in settings_of(family).items()]
            lines.append(["sentences.txt", "--out", family, *options])
        result = torchrun(2, json.dumps(lines), cwd=place, script=place / "several.py", patience=1200)
        assert result.returncode == 0, result.stderr

    return made_once("families in two processes", fill)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_kind_of_family_can_be_trained(of_every_family, tmp_path, family):
    ramify.train(of_every_family / "sentences.txt", tmp_path / "alone", gradient_groups=4, **settings_of(family))
    same(of_every_family / family, tmp_path / "alone")


@pytest.mark.slow
def test_teachers_parse_once_for_all_processes(text, alone, tmp_path):
    given = {"model": "crf", "embedding": 8, "width": 8, "epochs": 1, "batch_size": 8}
    ramify.train(text, tmp_path / "alone", teachers=[alone], gradient_groups=4, **given)
    options = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    result = torchrun(2, text, "--out", "run", *options, "--teacher", alone, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("teachers parsed") == 1
    same(tmp_path / "run", tmp_path / "alone")
    more = [text, "--out", "run", "--resume", "--epochs", "2"]
    assert torchrun(2, *more, cwd=tmp_path).returncode == 0  # with the scores in the folder
    ramify.train(text, tmp_path / "alone", resume=True, epochs=2)
    same(tmp_path / "run", tmp_path / "alone")


@pytest.mark.slow
def test_a_run_continues_in_another_number_of_processes(text, alone, tmp_path):
    one_epoch = [option for option in OPTIONS if "epochs" not in option]
    result = torchrun(2, text, "--out", "run", *one_epoch, "--epochs", "1", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    result = torchrun(3, text, "--out", "run", "--resume", "--epochs", "2", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    same(tmp_path / "run", alone)
    ramify.train(text, tmp_path / "run", resume=True, epochs=3)  # and in this one
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 3


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 600  # on a busy machine, torchrun alone may need minutes
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, "nothing happened"
        time.sleep(0.02)


@contextmanager
def ended(line: list[str], place: Path) -> Iterator[subprocess.Popen[str]]:
    """A job that is killed with all its processes when the test ends."""
    with subprocess.Popen(
        line, cwd=place, env=environment(), stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as launcher:
        try:
            yield launcher
        finally:
            kill(launcher)


def kill(launcher: subprocess.Popen[str]) -> None:
    """End a job that still runs, with all its processes."""
    if launcher.poll() is None:
        for child in psutil.Process(launcher.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.kill()
        launcher.kill()


def workers(launcher: subprocess.Popen[str]) -> dict[int, psutil.Process]:
    """The processes of a job, by their ranks."""
    found = {}
    for child in psutil.Process(launcher.pid).children(recursive=True):
        try:
            found[int(child.environ()["RANK"])] = child
        except (KeyError, psutil.Error):
            continue
    return found


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_process_is_restarted_and_changes_nothing(text, alone, tmp_path, rank):
    line = command(2, text, "--out", "run", *OPTIONS, "--resume", options=("--max-restarts=3",))
    slowly = [*line, "--checkpoint-minutes", "0"]
    with ended(slowly, tmp_path) as launcher:
        wait_until((tmp_path / "run" / "checkpoint.safetensors").exists, launcher)
        before = workers(launcher)
        before[rank].kill()
        wait_until(lambda: {each.pid for each in workers(launcher).values()}.isdisjoint({before[rank].pid}), launcher)
        _, error = launcher.communicate(timeout=300)
    assert launcher.returncode == 0, error
    same(tmp_path / "run", alone)


@pytest.mark.slow
def test_ctrl_c_saves_the_run(text, tmp_path, alone):
    line = [*command(2, text, "--out", "run", *OPTIONS), "--epochs", "1000"]
    with ended(line, tmp_path) as launcher:
        wait_until((tmp_path / "run" / "metrics.jsonl").exists, launcher)
        os.killpg(launcher.pid, signal.SIGINT)  # like a terminal
        _, error = launcher.communicate(timeout=120)
    assert launcher.returncode != 0
    assert error.count("Stopped; the run is saved. To resume: ramify train") == 1
    assert "error: " not in error
    done = len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    ramify.train(text, tmp_path / "run", resume=True, epochs=done + 1)
    ramify.train(text, alone.parent / "longer", gradient_groups=4, **SMALL | {"epochs": done + 1})
    same(tmp_path / "run", alone.parent / "longer")


DOCS = PROJECT / "docs" / "scaling.md"


def line_of_docs(with_what: str) -> list[str]:
    """A command of the docs, as every machine starts it, for the Python of these tests and small data."""
    (line,) = [
        each for each in DOCS.read_text(encoding="utf-8").splitlines() if with_what in each and "torchrun" in each
    ]
    words = shlex.split(line)
    return [sys.executable, "-m", "torch.distributed.run", *words[words.index("torchrun") + 1 :], *OPTIONS]


@pytest.mark.slow
@pytest.mark.needs("hosts")
@pytest.mark.parametrize("killed", [False, True])
def test_two_machines_give_the_bits_of_one(text, alone, tmp_path, killed):
    """With separate networks, names and working folders, started as the docs say; one may lose a process."""
    started = []
    with hosts("machine0", "machine1") as machines, ExitStack() as running:
        for host in machines:
            place = tmp_path / host.name
            place.mkdir()
            (place / "sentences.txt").write_text(text.read_text())
            line = [*line_of_docs("--nnodes"), "--checkpoint-minutes", "0"]
            process = subprocess.Popen(
                host.command(line), cwd=place, env=environment(), stderr=subprocess.PIPE, text=True
            )
            started.append(running.enter_context(process))
            running.callback(kill, process)
        if killed:
            writers = [tmp_path / host.name / "runs" / "large" / "checkpoint.safetensors" for host in machines]
            wait_until(lambda: any(path.exists() for path in writers), started[0])
            idle = next(k for k, path in enumerate(writers) if not path.exists())
            workers(started[idle]).popitem()[1].kill()
        errors = [process.communicate(timeout=300)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], errors
    assert any("exitcode: -9" in error for error in errors) == killed
    (written,) = [path for host in machines if (path := tmp_path / host.name / "runs" / "large").exists()]
    same(written, alone)
