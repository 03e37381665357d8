"""The commands: each reads its options and hands the work to the room that does it."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, Optional

import typer
from rich.console import Console
from rich.text import Text

from ramify.corpus.reading import Kind
from ramify.errors import RamifyError
from ramify.evaluation.scores import Convention

app = typer.Typer(
    help="Learn phrase-structure grammars with many symbols from raw text, and parse with them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
state = {"debug": False}
notes = Console(stderr=True)
"""Everything that is not the result itself: progress, warnings, errors."""

Model = Annotated[Path, typer.Option("-m", "--model", help="Model folder, as `ramify train` leaves it.")]
Sentences = Annotated[
    Path, typer.Argument(help="Tokenised sentences, one a line, or bracketed trees; - reads standard input.")
]
Input = Annotated[Kind, typer.Option("--input", help="What the sentences are; auto looks at the first of them.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, mps ...")]
Decoder = Annotated[
    Literal["mbr", "mbr-labelled"], typer.Option(help="Most expected brackets, or most expected labelled brackets.")
]


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


@app.command(epilog="Example: echo 'the dog saw a cat' | ramify parse -m runs/mine --format pretty")
def parse(
    model: Model,
    file: Sentences = Path("-"),
    format: Annotated[
        Literal["brackets", "json", "pretty", "spans"], typer.Option(help="What to print for each sentence.")
    ] = "brackets",
    posteriors: Annotated[bool, typer.Option("--posteriors", help="Add probabilities.")] = False,
    decoder: Decoder = "mbr",
    input: Input = "auto",
    device: Device = "auto",
) -> None:
    """Parse sentences; the trees come out in the order of the sentences."""
    from ramify.corpus.streaming import stream_sentences
    from ramify.parser import FORMATS, load

    parser = load(model, device)
    analyses = parser.analyse_many(stream_sentences(file, input, parser.word_rule), decoder)
    _print_lines(FORMATS[format](analysis, posteriors) for analysis in analyses)


@app.command(epilog="Example: ramify score -m runs/mine sentences.txt")
def score(model: Model, file: Sentences = Path("-"), input: Input = "auto", device: Device = "auto") -> None:
    """Print log p(w) of each sentence in nats; -inf where the grammar has no derivation, as for one word."""
    from ramify.corpus.streaming import stream_sentences
    from ramify.parser import load

    parser = load(model, device)
    scores = parser.log_probabilities(stream_sentences(file, input, parser.word_rule))
    _print_lines(f"{log_probability:.6f}" for log_probability in scores)


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


@app.command(epilog="Example: ramify demo --out runs/demo --seed 1")
def demo(
    out: Annotated[Path, typer.Option(help="Folder to leave the model in; a demo's run there is replaced.")] = Path(
        "runs/demo"
    ),
    seed: Annotated[int, typer.Option(help="Another seed, another grammar.")] = 0,
) -> None:
    """Learn a grammar of the built-in corpus, score it, draw three of its trees: two minutes on a laptop."""
    from ramify.demo import run_demo

    run_demo(out, seed, Console(), notes)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    state["debug"] = debug
    if version:
        from ramify.version import VERSION

        typer.echo(f"ramify {VERSION}")
        raise typer.Exit


def _print_lines(lines: Iterable[str]) -> None:
    """To standard output; when whoever reads it has seen enough, that is no mistake."""
    try:
        for line in lines:
            typer.echo(line)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would complain again when it flushes standard output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(error: Exception) -> NoReturn:
    if state["debug"]:
        raise error
    # Text, not markup: a file's name may hold square brackets.
    notes.print(Text.assemble(("error: ", "bold red"), str(error)), soft_wrap=True)
    raise SystemExit(2) from None


def main() -> None:
    """Run a command; a user's mistake is one sentence and exit code 2."""
    try:
        app(standalone_mode=True)
    except RamifyError as error:
        _complain(error)
    except OSError as error:
        _complain(error)
