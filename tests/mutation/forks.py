"""Test runs in forks of a process that has imported the libraries: importing them takes longer than most tests.

This process never imports ramify, so each fork imports the copy of the package that it tests.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
LIBRARIES = (
    "torch",
    "numba",
    "safetensors.torch",
    "spacy",
    "fastapi.testclient",
    "pyarrow.parquet",
    "pytest",
    "hypothesis",
    "nltk",
)
# The warning is about the plugins, which were imported here.
OPTIONS = ("-x", "-q", "--tb=short", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Limit:
    """How long tests may take: each of their processes on a processor, and in all, because processes can also wait."""

    processor_seconds: float
    seconds: float


@dataclass(frozen=True)
class Finished:
    """How a test run ended."""

    code: int | None
    """Of pytest; the negative number of a signal; None if it took too long"""
    failed: str
    """The test that failed"""
    output: str
    processor_seconds: float


class TestRun:
    """A process that runs tests on the package in a folder, those of `likely` first, until one fails."""

    __test__ = False

    def __init__(self, folder: Path, tests: Sequence[str], likely: Sequence[str], limit: Limit) -> None:
        self._output, self._failed = folder / "output.txt", folder / "failed.txt"
        self._limit = limit
        self._seen, self._seconds = time.monotonic(), 0.0
        self._ended = False
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if self._pid == 0:
            _run_and_exit(folder, tests, likely, limit, self._output, self._failed)

    def finished(self) -> Finished | None:
        """None while the tests are running."""
        pid, status, usage = os.wait4(self._pid, os.WNOHANG)
        if pid:
            self._ended = True
            self._kill_session()
            used = usage.ru_utime + usage.ru_stime
            code = os.waitstatus_to_exitcode(status)
            return self._result(None if code in (-signal.SIGXCPU, -signal.SIGKILL) else code, used)
        now = time.monotonic()
        self._seconds += min(now - self._seen, 1.0)  # a machine may sleep, and all this be stopped for a while
        self._seen = now
        if self._seconds > self._limit.seconds:
            self.end()
            return self._result(None, self._limit.processor_seconds)
        return None

    def end(self) -> None:
        """Kill all processes of the run."""
        if not self._ended:
            self._ended = True
            self._kill_session()
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)  # it may not have a session yet
            os.waitpid(self._pid, 0)

    def _kill_session(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)

    def _result(self, code: int | None, processor_seconds: float) -> Finished:
        failed = self._failed.read_text() if self._failed.exists() else ""
        return Finished(code, failed, self._output.read_text(errors="replace"), processor_seconds)


def wait_for(run: TestRun) -> Finished:
    """Its result."""
    try:
        while (finished := run.finished()) is None:
            time.sleep(POLL_SECONDS)
    finally:
        run.end()
    return finished


def import_libraries() -> None:
    """All that most tests import, except ramify."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as in tests/conftest.py, which would set it too late
    for name in LIBRARIES:
        with suppress(ImportError):  # an extra is not installed
            import_module(name)
    for plugin in entry_points(group="pytest11"):
        plugin.load()
    gc.collect()
    gc.freeze()  # so that forks do not copy the memory of these objects


def _run_and_exit(
    folder: Path, tests: Sequence[str], likely: Sequence[str], limit: Limit, output: Path, failed: Path
) -> None:
    code = 3  # as of pytest for an internal error
    try:
        _begin_session()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _redirect(output)
        seconds = round(limit.processor_seconds)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        scratch = folder / "tmp"  # short, because Ray puts sockets there, whose paths have 107 bytes at most
        scratch.mkdir()
        os.environ.update(PYTHONPATH=str(folder), TMPDIR=str(scratch))
        os.environ.pop("NUMBA_CACHE_DIR", None)
        tempfile.tempdir = None
        sys.path.insert(0, str(folder))
        os.chdir(PROJECT)
        code = _pytest([*OPTIONS, f"--basetemp={folder / 'pytest'}", *tests], likely, failed)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _begin_session() -> None:
    """A separate session with the priority of this one: Linux shares the processor among sessions, if it may."""
    priority = Path("/proc/self/autogroup")  # "/autogroup-12 nice 0"
    before = 0
    with suppress(OSError, ValueError):
        before = int(priority.read_text().split()[-1])
    os.setsid()
    with suppress(OSError):
        priority.write_text(str(max(before, os.nice(0))))


def _redirect(output: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for source, target in ((nothing, 0), (file, 1), (file, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(file)


def _pytest(arguments: list[str], likely: Sequence[str], failed: Path) -> int:
    import pytest
    from hypothesis import Phase, settings

    class Plugin:
        def pytest_sessionstart(self) -> None:
            # One counterexample is enough, and the same one for everybody.
            phases = (Phase.explicit, Phase.generate, Phase.target)
            settings.register_profile("mutants", deadline=None, derandomize=True, database=None, phases=phases)
            settings.load_profile("mutants")

        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
            ranks = {name: rank for rank, name in enumerate(likely)}
            items.sort(key=lambda item: ranks.get(item.nodeid, len(ranks)))

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed and not failed.exists():
                failed.write_text(report.nodeid)

    return int(pytest.main(arguments, [Plugin()]))
