"""`ramify train`, its options made from the settings of a run."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from ramify.cli.common import Input, app, notes


def _with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Turns `**settings` of a command into one option for every field of `Settings`, not given by default."""
    from ramify.training.settings import TYPES, Settings

    signature = inspect.signature(command)
    options = []
    for setting in fields(Settings):
        kind = TYPES[str(setting.type)]
        text = setting.metadata["help"]
        if setting.default is not None:
            text += f" [default: {setting.default}]"
        name = "--" + setting.name.replace("_", "-")
        annotation = Annotated[
            kind | None,  # type: ignore[valid-type]
            typer.Option(name, help=text, show_default=False),
        ]
        options.append(
            inspect.Parameter(setting.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        )
    plain = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    resolved = inspect.get_annotations(command, eval_str=True)
    plain = [p.replace(annotation=resolved[p.name], kind=inspect.Parameter.KEYWORD_ONLY) for p in plain]
    command.__signature__ = signature.replace(parameters=[*plain, *options])  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in (*plain, *options)}
    return command


@app.command(epilog="Example: ramify train sentences.txt --preterminals 60 --epochs 5 --out runs/mine")
@_with_settings
def train(
    data: Annotated[Path, typer.Argument(help="Tokenised sentences, bracketed trees, or a folder of either.")],
    out: Annotated[Path, typer.Option(help="Folder to leave the model in.")],
    dev: Annotated[
        Optional[Path], typer.Option(help="Sentences to choose the model by [default: every 20th held out].")  # noqa: UP045
    ] = None,
    input: Input = "auto",
    words: Annotated[
        str, typer.Option(help="Leaves of trees that are words: auto, ptb, none, or the tags to remove.")
    ] = "auto",
    config: Annotated[
        Optional[Path], typer.Option(help="TOML file of settings; options given here win.")  # noqa: UP045
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run that OUT holds.")] = False,
    **settings: Any,
) -> None:
    """Learn a grammar from text. Trees are used only for their words, and for F1 on a dev set that has them."""
    from ramify.terminal import training_progress
    from ramify.training import run
    from ramify.training.settings import load_settings

    epochs = load_settings(config, settings).epochs
    with training_progress(notes, epochs) as (on_progress, on_epoch):
        run.train(
            data,
            out,
            dev=dev,
            kind=input,
            words=words,
            config=config,
            overwrite=overwrite,
            on_progress=on_progress,
            on_epoch=on_epoch,
            **settings,
        )
    notes.print(f"The model is in {out}. Parse with it: ramify parse -m {out} FILE", highlight=False, markup=False)
