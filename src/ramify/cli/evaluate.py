"""`ramify evaluate`: a model or a baseline against gold trees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal, Optional

import typer
from rich.console import Console

from ramify.cli.common import Decoder, Device, app, notes
from ramify.errors import RamifyError
from ramify.evaluation.scores import Convention


@app.command(epilog="Example: ramify evaluate --baseline right test.trees")
def evaluate(
    trees: Annotated[Path, typer.Argument(help="Gold trees.")],
    model: Annotated[Optional[Path], typer.Option("-m", "--model", help="Model folder.")] = None,  # noqa: UP045
    baseline: Annotated[
        Optional[Literal["left", "right", "random", "balanced", "oracle"]],  # noqa: UP045
        typer.Option(help="Trees that need no model."),
    ] = None,
    convention: Annotated[
        Convention, typer.Option(help="Whether all spans over the whole sentence go (tn) or one (kim).")
    ] = "tn",
    decoder: Decoder = "mbr",
    words: Annotated[str, typer.Option(help="Leaves that are words: auto, ptb, none, or the tags to remove.")] = "auto",
    seed: Annotated[int, typer.Option(help="For random trees.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as one line of JSON.")] = False,
    device: Device = "auto",
) -> None:
    """Score a model, or a baseline, against gold trees."""
    from ramify import parser as room
    from ramify.corpus.cleaning import WordRule
    from ramify.terminal import counting, evaluation_table

    if (model is None) == (baseline is None):
        raise RamifyError("Say what to evaluate, and only one: either --model FOLDER or --baseline NAME.")
    system = baseline if model is None else room.load(model, device)
    rule = None if words == "auto" else WordRule.from_name(words)
    with counting(notes, "sentences") as on_sentence:
        result = room.evaluate(
            system,  # type: ignore[arg-type]
            trees,
            convention=convention,
            decoder=decoder,
            word_rule=rule,
            seed=seed,
            on_sentence=on_sentence,
        )
    if as_json:
        typer.echo(json.dumps(result.as_record(), ensure_ascii=False))
        return
    console = Console()
    console.print(evaluation_table([result]))
    console.print(result.signature, highlight=False, soft_wrap=True)
