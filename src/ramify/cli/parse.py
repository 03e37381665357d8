"""`ramify parse` and `ramify score`: sentences in, a line out for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import typer

from ramify.cli.common import Decoder, Device, Input, Model, Sentences, app, notes
from ramify.cli.output import LineOutput
from ramify.cli.totals import ParseTotals, ScoreTotals
from ramify.errors import RamifyError

if TYPE_CHECKING:
    from ramify.corpus.sentence import Sentence
    from ramify.corpus.streaming import Pause, SentenceStream
    from ramify.parser import Parser

Tokenise = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        help="Language of plain prose (en, fr ... or xx for any); none: at spaces. \\[default: as in training]"
    ),
]
Split = Annotated[bool, typer.Option("--split-sentences", help="Find the sentences of plain prose.")]
Out = Annotated[Optional[Path], typer.Option(help="File to write to; it appears when everything is done.")]  # noqa: UP045
Resume = Annotated[bool, typer.Option("--resume", help="Go on where an earlier run with the same --out stopped.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the file OUT.")]


@app.command(epilog="Example: echo 'the dog saw a cat' | ramify parse -m runs/mine --format pretty")
def parse(
    model: Model,
    file: Sentences = Path("-"),
    format: Annotated[
        Literal["brackets", "json", "pretty", "spans"], typer.Option(help="What to print for each sentence.")
    ] = "brackets",
    posteriors: Annotated[bool, typer.Option("--posteriors", help="Add probabilities.")] = False,
    decoder: Decoder = "mbr",
    seed: Annotated[int, typer.Option(min=0, help="For the decoder sample.")] = 0,
    input: Input = "auto",
    tokenise: Tokenise = None,
    split_sentences: Split = False,
    out: Out = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    device: Device = "auto",
) -> None:
    """Parse sentences; the trees come out in the order of the sentences, with every token that came in."""
    from ramify.parser import FORMATS, load

    if resume and decoder == "sample":
        raise RamifyError("Samples cannot be gone on with: they depend on the sentences before; leave out --resume.")
    options = {"format": format, "posteriors": posteriors, "decoder": decoder}
    made_with = _made_with(model, "parse", input, tokenise, split_sentences, **options)
    output = LineOutput(out, resume, overwrite, made_with, one_line_each=format != "pretty")
    parser = load(model, device)
    totals = ParseTotals()
    with _sentences(file, input, parser, tokenise, split_sentences, output) as sentences:
        analyses = totals.watch(parser.analyse_many(sentences, decoder, seed))
        output.write(FORMATS[format](analysis, posteriors) for analysis in analyses)
    totals.report()


@app.command(epilog="Example: ramify score -m runs/mine sentences.txt")
def score(
    model: Model,
    file: Sentences = Path("-"),
    input: Input = "auto",
    tokenise: Tokenise = None,
    split_sentences: Split = False,
    out: Out = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    device: Device = "auto",
) -> None:
    """Print log p(w) of each sentence in nats; -inf where the grammar has no derivation, as for one word.

    Totals and perplexities follow on standard error.
    """
    from ramify.parser import load

    output = LineOutput(out, resume, overwrite, _made_with(model, "score", input, tokenise, split_sentences))
    parser = load(model, device)
    totals = ScoreTotals(output.lines_done)
    with _sentences(file, input, parser, tokenise, split_sentences, output) as sentences:
        output.write(f"{each.log_probability:.6f}" for each in totals.watch(parser.likelihoods(sentences)))
    totals.report(parser.vocabulary)


def _made_with(
    model: Path, command: str, input: Input, tokenise: str | None, split: bool, **options: Any
) -> Callable[[], dict[str, Any]]:
    """What a line of the result depends on, besides the sentences."""
    from ramify.parser.folder import checksum
    from ramify.version import VERSION

    about = {"command": command, "version": VERSION, "input": input, "tokenise": tokenise, "split-sentences": split}
    return lambda: {**about, **options, "model": checksum(model)}


@contextmanager
def _sentences(
    file: Path, kind: Input, parser: Parser, tokenise: str | None, split: bool, output: LineOutput
) -> Iterator[Iterable[Sentence | Pause]]:
    """The sentences still to be done, read as the model's text is read, and a bar where it can be seen."""
    from ramify.corpus.streaming import SentenceStream, size_of
    from ramify.corpus.tokenising import tokeniser
    from ramify.terminal import reading_progress

    rules = parser.text_rules
    if tokenise is not None:
        tokeniser(tokenise)  # refused before anything is read
        rules = replace(rules, tokenise=tokenise)
    with reading_progress(notes, size_of(file), output.leaves_terminal_alone) as on_bytes:
        stream = SentenceStream(file, kind, rules, parser.word_rule, split, on_bytes)
        yield _behind(stream, output.lines_done)


def _behind(stream: SentenceStream, done: int) -> Iterator[Sentence | Pause]:
    """Without the sentences that were done before."""
    from ramify.corpus.streaming import Pause

    items = iter(stream)
    sentences = (item for item in items if not isinstance(item, Pause))
    there = sum(1 for _ in islice(sentences, done))
    if there < done:
        raise RamifyError(
            f"{stream.source}: has {there:,} sentences, but {done:,} were done before; give what was read then, or "
            "begin anew with --overwrite."
        )
    yield from items
