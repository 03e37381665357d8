"""`ramify export`: a grammar as a text file of rules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ramify.cli.common import Device, Model, app, notes
from ramify.files import locked_place


@app.command(epilog="Example: ramify export -m runs/mine --threshold 0.001 --out rules.pcfg")
def export(
    model: Model,
    out: Annotated[Path, typer.Option(help="File to write the rules to.")],
    threshold: Annotated[float, typer.Option(help="Leave out less probable rules; the rest is renormalised.")] = 0.001,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file OUT.")] = False,
    device: Device = "auto",
) -> None:
    """Write a grammar's rules in NLTK's notation; `-m` of other commands takes such a file too."""
    from ramify.corpus.rule_files import write_rules
    from ramify.parser import load
    from ramify.parser.export import export as export_rules

    with locked_place(out, overwrite) as place:
        grammar, left_out = export_rules(load(model, device), threshold)
        write_rules(place, grammar)
    mass = list(left_out.values())
    notes.print(
        f"{len(grammar.binary):,} binary rules and {len(grammar.lexical):,} of words are in {out}; left out is "
        f"{sum(mass) / len(mass):.2%} of a symbol's probability on average, {max(mass):.2%} at most.",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
