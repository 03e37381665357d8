"""Shared by `ramify parse` and `ramify score`: options, and the stream of remaining sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramify.cli.common import Input, notes
from ramify.cli.line_output import LineOutput
from ramify.cli.whole_files import WholeFiles
from ramify.errors import RamifyError
from ramify.model_names import split_name

if TYPE_CHECKING:
    from ramify.corpus.sentence import Sentence
    from ramify.corpus.streaming import Pause
    from ramify.corpus.table_rows import Columns, RowCount
    from ramify.parser.tree_parser import TreeParser

Tokenise = Annotated[
    str | None,
    typer.Option(
        help="Tokenise plain prose in this language (en, fr ... or xx for any); none splits at spaces. \\[default: "
        "as in training]"
    ),
]
Split = Annotated[
    bool | None,
    typer.Option(
        "--split-sentences/--no-split-sentences",
        help="Split plain prose into sentences, or take every line as one. \\[default: as in training]",
        show_default=False,
    ),
]
Out = Annotated[Path | None, typer.Option(help="Output file; it appears when all sentences are done.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue where an earlier run with the same --out stopped.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the file OUT.")]
MaxLength = Annotated[
    int | None,
    typer.Option(min=1, help="Longest sentence to parse, in words. \\[default: limited by memory]"),
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first sentence that has no parse.")]
INLINE, PUNCTUATION = "inline", "punctuation"
NO_COLUMN = "none"
"""The value of --keep for no columns"""


def columns_of(column: str | None, keep: list[str] | None = None) -> Columns | None:
    """The columns of a table to read; None if no option names columns."""
    from ramify.corpus.table_rows import TEXT, Columns

    if column is None and not keep:
        return None
    kept = None if not keep else () if keep == [NO_COLUMN] else tuple(keep)
    return Columns(column or TEXT, kept)


def check_apart(file: Path, out: Path | None) -> None:
    """Refuse to replace the sentences with the result."""
    if out is not None and out.exists() and file.exists() and out.samefile(file):
        raise RamifyError(f"{out}: this is the input file; give another name for the output.")


def show_lines(*lines: str) -> None:
    """Print lines on standard error, apart from the results."""
    for line in lines:
        notes.print(line, highlight=False, markup=False, soft_wrap=True)


def made_with_models(
    members: list[str], command: str, input: Input, tokenise: str | None, split: bool | None, **options: Any
) -> Callable[[], dict[str, Any]]:
    """Everything that a line of the result depends on, except the sentences."""
    from ramify.storage.ensemble_folder import checksum_of
    from ramify.version import VERSION

    about = {"command": command, "version": VERSION, "input": input, "tokenise": tokenise, "split-sentences": split}
    return lambda: {**about, **options, "model": " ".join(checksum_of(split_name(each)[1]) for each in members)}


@contextmanager
def open_sentences(
    file: Path,
    kind: Input,
    parser: TreeParser,
    tokenise: str | None,
    split: bool | None,
    output: LineOutput | WholeFiles,
    constraints: str | None = None,
    columns: Columns | None = None,
    rows: RowCount | None = None,
) -> Iterator[Iterable[Sentence | Pause]]:
    """The remaining sentences, read by the model's text rules, with a progress bar if it can be shown.

    Rows without text are counted in `rows`.
    """
    from ramify.corpus.constraint_reading import (
        ConstrainedStream,
        InlineRules,
        constrain_by_punctuation,
        text_sentences,
    )
    from ramify.corpus.streaming import Pause, SentenceStream, size_of
    from ramify.terminal import reading_progress

    rules = parser.text_rules
    if tokenise is not None:
        rules = rules.with_tokeniser(tokenise)  # an unknown tokeniser is refused before reading
    if constraints == INLINE:
        rules = InlineRules.of(rules)
    with reading_progress(notes, size_of(file), output.allows_progress_bar) as on_bytes:
        stream = SentenceStream(file, kind, rules, parser.word_rule, split, on_bytes, columns)
        stream.rows = rows or stream.rows
        read: Iterable[Sentence | Pause] = stream
        if constraints == INLINE:
            read = text_sentences(stream)
        elif constraints == PUNCTUATION:
            read = (item if isinstance(item, Pause) else constrain_by_punctuation(item) for item in stream)
        elif constraints is not None:
            read = ConstrainedStream(stream, Path(constraints))
        yield _remaining(read, stream.source, output)


def _remaining(
    stream: Iterable[Sentence | Pause], source: str, output: LineOutput | WholeFiles
) -> Iterator[Sentence | Pause]:
    """The remaining sentences; pauses are left out if the output is a file, because no reader waits for its lines."""
    from ramify.corpus.streaming import Pause

    items, done = iter(stream), output.lines_done
    sentences = (item for item in items if not isinstance(item, Pause))
    there = sum(1 for _ in islice(sentences, done))
    if there < done:
        raise RamifyError(
            f"{source}: has {there:,} sentences, but {done:,} are already done; give the same input, or "
            "start again with --overwrite."
        )
    yield from items if output.out is None else sentences
