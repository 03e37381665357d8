"""`ramify generate`: sentences with their trees, drawn from a grammar."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from ramify.cli.common import Device, Model, app
from ramify.cli.line_output import print_lines
from ramify.runtime.memory import importing


@app.command(epilog="Example: ramify generate -m runs/mine -n 10 --seed 1")
def generate(
    model: Model,
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="Number of sentences.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    max_length: Annotated[
        int, typer.Option(min=2, help="Maximum number of words; longer sentences are drawn again.")
    ] = 40,
    format: Annotated[
        Literal["brackets", "text"], typer.Option(help="Trees, one per line, or only their words.")
    ] = "brackets",
    device: Device = "auto",
) -> None:
    """Draw sentences with their trees from a grammar."""
    with importing():
        from ramify.corpus.brackets import write_brackets
        from ramify.parser.loading import load_single

    parses = load_single(model, device).generate(count, seed, max_length)
    print_lines(write_brackets(parse) if format == "brackets" else " ".join(parse.words) for parse in parses)
