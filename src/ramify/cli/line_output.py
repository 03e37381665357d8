"""Output of result lines: to standard output, or to a file that can be resumed."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO

import typer

from ramify.corpus.streaming import WINDOW
from ramify.errors import RamifyError, Stopped
from ramify.printing import printable
from ramify.storage.files import output_path, partial_path, write_json
from ramify.storage.gzip_output import GzipGroups, encoded_line, whole_members
from ramify.storage.locks import locked_file
from ramify.storage.made_with import check_made_with, read_made_with

RESUME_OR_OVERWRITE = "--resume and --overwrite exclude each other; give one of them."
_CHUNK = 1 << 20


class LineOutput:
    """Lines to standard output or, given `out`, to `out.partial`, which becomes `out` when all are written.

    An `out` that ends in `.gz` is compressed.

    Use it in a `with` block, within which no other process writes to `out`. `made_with` describes the model and the
    options; it is saved in `out.partial.json`, so that a run with others does not resume the file.
    """

    def __init__(
        self,
        out: Path | None,
        resume: bool,
        overwrite: bool,
        made_with: Callable[[], dict[str, Any]],
        one_line_each: bool = True,
    ) -> None:
        if out is None and (resume or overwrite):
            raise RamifyError("--resume and --overwrite need a file; give its name with --out.")
        if resume and overwrite:
            raise RamifyError(RESUME_OR_OVERWRITE)
        if resume and not one_line_each:
            raise RamifyError("Only formats with one line per sentence can be resumed; choose another --format.")
        self.out = None if out is None else output_path(out, overwrite)
        self.lines_done = 0
        """Number of complete lines from an earlier run, a multiple of the parser's window"""
        self._compressed = self.out is not None and self.out.suffix == ".gz"
        self._resume, self._overwrite, self._find_made_with = resume, overwrite, made_with
        self._open = ExitStack()

    def __enter__(self) -> LineOutput:
        if self.out is None:
            return self
        self._partial = partial_path(self.out)
        self._about = self._partial.with_name(f"{self._partial.name}.json")
        with ExitStack() as stack:
            descriptor = stack.enter_context(locked_file(self._partial, self.out))
            output_path(self.out, self._overwrite)  # again, because another process may have finished it
            if self._about.is_symlink():
                raise RamifyError(f"{self._about}: this is a link, which is not followed; remove it.")
            stack.callback(self._tidy)
            self._file = os.fdopen(descriptor, "r+b", closefd=False)
            stack.callback(self._close)
            self._made_with = self._find_made_with()
            if self._overwrite:
                self._file.truncate(0)
            elif os.fstat(descriptor).st_size:
                self._resume_lines()
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _resume_lines(self) -> None:
        if not self._resume:
            raise RamifyError(
                f"{self._partial}: an earlier run did not finish; give --resume to complete it, or --overwrite."
            )
        check_made_with(read_made_with(self._about, self._partial), self._made_with, self._partial)
        # Sentences are parsed in groups, and the last digits of results depend on the group: keep only whole groups.
        self.lines_done, end = (whole_members if self._compressed else _whole_groups)(self._file, WINDOW)
        self._file.truncate(end)
        self._file.seek(end)

    @property
    def allows_progress_bar(self) -> bool:
        """Whether a progress bar would not mix with the lines."""
        return self.out is not None or not sys.stdout.isatty()

    def write(self, lines: Iterable[str]) -> None:
        """Write all lines, each as soon as it is available."""
        if self.out is None:
            print_lines(lines)
            return
        write_json(self._about, self._made_with)
        sink = GzipGroups(self._file) if self._compressed else self._file
        try:
            try:
                for line in lines:
                    sink.write(encoded_line(line))
                sink.flush()
            finally:
                self._file.flush()
            os.fsync(self._file.fileno())
            self._partial.replace(self.out)
        except Stopped as stop:
            kept = f"the results so far are in {self._partial}. To resume, add --resume to the command."
            raise Stopped(
                stop.signal, f"Stopped; {kept if self._file.tell() else 'nothing was written yet.'}"
            ) from None
        except OSError as error:
            raise RamifyError(
                f"{self._partial}: cannot be written ({error.strerror}); free some disk space and continue with "
                "--resume."
            ) from error

    def _close(self) -> None:
        with suppress(OSError):  # what could not be written has been reported
            self._file.close()

    def _tidy(self) -> None:
        """Remove output that cannot be resumed."""
        if not self._partial.exists() or not self._partial.stat().st_size:
            self._about.unlink(missing_ok=True)


def _whole_groups(handle: BinaryIO, size: int) -> tuple[int, int]:
    """The lines of the complete groups of `size` lines at the beginning of a file, and where they end."""
    lines = kept = end = position = 0
    while chunk := handle.read(_CHUNK):
        found = chunk.count(b"\n")
        last = -1
        for _ in range((lines + found) // size * size - lines):
            last = chunk.index(b"\n", last + 1)
        if last >= 0:
            kept, end = (lines + found) // size * size, position + last + 1
        lines += found
        position += len(chunk)
    return kept, end


def print_lines(lines: Iterable[str]) -> None:
    """Print lines to standard output, each as soon as it is available.

    A file or a pipe gets the bytes that `--out` would write, including every character. On a terminal, characters that
    it would interpret are replaced.
    """
    stream, raw = sys.stdout, getattr(sys.stdout, "buffer", None)
    for line in lines:
        if stream.isatty():
            typer.echo("\n".join(map(printable, line.split("\n"))))
        elif raw is None:
            stream.write(line + "\n")
        else:
            stream.flush()
            raw.write(encoded_line(line))
            raw.flush()


class _StandardOutput(io.FileIO):
    """Ends the program quietly when the reader closes the pipe; other errors are reported."""

    _ended = False

    def write(self, data: Any) -> int:
        if self._ended:  # Python flushes the rest at exit, and would report the error again
            return len(data)
        try:
            return super().write(data)
        except BrokenPipeError:
            self._ended = True
            raise SystemExit(0) from None
        except OSError as error:
            self._ended = True
            raise RamifyError(
                f"standard output: cannot be written ({error.strerror}); free some disk space, or redirect it."
            ) from error


class _StandardError(io.FileIO):
    """Drops notes if standard error is closed, so that they do not end the command."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def watch_standard_output() -> None:
    """Handle a closed pipe or a full disk in one place, whichever library prints."""
    for number in (number for number, stream in ((1, sys.__stdout__), (2, sys.__stderr__)) if stream is None):
        # The stream is closed: the next file to be opened would get its number, and with it all printed text.
        os.dup2(os.open(os.devnull, os.O_RDONLY), number)
    if sys.stderr is sys.__stderr__ and sys.stderr is not None and not sys.stderr.isatty():
        notes = io.BufferedWriter(_StandardError(2, "w", closefd=False))
        sys.stderr = io.TextIOWrapper(notes, sys.stderr.encoding, sys.stderr.errors, line_buffering=True)
    original = sys.__stdout__
    if sys.stdout is not original or (original is not None and original.isatty()):
        return
    encoding, errors = ("utf-8", None) if original is None else (original.encoding, original.errors)
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(_StandardOutput(1, "w", closefd=False)), encoding, errors)
