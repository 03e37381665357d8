"""What the commands share: the application, its options in common, where results and notes go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from typer.core import TyperGroup

from ramify.corpus.guessing import Kind
from ramify.naming import check_model


class _Group(TyperGroup):
    """Help does not show the type of a flag, which takes no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types_of_flags(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _without_types_of_flags(command.get_params(ctx))
        return command


def _without_types_of_flags(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


app = typer.Typer(
    cls=_Group,
    help="Learn phrase-structure grammars with many symbols from raw text, and parse with them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
notes = Console(stderr=True)
"""Everything that is not the result itself: progress, warnings, errors."""


def _existing_model(path: Path) -> Path:
    check_model(path)
    return path


Model = Annotated[
    Path,
    typer.Option("-m", "--model", help="Model folder, as `ramify train` leaves it.", callback=_existing_model),
]
Sentences = Annotated[
    Path,
    typer.Argument(help="Sentences, one a line, plain prose, bracketed trees, or CoNLL-U; - reads standard input."),
]
Input = Annotated[Kind, typer.Option("--input", help="What the sentences are; auto looks at the first of them.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, mps ...")]
Heads = Annotated[
    Literal["projective", "constituents"],
    typer.Option(help="Heads of models that have them: any projective tree, or one that fits the constituents."),
]
Decoder = Annotated[
    Literal["mbr", "mbr-labelled", "viterbi", "viterbi-rank", "sample"],
    typer.Option(
        help="Most expected brackets, or labelled brackets; the best parse, or of low-rank grammars the best with its "
        "rank components; a parse drawn by its probability."
    ),
]
