"""Where the lines of a result go: to standard output, or to a file that can be gone on with."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import typer

from ramify.errors import RamifyError, Stopped
from ramify.files import place_for, write_json

_CHUNK = 1 << 20


class LineOutput:
    """Lines to standard output or, given `out`, to `out.partial`, which becomes `out` when all are written.

    `made_with` tells what the lines depend on; it is kept in `out.partial.json`, so that a run with something else
    does not go on with them.
    """

    def __init__(
        self,
        out: Path | None,
        resume: bool,
        overwrite: bool,
        made_with: Callable[[], dict[str, Any]],
        one_line_each: bool = True,
    ) -> None:
        self.out = out
        self.lines_done = 0
        """Whole lines that an earlier run left"""
        if out is None:
            if resume or overwrite:
                raise RamifyError("--resume and --overwrite are about a file; give its name with --out.")
            return
        self.out = out = place_for(out, overwrite)
        if resume and overwrite:
            raise RamifyError("A file is either gone on with or overwritten; give one of --resume and --overwrite.")
        if resume and not one_line_each:
            raise RamifyError("Trees drawn over several lines cannot be gone on with; choose another --format.")
        self._partial, self._about = (out.with_name(out.name + ending) for ending in (".partial", ".partial.json"))
        self._made_with = made_with()
        if self._partial.exists() and not overwrite:
            if not resume:
                raise RamifyError(
                    f"{self._partial}: was left by a run that stopped; give --resume to go on with it, or --overwrite."
                )
            self._check_same()
            self.lines_done = _whole_lines(self._partial)

    def _check_same(self) -> None:
        try:
            then = json.loads(self._about.read_bytes())
        except (OSError, ValueError, RecursionError):
            then = None
        if not isinstance(then, dict):
            raise RamifyError(
                f"{self._partial}: {self._about.name} does not tell how it was made; begin anew with --overwrite."
            )
        for name, value in self._made_with.items():
            if then.get(name) != value:
                raise RamifyError(
                    f"{self._partial}: was begun with another {name} ({str(then.get(name))[:20]}, not "
                    f"{str(value)[:20]}); give the same, or begin anew with --overwrite."
                )

    @property
    def leaves_terminal_alone(self) -> bool:
        """Whether a progress bar would not get mixed up with the lines."""
        return self.out is not None or not sys.stdout.isatty()

    def write(self, lines: Iterable[str]) -> None:
        """All of them, each as soon as it is there."""
        if self.out is None:
            print_lines(lines)
            return
        write_json(self._about, self._made_with)
        try:
            with self._partial.open("ab" if self.lines_done else "wb") as handle:
                for line in lines:
                    handle.write(line.encode() + b"\n")
            self._partial.replace(self.out)
        except Stopped as stop:
            if not (self._partial.exists() and self._partial.stat().st_size):
                raise Stopped(stop.signal, "Stopped; nothing was written yet.") from None
            raise Stopped(
                stop.signal, f"Stopped; what was done is in {self._partial}. To resume, add --resume to the command."
            ) from None
        except OSError as error:
            raise RamifyError(
                f"{self._partial}: cannot be written ({error.strerror}); make room and go on with --resume."
            ) from error
        finally:
            self._tidy()

    def _tidy(self) -> None:
        """Leave nothing behind that there is no going on with."""
        if self._partial.exists() and not self._partial.stat().st_size:
            self._partial.unlink()
        if not self._partial.exists():
            self._about.unlink(missing_ok=True)


def _whole_lines(path: Path) -> int:
    """How many lines a file holds, after a last one that has no end is cut off."""
    lines = end = position = 0
    with path.open("r+b") as handle:
        while chunk := handle.read(_CHUNK):
            lines += chunk.count(b"\n")
            last = chunk.rfind(b"\n")
            end = position + last + 1 if last >= 0 else end
            position += len(chunk)
        handle.truncate(end)
    return lines


def print_lines(lines: Iterable[str]) -> None:
    """To standard output, each as soon as it is there."""
    for line in lines:
        typer.echo(line)


class _StandardOutput(io.FileIO):
    """Ends the program when whoever reads has seen enough, which is no mistake; what else goes wrong is told."""

    _ended = False

    def write(self, data: Any) -> int:
        if self._ended:  # Python writes what is left at exit, and would complain again
            return len(data)
        try:
            return super().write(data)
        except BrokenPipeError:
            self._ended = True
            raise SystemExit(0) from None
        except OSError as error:
            self._ended = True
            raise RamifyError(
                f"standard output: cannot be written ({error.strerror}); make room, or send it elsewhere."
            ) from error


class _StandardError(io.FileIO):
    """Drops notes that nobody can read any more: they are no reason to end the work."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def watch_standard_output() -> None:
    """Everything that is printed, by whatever library, meets a closed pipe or a full disk in one place."""
    for number in (number for number, stream in ((1, sys.__stdout__), (2, sys.__stderr__)) if stream is None):
        # Closed: else the next file to be opened would get the number, and what is printed.
        os.dup2(os.open(os.devnull, os.O_RDONLY), number)
    if sys.stderr is sys.__stderr__ and sys.stderr is not None and not sys.stderr.isatty():
        notes = io.BufferedWriter(_StandardError(2, "w", closefd=False))
        sys.stderr = io.TextIOWrapper(notes, sys.stderr.encoding, sys.stderr.errors, line_buffering=True)
    given = sys.__stdout__
    if sys.stdout is not given or (given is not None and given.isatty()):
        return
    encoding, errors = ("utf-8", None) if given is None else (given.encoding, given.errors)
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(_StandardOutput(1, "w", closefd=False)), encoding, errors)
