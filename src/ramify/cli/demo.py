"""`ramify demo`: train, score and draw in two minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ramify.cli.common import app, notes
from ramify.runtime.memory import importing


@app.command(epilog="Example: ramify demo --out runs/demo --seed 1")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the model; an earlier demo there is replaced.")] = Path(
        "runs/demo"
    ),
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
) -> None:
    """Train on the built-in corpus, score the grammar and draw three trees; takes two minutes on a laptop."""
    with importing():
        from ramify.demo import run_demo

    run_demo(out, seed, Console(), notes)
