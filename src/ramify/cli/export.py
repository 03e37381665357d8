"""`ramify export`: a grammar as a text file of rules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ramify.cli.common import Device, Model, app, notes
from ramify.runtime.memory import importing
from ramify.storage.files import locked_output


@app.command(epilog="Example: ramify export -m runs/mine --out rules.pcfg")
def export(
    model: Model,
    out: Annotated[Path, typer.Option(help="File to write the rules to.")],
    mass: Annotated[
        float,
        typer.Option(
            help="Share of probability to keep, for the rules of each nonterminal and the preterminals of each word."
        ),
    ] = 0.999,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file OUT.")] = False,
    device: Device = "auto",
) -> None:
    """Write the rules of a grammar in NLTK's notation; other commands accept the file for `-m`."""
    with importing():
        from ramify.corpus.rule_files import write_rules
        from ramify.parser.export import export as export_rules
        from ramify.parser.export import text_record
        from ramify.parser.loading import load_single

    with locked_output(out, overwrite) as place:
        parser = load_single(model, device)
        grammar, left_out = export_rules(parser, mass)
        write_rules(place, grammar, text_record(parser))
    lost = list(left_out.values())
    report = [
        f"{out} contains {len(grammar.binary):,} binary rules and {len(grammar.lexical):,} lexical rules; "
        f"{sum(lost) / len(lost):.2%} of the probability of a symbol is left out on average, {max(lost):.2%} at most."
    ]
    if parser.grammar.latent:
        report.append(
            "These are the rules at z = 0; the compound grammar itself has different rules for every sentence."
        )
    if parser.text_rules.splitter is not None:
        report.append("The sentence splitter of the model is not exported.")
    for line in report:
        notes.print(line, highlight=False, markup=False, soft_wrap=True)
