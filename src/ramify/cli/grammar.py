"""`ramify grammar`: a description of an induced grammar."""

from __future__ import annotations

import io
import json
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from ramify.cli.common import Decoder, Device, Input, Model, app, notes
from ramify.cli.line_output import print_lines
from ramify.cli.sentence_options import Overwrite, Split, Tokenise
from ramify.errors import RamifyError
from ramify.runtime.memory import importing
from ramify.storage.files import locked_output, write_atomically

if TYPE_CHECKING:
    from ramify.lab.glossary.glossary import Glossary, Text
    from ramify.parser import Parser

Format = Literal["terminal", "markdown", "json", "html"]
ENDINGS: dict[str, Format] = {
    ".txt": "terminal",
    ".md": "markdown",
    ".json": "json",
    ".html": "html",
    ".htm": "html",
}
PLAIN_WIDTH = 100
DECODER: Decoder = "mbr"
INPUT: Input = "auto"


@app.command(epilog="Example: ramify grammar -m runs/mine test.trees --out grammar.html")
def grammar(
    model: Model,
    text: Annotated[
        Path | None,
        typer.Argument(
            help="Text or trees to count symbols in; - reads standard input. Without it: rules and words only."
        ),
    ] = None,
    format: Annotated[
        Format | None,
        typer.Option(help="\\[default: by the extension of OUT; otherwise terminal]"),
    ] = None,
    symbols: Annotated[int, typer.Option(min=1, help="Number of symbols of each kind, the most used first.")] = 30,
    examples: Annotated[int, typer.Option(min=1, help="Typical phrases per nonterminal.")] = 10,
    words: Annotated[
        int, typer.Option(min=1, help="Number of first words, last words, and words per preterminal.")
    ] = 8,
    rules: Annotated[int, typer.Option(min=1, help="Most probable rules per nonterminal.")] = 5,
    decoder: Decoder = DECODER,
    input: Input = INPUT,
    tokenise: Tokenise = None,
    split_sentences: Split = None,
    out: Annotated[Path | None, typer.Option(help="File to write to.")] = None,
    overwrite: Overwrite = False,
    device: Device = "auto",
) -> None:
    """Describe the symbols of a grammar: phrases, words, rules and, if the text consists of trees, gold labels."""
    with importing():
        from ramify.lab.glossary.describe import Extent, describe
        from ramify.parser.loading import load_single
        from ramify.terminal import progress_counter

    if out is None and overwrite:
        raise RamifyError("--overwrite needs a file; give its name with --out.")
    if text is None:
        _check_text_options(decoder, input, tokenise, split_sentences)
    with nullcontext() if out is None else locked_output(out, overwrite) as place:
        chosen = format or ("terminal" if out is None else _format_of(out))
        parser = load_single(model, device)
        found = None if text is None else _parsed(parser, text, input, tokenise, split_sentences, decoder)
        with progress_counter(notes, "symbols") as on_symbol:
            glossary = describe(parser, str(model), found, Extent(symbols, examples, words, rules), on_symbol)
        _write_or_print(glossary, chosen, place)


def _write_or_print(glossary: Glossary, chosen: Format, place: Path | None) -> None:
    if place is not None:
        write_atomically(place, _plain(glossary, chosen).encode("utf-8", "backslashreplace"))
        shown = f"{len(glossary.nonterminals)} nonterminals and {len(glossary.preterminals)} preterminals"
        notes.print(f"{place} describes {shown}.", highlight=False, markup=False, soft_wrap=True)
    elif chosen == "terminal" and sys.stdout.isatty():
        _print(glossary, Console(highlight=False))
    else:
        print_lines([_plain(glossary, chosen).removesuffix("\n")])


def _check_text_options(decoder: Decoder, kind: Input, tokenise: str | None, split: bool | None) -> None:
    about_text = {
        "--decoder": decoder != DECODER,
        "--input": kind != INPUT,
        "--tokenise": tokenise is not None,
        "--split-sentences": split is not None,
    }
    for option, value in about_text.items():
        if value:
            raise RamifyError(f"{option} needs a text to parse; give its name, or leave out {option}.")


def _format_of(out: Path) -> Format:
    if out.suffix.lower() not in ENDINGS:
        raise RamifyError(
            f"{out}: the format is not clear from this name; use a name that ends in one of {', '.join(ENDINGS)}, or "
            "give --format."
        )
    return ENDINGS[out.suffix.lower()]


def _parsed(
    parser: Parser, file: Path, kind: Input, tokenise: str | None, split: bool | None, decoder: Decoder
) -> Text:
    from ramify.corpus.streaming import SentenceStream, size_of
    from ramify.corpus.tokenising import tokeniser
    from ramify.lab.glossary.describe import count_text, rule_for_trees
    from ramify.terminal import reading_progress

    text_rules = parser.text_rules
    if tokenise is not None:
        tokeniser(tokenise)  # an unknown tokeniser is refused before reading
        text_rules = replace(text_rules, tokenise=tokenise)
    with reading_progress(notes, size_of(file), visible=True) as on_bytes:
        stream = SentenceStream(file, kind, text_rules, rule_for_trees(parser, file, kind), split, on_bytes)
        return count_text(stream.source, parser.analyse_many(stream, decoder))


def _plain(glossary: Glossary, format: Format) -> str:
    """The glossary in the form for a file or a pipe."""
    from ramify.lab.glossary.glossary import as_html, as_markdown

    if format == "json":
        return json.dumps(glossary.as_record(), indent=1, ensure_ascii=False) + "\n"
    if format != "terminal":
        return as_html(glossary) if format == "html" else as_markdown(glossary)
    written = io.StringIO()
    _print(glossary, Console(file=written, width=PLAIN_WIDTH, highlight=False))
    return "".join(line.rstrip() + "\n" for line in written.getvalue().split("\n")[:-1])


def _print(glossary: Glossary, console: Console) -> None:
    from ramify.lab.glossary.glossary import in_terminal

    for part in in_terminal(glossary):
        console.print(part)
