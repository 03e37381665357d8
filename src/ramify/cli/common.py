"""What the commands share: the application, its options in common, where results and notes go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from ramify.corpus.guessing import Kind

app = typer.Typer(
    help="Learn phrase-structure grammars with many symbols from raw text, and parse with them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
notes = Console(stderr=True)
"""Everything that is not the result itself: progress, warnings, errors."""

Model = Annotated[Path, typer.Option("-m", "--model", help="Model folder, as `ramify train` leaves it.")]
Sentences = Annotated[
    Path, typer.Argument(help="Sentences, one a line, plain prose, or bracketed trees; - reads standard input.")
]
Input = Annotated[Kind, typer.Option("--input", help="What the sentences are; auto looks at the first of them.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, mps ...")]
Decoder = Annotated[
    Literal["mbr", "mbr-labelled", "viterbi", "viterbi-rank", "sample"],
    typer.Option(
        help="Most expected brackets, or labelled brackets; the best parse, or of low-rank grammars the best with its "
        "rank components; a parse drawn by its probability."
    ),
]
