"""The command line within this process, because starting Python and torch for every test would take minutes."""

from __future__ import annotations

import io
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest import mock

from ramify.__main__ import main


@dataclass
class Finished:
    returncode: int
    stdout: str
    stderr: str


def ramify(*arguments: object, given: str | bytes = "") -> Finished:
    """Run `ramify ARGUMENTS` in this process, with `given` on standard input."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["ramify", *map(str, arguments)]),
        mock.patch.dict(os.environ, {"COLUMNS": "200"}),
        standard_input(given.encode() if isinstance(given, str) else given),
        usual_signals(),
        warnings.catch_warnings(),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        warnings.simplefilter("default")
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return Finished(code, out.getvalue(), err.getvalue())


@contextmanager
def standard_input(content: bytes) -> Iterator[None]:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        with mock.patch.object(sys, "stdin", file):
            yield


@contextmanager
def usual_signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
