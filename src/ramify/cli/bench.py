"""`ramify bench`: speed and memory, also relative to matrix products on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from ramify.cli.common import app, notes
from ramify.runtime.memory import importing


@app.command(epilog="Example: ramify bench --preterminals 20 --nonterminals 10 --rank 20 --vocabulary 500 --length 8")
def bench(
    model: Annotated[str | None, typer.Option(help="Grammar family \\[default: tn-pcfg].")] = None,
    nonterminals: Annotated[int | None, typer.Option(help="\\[default: half of the preterminals]")] = None,
    preterminals: Annotated[int | None, typer.Option(help="\\[default: 60]")] = None,
    rank: Annotated[int | None, typer.Option(help="\\[default: --preterminals if more than 200, else 200]")] = None,
    compound: Annotated[
        bool, typer.Option("--compound", help="Compound grammar: every sentence has its own rule probabilities.")
    ] = False,
    preset: Annotated[
        str | None, typer.Option(help="Preset of `ramify train`; the options above take precedence.")
    ] = None,
    batch: Annotated[int, typer.Option(help="Sentences per step.")] = 4,
    length: Annotated[int, typer.Option(help="Words per sentence.")] = 20,
    vocabulary: Annotated[int, typer.Option(help="Number of different words.")] = 10_000,
    task: Annotated[
        Literal["train", "inside", "parse"],
        typer.Option(help="A whole training step, only the inside and outside passes, or parsing with labels."),
    ] = "train",
    seconds: Annotated[float, typer.Option(help="Duration of each measurement, in seconds.")] = 3.0,
    sweep: Annotated[
        bool,
        typer.Option("--sweep", help="Vary length, symbols and batch from half to four times; print growth exponents."),
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="With --sweep: draw the results into this file (needs matplotlib).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure speed and memory, also relative to the speed of matrix products on this machine."""
    with importing():
        from ramify import bench as bench_room
        from ramify.errors import RamifyError
        from ramify.storage.files import check_writable
        from ramify.terminal import bench_table, sweep_table
        from ramify.training.settings import load_settings

    if plot is not None:
        if not sweep:
            raise RamifyError("--plot needs --sweep; add it.")
        check_writable(plot)
    given = {
        "model": model, "nonterminals": nonterminals, "preterminals": preterminals, "rank": rank,
        "compound": compound or None,
    }  # fmt: skip
    settings = load_settings(None, given, preset=preset)
    case = bench_room.Case(
        settings.model, *settings.sizes, batch, length, vocabulary, task, preset, seconds, settings.compound,
    )  # fmt: skip
    console = Console()
    if not sweep:
        record = bench_room.measure(case).as_record()
        if as_json:
            typer.echo(json.dumps(record))
        else:
            console.print(bench_table(record))
        return
    notes.print("Measuring at half to four times the given sizes.")
    swept = bench_room.sweep(case)
    exponents = {axis: bench_room.growth(axis, found) for axis, found in swept.items()}
    if as_json:
        records = {axis: [m.as_record() for m in found] for axis, found in swept.items()}
        typer.echo(json.dumps({"measurements": records, "exponents": exponents}))
    else:
        for axis, found in swept.items():
            console.print(sweep_table(axis, [m.as_record() for m in found], exponents[axis]))
    if plot is not None:
        bench_room.plot(swept, plot)
