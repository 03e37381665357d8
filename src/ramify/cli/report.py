"""`ramify report`: the tables and figures of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from ramify.cli.common import app, notes


@app.command(epilog="Example: ramify report runs/main --out report")
def report(
    runs: Annotated[Path, typer.Argument(help="Folder of an experiment, finished or not, or of result files.")],
    out: Annotated[Path | None, typer.Option(help="Folder to write into \\[default: RUNS/report]")] = None,
) -> None:
    """Turn saved results into a page of tables and figures, and into LaTeX and CSV files."""
    from ramify.lab.report import make_report

    columns = (TextColumn("figures"), BarColumn(bar_width=24), MofNCompleteColumn())
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task("", total=None)
        made = make_report(runs, out, lambda: bar.advance(task))
    for problem in made.problems:
        notes.print(f"{problem.what}: {problem.where}: {problem.why}", markup=False, highlight=False, soft_wrap=True)
    for note in made.notes:
        notes.print(note, markup=False, highlight=False, soft_wrap=True)
    typer.echo(f"{made.page}: {made.results} results, {made.tables} tables, {made.figures} figures")
