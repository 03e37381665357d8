"""`ramify ensemble`: several models saved as one."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ramify.cli.common import Device, Input, Models, app, notes
from ramify.errors import RamifyError
from ramify.runtime.memory import importing


@app.command(epilog="Example: ramify ensemble -m runs/one -m runs/two sentences.txt --out runs/both")
def ensemble(
    model: Models,
    out: Annotated[Path, typer.Option(help="Folder for the ensemble.")],
    file: Annotated[
        Path | None,
        typer.Argument(help="Sentences for comparing the models with each other; no gold trees are needed."),
    ] = None,
    weight: Annotated[
        list[float] | None,
        typer.Option(
            help="Weight of each model, in order of -m \\[default: 1; 0.25 for models without posteriors among others]."
        ),
    ] = None,
    leave_out_collapsed: Annotated[
        bool,
        typer.Option("--leave-out-collapsed", help="Leave out models that have collapsed, judged on FILE."),
    ] = False,
    input: Input = "auto",
    device: Device = "auto",
) -> None:
    """Save several models as one, which parses with their average. The models are copied.

    With FILE, a table shows how much they agree. It also lists collapsed models: those whose trees are almost all left
    or right branching, or very different from the trees of all other models.
    """
    with importing():
        from ramify.corpus.streaming import Pause, SentenceStream
        from ramify.parser import Ensemble
        from ramify.terminal import agreement_table, collapse_lines, results_console

    if leave_out_collapsed and file is None:
        raise RamifyError("--leave-out-collapsed needs sentences to parse; give them as FILE.")
    averaged = Ensemble(model, weight, device)
    if file is not None:
        stream = SentenceStream(file, input, averaged.text_rules, averaged.word_rule)
        sentences = [each for each in stream if not isinstance(each, Pause)]
        agreement = averaged.agreement(sentences)
        console = results_console()
        if len(averaged.members) > 1:
            console.print(agreement_table(agreement.as_record()))
        collapsed = agreement.collapsed()
        if leave_out_collapsed:
            averaged = averaged.without(collapsed)
            for name, reason in collapsed.items():
                console.print(f"{name} is left out: {reason}.", markup=False)
        else:
            for line in collapse_lines(collapsed):
                console.print(line, markup=False)
    averaged.save(out)
    count = len(averaged.members)
    notes.print(
        f"Saved an ensemble of {count} model{'s' * (count > 1)} in {out}. To parse with it: "
        f"ramify parse -m {shlex.quote(str(out))} FILE",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
