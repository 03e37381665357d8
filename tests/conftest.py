import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

from tests.hosts import can_make_hosts

PROJECT = Path(__file__).resolve().parent.parent
FIXTURES = PROJECT / "tests" / "fixtures"

# A background job of a script (`nohup pytest &`) ignores Ctrl-C, and processes that tests start would inherit this.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests start many processes. Without compiled modules on disk, each of them would compile the package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Torch's threads wait by spinning, which would make tests of many small steps ten times as slow on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Otherwise Matplotlib would write a list of fonts to the home folder.
FONTS = PROJECT / ".pytest_cache" / "matplotlib"
FONTS.mkdir(parents=True, exist_ok=True)
os.environ.setdefault("MPLCONFIGDIR", str(FONTS))

# A busy machine must not make a property fail.
settings.register_profile("ramify", deadline=None)
settings.load_profile("ramify")


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
EXTRAS = {
    "hub": "huggingface_hub",
    "parquet": "pyarrow",
    "plot": "matplotlib",
    "ray": "ray",
    "serve": "fastapi",
    "spacy": "spacy",
}
"""The library that each extra of the package installs"""


def is_missing(library: str) -> bool:
    """Whether a library cannot be found, checked without importing it."""
    try:
        return find_spec(library) is None
    except (ImportError, ValueError):
        return True


MISSING = {
    extra: f"{library}; install it with: pip install 'ramify[{extra}]'"
    for extra, library in EXTRAS.items()
    if is_missing(library)
}
if CHROMIUM is None:
    MISSING["chromium"] = "Chromium; install it with the system's package manager"
if not can_make_hosts():
    MISSING["hosts"] = "network namespaces; run them as root, with the program ip of iproute2"


def loops_are_compiled() -> bool:
    """Whether numba's cache has an entry for every file with loops that is newer than the file."""
    for file in (PROJECT / "src" / "ramify").rglob("*.py"):
        if "\n@compiled\n" in file.read_text(encoding="utf-8"):
            made = [each.stat().st_mtime for each in (file.parent / "__pycache__").glob(f"{file.stem}.*.nbi")]
            if not made or max(made) < file.stat().st_mtime:
                return False
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the loops before several processes run all tests, because otherwise each process would compile them."""
    config = session.config
    starts_processes = bool(config.getoption("numprocesses", None)) and "PYTEST_XDIST_WORKER" not in os.environ
    runs_all = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if starts_processes and runs_all and not config.option.collectonly and not loops_are_compiled():
        subprocess.run([sys.executable, "-m", "tests.loops"], cwd=PROJECT, check=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line for every missing requirement, whose tests are not run; `.ci/run` accepts this only for hosts."""
    for what in MISSING.values():
        terminalreporter.write_line(f"deselected: tests that need {what}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests marked `needs(...)` whose requirement is missing.

    With several processes, each begins with its share of the slow tests, so that none has a long test at the end.
    """
    left_out = [item for item in items if any(mark.args[0] in MISSING for mark in item.iter_markers("needs"))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    # Each of n processes first gets a contiguous nth of the list; later they take tests from each other.
    if count := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 0)):
        slow = [item for item in items if item.get_closest_marker("slow")]
        others = [item for item in items if not item.get_closest_marker("slow")]
        items[:] = [each for k in range(count) for some in (slow, others) for each in share(some, k, count)]


def share(items: list[pytest.Item], k: int, count: int) -> list[pytest.Item]:
    """The kth of `count` pieces of about the same size."""
    return items[len(items) * k // count : len(items) * (k + 1) // count]


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of the treebanks, which are not part of the project: $RAMIFY_DATA, or a folder next to the project."""
    folder = Path(os.environ.get("RAMIFY_DATA", PROJECT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no treebanks in {folder}; set RAMIFY_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """A function that returns the folder of a given name, after one process of the test run has filled it for all.

    Tests must not change such a folder; if they need to, they make a copy.
    """
    base = tmp_path_factory.getbasetemp()
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "made-once"
    place.mkdir(exist_ok=True)

    def make(name: str, fill: Callable[[Path], object]) -> Path:
        folder, done = place / name, place / f"{name}.done"
        with (place / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                fill(folder)
                done.touch()
        return folder

    return make


@pytest.fixture
def on_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """A function that makes work of any size use this number of threads, on any machine, until the test ends."""
    import torch

    before = torch.get_num_threads()

    def use(count: int) -> None:
        monkeypatch.setattr("ramify.runtime.threads.SMALLEST_WORK", -1)
        monkeypatch.setattr("ramify.runtime.threads.os.cpu_count", lambda: count)
        torch.set_num_threads(count)

    yield use
    torch.set_num_threads(before)
