"""`ramify train`, with options generated from the settings of a run."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli.common import app, check_loadable, notes
from ramify.errors import RamifyError, Stopped
from ramify.model_names import split_name, system_kind
from ramify.runtime.memory import importing
from ramify.training.settings import presets

DATA = ("input", "column", "words", "tokenise", "punctuation", "normal_form", "vocabulary", "max_length")
MODEL = (
    "model", "nonterminals", "preterminals", "rank", "embedding", "width", "layers", "activation", "initialisation",
    "gain",
)  # fmt: skip
RUN = ("checkpoint_minutes", "device")


def _panel_of(setting: str, kind: type) -> str:
    """The help panel of a setting; switches have a separate panel, because their negative forms need a column."""
    if kind is bool:
        return "Switches"
    return "Data" if setting in DATA else "Model" if setting in MODEL else "Run" if setting in RUN else "Training"


def _existing(path: Path | None) -> Path | None:
    """Refuse a path that does not exist, before torch is loaded."""
    if path is not None and not path.exists():
        raise RamifyError(f"{path}: does not exist; check the name.")
    return path


TrainingData = Annotated[
    Path,
    typer.Argument(
        help="Sentences, plain prose, bracketed trees, CoNLL-U, JSON lines or Parquet; a file or folder.",
        callback=_existing,
    ),
]


def _existing_teachers(teachers: list[str] | None) -> list[str] | None:
    for text in teachers or ():
        if system_kind(text) == "model":
            check_loadable(split_name(text)[1])
    return teachers


def with_settings(names: Collection[str] | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace `**settings` of a command by options for the fields of `Settings`, or some of them, without defaults."""
    return partial(_with_settings, names=names)


def _with_settings(command: Callable[..., None], names: Collection[str] | None) -> Callable[..., None]:
    from ramify.training.settings import TYPES, named_settings

    signature = inspect.signature(command)
    options = []
    for setting in named_settings().values():
        if names is not None and setting.name not in names:
            continue
        kind = TYPES[str(setting.type)]
        text = setting.metadata["help"]
        if setting.metadata.get("by_text"):
            text += " \\[default: by the amount of text]"
        elif setting.default is not None and kind is not bool:
            text += f" \\[default: {setting.default}]"
        name = "--" + setting.name.replace("_", "-")
        if kind is bool:
            name += f"/--no-{name.removeprefix('--')}"  # which a setting in a TOML file can be overridden with
        annotation = Annotated[
            kind | None,  # type: ignore[valid-type]
            typer.Option(name, help=text, show_default=False, rich_help_panel=_panel_of(setting.name, kind)),
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
@with_settings()
def train(
    data: TrainingData,
    out: Annotated[Path, typer.Option(help="Folder for the model.")],
    dev: Annotated[
        Path | None,
        typer.Option(
            help="Dev sentences, for choosing the best epoch \\[default: every 20th is held out].", callback=_existing
        ),
    ] = None,
    teacher: Annotated[
        list[str] | None,
        typer.Option(
            help="Model folder or file of trees to learn constituents from; can be repeated.",
            callback=_existing_teachers,
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file of settings; options take precedence.")] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help=f"Settings of a published model: {', '.join(presets())}; --config and options take precedence."
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the run in OUT, if there is one.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in OUT.")] = False,
    **settings: Any,
) -> None:
    """Learn a grammar from text. Trees are used only for their words, and to report F1 on the dev set."""
    with importing():
        from ramify.terminal import training_display
        from ramify.training.run import train as train_grammar

    try:
        with training_display(notes) as callbacks:
            train_grammar(
                data,
                out,
                dev=dev,
                teachers=teacher or (),
                config=config,
                preset=preset,
                resume=resume,
                overwrite=overwrite,
                **callbacks,
                **settings,
            )
    except Stopped as stop:
        with_dev = "" if dev is None else f" --dev {shlex.quote(str(dev))}"
        teachers = "".join(f" --teacher {shlex.quote(text)}" for text in teacher or ())
        command = f"ramify train {shlex.quote(str(data))}{with_dev}{teachers} --out {shlex.quote(str(out))} --resume"
        raise Stopped(stop.signal, f"Stopped; the run is saved. To resume: {command}") from None
    notes.print(
        f"The model is in {out}. To parse with it: ramify parse -m {out} FILE",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
