"""Shared by all commands: the application, common options, and consoles for results and notes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from typer.core import TyperGroup

from ramify.corpus.guessing import Kind
from ramify.corpus.lines import open_input
from ramify.errors import RamifyError
from ramify.model_names import check_model, resolve, split_name


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


def check_loadable(path: Path) -> None:
    """Refuse, without loading torch, a model that is missing, unfinished or unknown."""
    from ramify.storage.ensemble_folder import is_ensemble
    from ramify.storage.model_files import VOCABULARY, WEIGHTS, checked_file, read_config

    check_model(path)
    if not path.is_file() and not is_ensemble(path):
        read_config(path)
        for name in (VOCABULARY, WEIGHTS):
            checked_file(path, name)


def _existing_model(model: Path) -> Path:
    path = resolve(model)
    check_loadable(path)
    return path


Model = Annotated[
    Path,
    typer.Option(
        "-m",
        "--model",
        help="Model folder, written by `ramify train`; file of rules; or the name of a model (`ramify models`).",
        callback=_existing_model,
    ),
]


def existing_models(models: list[str] | None) -> list[str] | None:
    """Refuse names that are not models before torch is loaded."""
    for text in models or ():
        check_loadable(split_name(text)[1])
    return models


def _existing_trees(files: list[str] | None) -> list[str] | None:
    for text in files or ():
        if not split_name(text)[1].is_file():
            raise RamifyError(f"{text}: this file of trees does not exist; check the name.")
    return files


def _readable(path: Path) -> Path:
    """Refuse a file that cannot be read before torch is loaded; a pipe is left alone, as it can be opened only once."""
    if path.is_file() or path.is_dir() or not path.exists():
        open_input(path).close()
    return path


Models = Annotated[
    list[str],
    typer.Option(
        "-m",
        "--model",
        help="Model folder, bundled model (`ramify models`), or NAME=FOLDER; several are averaged.",
        callback=existing_models,
        show_default=False,
    ),
]
Trees = Annotated[
    list[str] | None,
    typer.Option(
        "--trees",
        help="File with another parser's trees of the same sentences, to average with the models; can be repeated.",
        callback=_existing_trees,
    ),
]
Sentences = Annotated[
    Path,
    typer.Argument(
        help="Text with one sentence per line, plain prose, bracketed trees, CoNLL-U, JSON lines or Parquet; - is "
        "standard input.",
        callback=_readable,
    ),
]
Input = Annotated[Kind, typer.Option("--input", help="Format of the sentences; auto detects it from the first lines.")]
Column = Annotated[
    str | None,
    typer.Option(
        help="Column of JSON lines or Parquet with the text, or with lists of tokens. \\[default: text]",
        show_default=False,
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, mps ...")]
Heads = Annotated[
    Literal["projective", "constituents"],
    typer.Option(help="For models with heads: any projective tree, or only trees that fit the constituents."),
]
Branching = Annotated[
    float | None,
    typer.Option(
        help="Bonus for spans at one end of the sentence: above 0 the right end, below 0 the left end; for the "
        "decoders mbr and mbr-labelled \\[default: that of the model].",
        show_default=False,
    ),
]
Decoder = Annotated[
    Literal["mbr", "mbr-labelled", "viterbi", "viterbi-rank", "sample", "biased"],
    typer.Option(
        help="mbr, mbr-labelled: highest expected number of correct (labelled) brackets; viterbi: most probable tree; "
        "viterbi-rank: the same with one rank component per rule; sample: tree drawn from the posterior; biased: "
        "published read-out of prpn and on-lstm."
    ),
]
