"""Runs the tests of mutants, each in a separate copy of the package."""

from __future__ import annotations

import shutil
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.mutation.copies import copy_with, importers
from tests.mutation.forks import POLL_SECONDS, PROJECT, Finished, Limit, TestRun, import_libraries, wait_for
from tests.mutation.mutants import Group, Mutant, Place, TableError, find

PACKAGE = PROJECT / "src" / "ramify"
MIN_SECONDS, COMPILATION_SECONDS = 40, 200
"""Tests of a mutant may take three times the processor time that they take without it, at least MIN_SECONDS, and longer
if they compile."""
WAITING = 6
"""The limit of the elapsed time, as a multiple of that of processor time, because other programs may be running"""
FIRST_RUN = Limit(3600, 3600)

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
        self._killers: dict[Path, Counter[str]] = {}
        import_libraries()

    def check(self, group: Group) -> str:
        """Run the tests of a group without a mutant, which also fills the caches; returns the output if they fail."""
        if group.tests in self._usual_seconds:
            return ""
        found = wait_for(TestRun(self._sound.parent, _arguments(group), (), FIRST_RUN))
        shutil.rmtree(self._sound.parent / "tmp")
        # This includes compilation. A second run would measure the time without it; a generous limit is enough.
        self._usual_seconds[group.tests] = found.processor_seconds
        return "" if found.code == 0 else found.output or "The tests take too long."

    def run_all(self, chosen: list[tuple[Group, Mutant]], jobs: int) -> list[Result]:
        """Test mutants, `jobs` at a time, and print each result."""
        waiting = list(reversed(chosen))
        attempts: list[_Attempt] = []
        results: dict[tuple[Group, Mutant], Result] = {}
        try:
            while waiting or attempts:
                while waiting and len(attempts) < jobs:
                    attempt = self._begin(*waiting.pop(), len(results) + len(attempts))
                    if isinstance(attempt, Result):
                        results[attempt.group, attempt.mutant] = attempt
                        print(_line(attempt), flush=True)
                    else:
                        attempts.append(attempt)
                for attempt in list(attempts):
                    if found := attempt.run.finished():
                        attempts.remove(attempt)
                        result = results[attempt.group, attempt.mutant] = self._end(attempt, found)
                        print(_line(result), flush=True)
                if attempts:
                    time.sleep(POLL_SECONDS)
        finally:  # all mutants are tested, or the run was stopped
            for attempt in attempts:
                attempt.run.end()
        return [results[each] for each in chosen]

    def _begin(self, group: Group, mutant: Mutant, number: int) -> _Attempt | Result:
        """Start the tests of a group with one of its mutants."""
        if mutant.equivalent:
            return Result(group, mutant, "equivalent", note=mutant.equivalent)
        started = time.monotonic()
        folder = self._folder / str(number)
        try:
            place = find(mutant, self._sound)
        except TableError as error:
            return Result(group, mutant, "table error", note=str(error))
        folder.mkdir()
        copy_with(place, self._sound, folder)
        seconds = max(MIN_SECONDS, 3 * self._usual_seconds.get(group.tests, 0.0))
        if self._has_loops(place):
            seconds += COMPILATION_SECONDS
        killers = self._killers.setdefault(place.file, Counter())
        likely = [name for name, _ in killers.most_common()]
        run = TestRun(folder, _arguments(group), likely, Limit(seconds, WAITING * seconds))
        return _Attempt(group, mutant, place, folder, started, run)

    def _end(self, attempt: _Attempt, found: Finished) -> Result:
        shutil.rmtree(attempt.folder, ignore_errors=True)
        outcome, note = _outcome(found)
        if outcome == "killed":
            self._killers[attempt.place.file][found.failed] += 1
        return Result(attempt.group, attempt.mutant, outcome, time.monotonic() - attempt.started, note)

    def _has_loops(self, place: Place) -> bool:
        return any(
            any((self._sound / file.parent / "__pycache__").glob(f"{file.stem}.*.nbi"))
            for file in importers(place.file, self._sound)
        )


@dataclass(frozen=True)
class _Attempt:
    """A mutant whose tests are running."""

    group: Group
    mutant: Mutant
    place: Place
    folder: Path
    started: float
    run: TestRun


def _arguments(group: Group) -> list[str]:
    """The arguments of pytest."""
    return [*(() if group.slow else ("-m", "not slow")), *(f"tests/{name}" for name in group.tests)]


def _outcome(found: Finished) -> tuple[Outcome, str]:
    if found.code is None:
        return "timed out", ""
    if found.code == 0:
        return "survived", ""
    if found.code == 1:
        return "killed", found.failed
    if found.code < 0:
        with suppress(ValueError):
            return "killed", f"the process crashed: {signal.Signals(-found.code).name}"
    return "table error", f"the tests could not be run:\n{found.output[-2000:]}"


def _line(result: Result) -> str:
    note = f" ({result.note})" if result.note else ""
    return f"{result.outcome:>11} {result.seconds:4.0f} s  {result.group.name}  {result.mutant}{note}"
