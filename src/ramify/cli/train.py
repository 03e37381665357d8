"""`ramify train`, its options made from the settings of a run."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from ramify.cli.common import app, notes
from ramify.training.settings import presets


def _with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Turns `**settings` of a command into one option for every field of `Settings`, not given by default."""
    from ramify.training.settings import TYPES, Settings

    signature = inspect.signature(command)
    options = []
    for setting in fields(Settings):
        kind = TYPES[str(setting.type)]
        text = setting.metadata["help"]
        if setting.default is not None:
            text += f" \\[default: {setting.default}]"
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
    data: Annotated[Path, typer.Argument(help="Sentences, plain prose, bracketed trees, or a folder of any.")],
    out: Annotated[Path, typer.Option(help="Folder to leave the model in.")],
    dev: Annotated[
        Optional[Path], typer.Option(help="Sentences to choose the model by \\[default: every 20th held out].")  # noqa: UP045
    ] = None,
    config: Annotated[
        Optional[Path], typer.Option(help="TOML file of settings; options given here win.")  # noqa: UP045
    ] = None,
    preset: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help=f"Settings of a published model: {', '.join(presets())}; config and options win."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in OUT, if there is one.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run that OUT holds.")] = False,
    **settings: Any,
) -> None:
    """Learn a grammar from text. Trees are used only for their words, and for F1 on a dev set that has them."""
    from ramify.terminal import training_progress, unknown_lines
    from ramify.training.data import Data
    from ramify.training.run import check_folder
    from ramify.training.run import train as train_grammar
    from ramify.training.settings import load_settings

    settings = {name: value for name, value in settings.items() if value is not None}
    epochs = load_settings(config, settings, check_folder(out, resume, overwrite), preset).epochs

    def on_data(prepared: Data) -> None:
        for line in unknown_lines(prepared):
            notes.print(line, highlight=False, markup=False, soft_wrap=True)

    with training_progress(notes, epochs) as (on_progress, on_epoch):
        train_grammar(
            data,
            out,
            dev=dev,
            config=config,
            preset=preset,
            resume=resume,
            overwrite=overwrite,
            on_data=on_data,
            on_progress=on_progress,
            on_epoch=on_epoch,
            **settings,
        )
    notes.print(
        f"The model is in {out}. Parse with it: ramify parse -m {out} FILE",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
