"""`ramify score`: the log-probability of each sentence."""

from __future__ import annotations

from pathlib import Path

from ramify.cli.common import Column, Device, Input, Model, Sentences, app
from ramify.cli.line_output import LineOutput
from ramify.cli.sentence_options import (
    MaxLength,
    Out,
    Overwrite,
    Resume,
    Split,
    Strict,
    Tokenise,
    check_apart,
    columns_of,
    made_with_models,
    open_sentences,
    show_lines,
)
from ramify.runtime.memory import importing


@app.command(epilog="Example: ramify score -m runs/mine sentences.txt")
def score(
    model: Model,
    file: Sentences = Path("-"),
    input: Input = "auto",
    column: Column = None,
    tokenise: Tokenise = None,
    split_sentences: Split = None,
    max_length: MaxLength = None,
    strict: Strict = False,
    out: Out = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    device: Device = "auto",
) -> None:
    """Print log p(w) of each sentence in nats; -inf if the grammar has no derivation, as for a single word.

    Totals and perplexities follow on standard error.
    """
    with importing():
        from ramify.corpus.table_rows import RowCount
        from ramify.parser.loading import load_single
        from ramify.terminal.tally import LikelihoodTotals, Tally

    rows = RowCount()
    options = {"max-length": max_length, "column": column}
    made_with = made_with_models([str(model)], "score", input, tokenise, split_sentences, **options)
    check_apart(file, out)
    with LineOutput(out, resume, overwrite, made_with) as output:
        parser, tally = load_single(model, device), Tally(strict)
        totals = LikelihoodTotals(output.lines_done)
        with open_sentences(
            file, input, parser, tokenise, split_sentences, output, columns=columns_of(column), rows=rows
        ) as sentences:
            scores = totals.watch(tally.watch(parser.score_many(sentences, max_length)))
            output.write(f"{scored.log_probability:.6f}" for scored in scores)
    show_lines(*totals.lines(parser.vocabulary), *tally.lines(), *rows.lines())
