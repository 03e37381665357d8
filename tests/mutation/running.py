"""Runs the tests of mutants, each in a separate copy of the package."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.mutation.mutants import Group, Mutant, TableError, find

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "src" / "ramify"
MIN_SECONDS, COMPILATION_SECONDS = 120, 300
"""Tests of a mutant may take three times as long as without it, at least MIN_SECONDS, and longer if they compile."""
FIRST_RUN_SECONDS = 3600

Outcome = Literal["killed", "timed out", "survived", "equivalent", "table error"]


@dataclass(frozen=True)
class Result:
    """The outcome of one mutant."""

    group: Group
    mutant: Mutant
    outcome: Outcome
    seconds: float = 0.0
    note: str = ""


class Runner:
    """Tests mutants in copies of the package in a separate folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sound = folder / "sound" / "ramify"
        shutil.copytree(PACKAGE, self._sound)
        self._usual_seconds: dict[tuple[str, ...], float] = {}

    def check(self, group: Group) -> str:
        """Run the tests of a group without a mutant, which also fills the caches; returns the output if they fail."""
        if group.tests in self._usual_seconds:
            return ""
        started = time.monotonic()
        code, output = _run_tests(self._sound.parent, group, FIRST_RUN_SECONDS)
        # This includes compilation. A second run would measure the time without it; a generous limit is enough.
        self._usual_seconds[group.tests] = time.monotonic() - started
        return "" if code == 0 else output

    def run(self, group: Group, mutant: Mutant, number: int) -> Result:
        """Run the tests of a group with one of its mutants."""
        if mutant.equivalent:
            return Result(group, mutant, "equivalent", note=mutant.equivalent)
        started = time.monotonic()
        copy = self._folder / str(number)
        try:
            place = find(mutant, self._sound)
            shutil.copytree(self._sound, copy / "ramify")
            (copy / "ramify" / place.file).write_text(place.source, encoding="utf-8")
            limit = max(MIN_SECONDS, 3 * self._usual_seconds.get(group.tests, 0.0))
            if place.is_kernel:
                limit += COMPILATION_SECONDS
                # Compiled loops of other files may contain those of this file.
                for cached in copy.rglob("*.nb[ci]"):
                    cached.unlink()
            code, output = _run_tests(copy, group, limit)
        except TableError as error:
            return Result(group, mutant, "table error", note=str(error))
        finally:
            shutil.rmtree(copy, ignore_errors=True)
        seconds = time.monotonic() - started
        if code is None:
            return Result(group, mutant, "timed out", seconds)
        if code == 0:
            return Result(group, mutant, "survived", seconds)
        if code == 1:
            failed = next((line for line in output.splitlines() if line.startswith("FAILED ")), "")
            return Result(group, mutant, "killed", seconds, failed.removeprefix("FAILED ").partition(" - ")[0])
        return Result(group, mutant, "table error", seconds, f"the tests could not be run:\n{output[-2000:]}")

    def run_all(self, chosen: list[tuple[Group, Mutant]], jobs: int) -> list[Result]:
        """Test mutants, `jobs` at a time, and print each result."""
        with ThreadPoolExecutor(jobs) as pool:
            waiting = [pool.submit(self.run, *each, number) for number, each in enumerate(chosen)]
            results = []
            try:
                for future in waiting:
                    results.append(future.result())
                    print(_line(results[-1]), flush=True)
            finally:  # all mutants are tested, or the run was stopped
                for future in waiting:
                    future.cancel()
                for process in list(_running):
                    _end(process)
        return results


def _run_tests(path: Path, group: Group, limit: float) -> tuple[int | None, str]:
    """The exit code of pytest (None if it timed out) and its output."""
    tests = [f"tests/{name}" for name in group.tests]
    options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", f"--basetemp={path / 'pytest'}"]
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    process = subprocess.Popen(  # in a separate session, so that processes started by the tests end with it
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=PROJECT,
        env={**environment, "PYTHONPATH": str(path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    _running.add(process)
    try:
        output, _ = process.communicate(timeout=limit)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        _running.discard(process)
        _end(process)


_running: set[subprocess.Popen[str]] = set()


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _line(result: Result) -> str:
    note = f" ({result.note})" if result.note else ""
    return f"{result.outcome:>11} {result.seconds:4.0f} s  {result.group.name}  {result.mutant}{note}"
