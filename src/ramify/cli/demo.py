"""`ramify demo`: the whole path in two minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ramify.cli.common import app, notes
from ramify.runtime.memory import importing


@app.command(epilog="Example: ramify demo --out runs/demo --seed 1")
def demo(
    out: Annotated[Path, typer.Option(help="Folder to leave the model in; a demo's run there is replaced.")] = Path(
        "runs/demo"
    ),
    seed: Annotated[int, typer.Option(help="Another seed, another grammar.")] = 0,
) -> None:
    """Learn a grammar of the built-in corpus, score it, draw three of its trees: two minutes on a laptop."""
    with importing():
        from ramify.demo import run_demo

    run_demo(out, seed, Console(), notes)
