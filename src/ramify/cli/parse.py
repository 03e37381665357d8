"""`ramify parse` and `ramify score`: sentences in, a line out for each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ramify.cli.common import Decoder, Device, Input, Model, Sentences, app, print_lines


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
    print_lines(FORMATS[format](analysis, posteriors) for analysis in analyses)


@app.command(epilog="Example: ramify score -m runs/mine sentences.txt")
def score(model: Model, file: Sentences = Path("-"), input: Input = "auto", device: Device = "auto") -> None:
    """Print log p(w) of each sentence in nats; -inf where the grammar has no derivation, as for one word."""
    from ramify.corpus.streaming import stream_sentences
    from ramify.parser import load

    parser = load(model, device)
    scores = parser.log_probabilities(stream_sentences(file, input, parser.word_rule))
    print_lines(f"{log_probability:.6f}" for log_probability in scores)
