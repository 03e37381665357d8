"""`ramify experiment`: many runs from one file."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from ramify.cli.common import app, notes
from ramify.cli.on_ray import Engine, RayAddress, check_local
from ramify.errors import RamifyError
from ramify.runtime.memory import importing


@app.command(epilog="Example: ramify experiment main --data mine=treebank --out experiments/main")
def experiment(
    plan: Annotated[str, typer.Argument(metavar="FILE", help="TOML file of the experiment, or a preset's name.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for runs and results; finished runs in it are not repeated."),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(help="NAME=FOLDER with train, dev and test trees, or NAME=built-in; can be repeated."),
    ] = None,
    data_root: Annotated[
        Path | None,
        typer.Option(
            help="Folder that contains the data folders; if FILE names no data, all treebanks in it are used."
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Runs at a time \\[default: number of cores / threads per run]."),
    ] = None,
    engine: Engine = "local",
    ray_address: RayAddress = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything and list the runs; train nothing.")
    ] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Print the TOML file, for example of a preset, and exit.")
    ] = False,
) -> None:
    """Train and score several models on several data sets and seeds; if interrupted, the same command resumes.

    Exit code 1 means that some runs failed; all others are finished.
    """
    with importing():
        from ramify.lab.plan.experiment_file import find_experiment, read_plan
        from ramify.lab.plan.toml_file import read_text
        from ramify.lab.run.experiment_folder import check_folder, check_same
        from ramify.lab.run.runner import check_jobs, default_jobs, run_experiment, survey
        from ramify.lab.run.scoring import check_data
        from ramify.lab.run.status import experiment_progress, status_table
        from ramify.terminal import results_console

    if show:
        typer.echo(read_text(find_experiment(plan)), nl=False)
        return
    found = read_plan(plan, _data_paths(data or []), data_root)
    if out is None and not dry_run:
        raise RamifyError("The folder for the results is missing; give it with --out.")
    if engine == "local":
        check_local(ray_address=ray_address)
        check_jobs(found, jobs)
    if dry_run:
        if out is not None:
            check_folder(out)
            check_same(out, found)
        planned = [*survey(found, out)]
        check_data(found, planned)
        results_console().print(status_table(planned))
        return
    assert out is not None
    with ExitStack() as stack:
        start = None
        if engine == "ray":
            from ramify.lab.run.ray_jobs import ray_jobs

            cluster = stack.enter_context(ray_jobs(ray_address))
            start, jobs = cluster.start, jobs or default_jobs(found, cluster.cores())
        on_begin, on_change = stack.enter_context(experiment_progress(notes))
        statuses = run_experiment(found, out, jobs=jobs, on_begin=on_begin, on_change=on_change, start=start)
    results_console().print(status_table(statuses))
    failed = [status.name for status in statuses if status.state == "failed"]
    if failed:
        notes.print(
            f"{len(failed)} of {len(statuses)} runs failed: {', '.join(failed)}. The file failed.json of each run "
            "gives the reason; the same command tries them again.",
            markup=False, highlight=False, soft_wrap=True,
        )  # fmt: skip
        raise typer.Exit(1)
    notes.print(
        f"The results are in {out}. Tables and figures: ramify report {shlex.quote(str(out))}",
        markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip


def _data_paths(options: list[str]) -> dict[str, str]:
    places: dict[str, str] = {}
    for text in options:
        name, sign, folder = text.partition("=")
        if not (name and sign and folder):
            raise RamifyError(f"--data {text}: the name or the folder is missing; write it as NAME=FOLDER.")
        if name in places:
            raise RamifyError(f"--data {name} is given twice; keep one.")
        places[name] = folder
    return places
