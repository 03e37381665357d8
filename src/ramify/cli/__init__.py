"""The commands, one thin file each: they read options and call the packages that do the work."""

from __future__ import annotations

import io
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from typing import Annotated, NoReturn

import typer
from rich.text import Text

from ramify.cli.common import app, notes
from ramify.cli.line_output import watch_standard_output
from ramify.errors import RamifyError
from ramify.runtime.compilation import on_compilation
from ramify.runtime.processes import is_first_failure, launched_rank

# The overview lists the commands in this order.
# isort: off
from ramify.cli import prepare, train, focus, parse, score, grammar, generate, export, compress  # noqa: F401
from ramify.cli import evaluate, compare, models  # noqa: F401
from ramify.cli import ensemble, serve, experiment, report, bench, demo  # noqa: F401
# isort: on

state = {"debug": False}
WAIT_FOR_FIRST = 10.0
"""Seconds"""


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    state["debug"] = debug
    if version:
        from ramify.version import VERSION

        typer.echo(f"ramify {VERSION}")
        raise typer.Exit


def _print_error(error: Exception) -> NoReturn:
    if state["debug"]:
        raise error
    if not is_first_failure():
        raise SystemExit(2) from None
    # Text, not markup: a file's name may hold square brackets.
    notes.print(Text.assemble(("error: ", "bold red"), str(error)), soft_wrap=True)
    raise SystemExit(2) from None


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    notes.print(Text.assemble(("note: ", "bold yellow"), str(message)), soft_wrap=True)


@contextmanager
def _silence() -> Iterator[None]:
    """For all processes of a job but the first, which prints the same.

    After a wrong option the first process prints why and ends the job; only if it does not, this one does so.
    """
    printed = io.StringIO()
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            yield
    except SystemExit as end:
        if end.code:
            time.sleep(WAIT_FOR_FIRST)
            sys.stderr.write(printed.getvalue())
        raise


def run() -> None:
    """Run a command; a user's mistake is one sentence and exit code 2."""
    watch_standard_output()
    warnings.showwarning = _show_warning
    on_compilation(lambda notice: notes.print(notice, highlight=False, soft_wrap=True))
    try:
        with _silence() if launched_rank() and "train" in sys.argv else nullcontext():
            app(standalone_mode=True)
    except UnicodeEncodeError as error:
        sign = error.object[error.start]
        wrong = f"{sign!r} cannot be written in {error.encoding}"
        _print_error(RamifyError(f"standard output: {wrong}; set PYTHONIOENCODING=utf-8."))
    except (RamifyError, OSError) as error:
        _print_error(error)
