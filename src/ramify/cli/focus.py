"""`ramify focus`: teachers, the ensemble of them, and students."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli.common import app, notes
from ramify.cli.train import TrainingData, with_settings
from ramify.errors import Stopped
from ramify.runtime.memory import importing

DATA = ("input", "column", "words", "tokenise", "punctuation", "normal_form", "vocabulary", "max_length", "min_count",
        "split_sentences")  # fmt: skip


@app.command(epilog="Example: ramify focus sentences.txt --out runs/focused --minutes 60")
@with_settings(DATA)
def focus(
    data: TrainingData,
    out: Annotated[Path, typer.Option(help="Folder for all grammars; the result is in its subfolder model.")],
    recipe: Annotated[
        str | None,
        typer.Option(
            help="Teachers and students: little-text, much-text, english or a TOML file \\[default: little-text or "
            "much-text, by the amount of text]."
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(help="Time limit: use the longest version of the recipe that should fit on this machine."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Grammars trained at a time \\[default: one per core]."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be trained; train nothing.")] = False,
    **settings: Any,
) -> None:
    """Learn a better parser from raw text: train several grammars, and average them.

    Then a single grammar learns from the trees of this average: it is faster, and nearly as good. If interrupted, the
    same command resumes. Gold trees are never used for training; if the test file has them, each stage is scored
    against them.
    """
    with importing():
        from ramify.lab.run.focus import prepare_focus, run_focus, stage_table
        from ramify.lab.run.runner import survey
        from ramify.lab.run.status import experiment_progress, status_table
        from ramify.terminal import results_console

    planned = prepare_focus(data, out, recipe, settings, minutes, jobs)
    notes.print(planned.announcement, highlight=False, markup=False, soft_wrap=True)
    if dry_run:
        results_console().print(status_table([*survey(planned.plan, planned.out)]))
        return
    try:
        with experiment_progress(notes) as (on_begin, on_change):
            run_focus(planned, jobs=jobs, on_begin=on_begin, on_change=on_change)
    except Stopped as stop:
        raise Stopped(stop.signal, "Stopped; everything is saved, and the same command continues.") from None
    results_console().print(stage_table(planned))
    notes.print(
        f"The ensemble is in {planned.model}. Parse with it: ramify parse -m {shlex.quote(str(planned.model))} FILE\n"
        f"A single grammar, which is faster, has rules and gives log-probabilities: {planned.student}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
