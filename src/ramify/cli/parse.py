"""`ramify parse`: one tree for each sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ramify.cli.common import (
    Branching,
    Column,
    Decoder,
    Device,
    Heads,
    Input,
    Models,
    Sentences,
    Trees,
    app,
)
from ramify.cli.line_output import RESUME_OR_OVERWRITE, LineOutput
from ramify.cli.on_ray import (
    AsParts,
    BlockSize,
    CpusPerWorker,
    Engine,
    GpusPerWorker,
    RayAddress,
    Workers,
    absolute,
    check_blocks,
    check_local,
    parse_with_ray,
)
from ramify.cli.sentence_options import (
    INLINE,
    PUNCTUATION,
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
from ramify.cli.whole_files import WHOLE_FILES, WholeFiles
from ramify.errors import RamifyError
from ramify.runtime.compilation import postpone_loops
from ramify.runtime.memory import importing

Constraints = Annotated[
    str | None,
    typer.Option(
        metavar="inline|punctuation|FILE",
        help="Spans that must or must not be constituents: inline, as \\[brackets] and {braces} in the text; "
        "punctuation: no constituent crosses a punctuation mark; or a file with one line of JSON per sentence, such as "
        '{"must": \\[\\[0, 3]]}.',
    ),
]
FEW_WORDS = 100
"""Fewer words are parsed without compiled loops, because loading these takes longer"""
WITHOUT_NUMBERS = ("brackets", "pretty", "conllu", "forest", "qtree")
"""Formats that show no probability unless posteriors are requested"""
BEST = ("brackets", "json", "pretty", "spans")
"""Formats that can show several trees of one sentence"""
WITH_COLUMNS = ("json", "parquet")
"""Formats that can contain columns of the input"""
Best = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="K",
        help="Print the K most probable labelled trees of each sentence, with p(tree | sentence) and log p(tree, "
        "sentence).",
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        help="For JSON lines and Parquet: column to copy to the result; can be repeated; none copies no column. "
        "\\[default: all but the text]",
        show_default=False,
    ),
]


@app.command(
    epilog="Example: echo 'the dog saw a cat' | ramify parse -m runs/mine --format pretty. Of a table: "
    "ramify parse -m runs/mine rows.jsonl --column body --format parquet --out parsed.parquet"
)
def parse(
    model: Models,
    file: Sentences = Path("-"),
    trees: Trees = None,
    format: Annotated[
        Literal["brackets", "json", "pretty", "spans", "conllu", "svg", "html", "forest", "qtree", "parquet", "brat"],
        typer.Option(
            help="Output format. svg is one picture with all trees, html one page; forest and qtree are LaTeX; parquet "
            "and brat (stand-off, NAME.ann and NAME.txt) need --out."
        ),
    ] = "brackets",
    layout: Annotated[
        Literal["auto", "horizontal", "vertical"],
        typer.Option(
            help="For svg and html: words on one line, or one word per line. auto: horizontal, but vertical in html "
            "for sentences of more than 25 words."
        ),
    ] = "auto",
    posteriors: Annotated[
        bool,
        typer.Option("--posteriors", help="Add the probability of each label and tag and, in JSON, of every span."),
    ] = False,
    decoder: Decoder = "mbr",
    best: Best = None,
    branching: Branching = None,
    heads: Heads = "projective",
    constraints: Constraints = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for the decoder sample.")] = 0,
    input: Input = "auto",
    column: Column = None,
    keep: Keep = None,
    tokenise: Tokenise = None,
    split_sentences: Split = None,
    max_length: MaxLength = None,
    strict: Strict = False,
    out: Out = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    device: Device = "auto",
    engine: Engine = "local",
    workers: Workers = None,
    cpus_per_worker: CpusPerWorker = 1,
    gpus_per_worker: GpusPerWorker = 0.0,
    block_size: BlockSize = None,
    parts: AsParts = False,
    ray_address: RayAddress = None,
) -> None:
    """Parse sentences and print their trees in the same order, with all tokens.

    Several models, or models and trees of other parsers, are averaged: the result is the tree with the highest sum of
    span posteriors. A sentence that cannot be derived, or is too long, gets a flat tree and is reported at the end.
    """
    if resume and decoder == "sample":
        raise RamifyError(
            "The decoder sample cannot be resumed, because its trees depend on the earlier sentences; leave out "
            "--resume."
        )
    if keep and format not in WITH_COLUMNS:
        raise RamifyError("--keep works only for formats with columns; add --format json or --format parquet.")
    _check_best(best, format, posteriors, branching)
    if engine == "ray":
        out = check_blocks(file, format, decoder, trees, constraints, out)
    else:
        cpus = cpus_per_worker if cpus_per_worker != 1 else None
        check_local(
            workers=workers, cpus_per_worker=cpus, gpus_per_worker=gpus_per_worker, block_size=block_size, parts=parts,
            ray_address=ray_address,
        )  # fmt: skip
    constraints_used = _made_of(constraints)
    with importing():
        from ramify.cluster.job import ParseJob
        from ramify.parser import BEST_FORMATS, DOCUMENTS, FORMATS, best_many
        from ramify.parser.ensemble import load_several
        from ramify.terminal import tree_format
        from ramify.terminal.tally import ParseTally

    if layout != "auto" and format not in DOCUMENTS:
        raise RamifyError("--layout works only for pictures; add --format svg or --format html.")
    options = {
        "format": format,
        "posteriors": posteriors,
        "decoder": decoder,
        "max-length": max_length,
        "branching": branching,
        "heads": heads,
        "constraints": constraints_used,
        "best": best,
        "column": column,
        "keep": keep,
    }
    made_with = made_with_models([*model, *(trees or ())], "parse", input, tokenise, split_sentences, **options)
    check_apart(file, out)
    check_apart(file, out.with_suffix(".txt") if out and format == "brat" else None)
    if engine == "ray":
        assert out is not None
        if resume and overwrite:
            raise RamifyError(RESUME_OR_OVERWRITE)
        job = ParseJob(
            tuple(map(absolute, model)), str(file.absolute()), input, "text", format, posteriors, decoder, best,
            branching, heads, constraints, columns_of(column, keep), tokenise, split_sentences,
            max_length, strict, out.suffix == ".gz", "cpu" if device == "auto" and not gpus_per_worker else device,
            cpus_per_worker, {name: str(value) for name, value in made_with().items() if value is not None},
        )  # fmt: skip
        chosen = (workers, cpus_per_worker, gpus_per_worker)
        show_lines(*parse_with_ray(job, out, made_with, parts, overwrite, block_size, ray_address, chosen))
        return
    one_line_each = format == "json" or (format in ("brackets", "spans") and best is None)
    # The last digits of numbers depend on the engine, and a pipe must get the same bytes as a file.
    postponed = FEW_WORDS if out is None and format in WITHOUT_NUMBERS and not posteriors else 0
    output: Any = (
        WholeFiles(format, out, resume, overwrite, made_with, posteriors)
        if format in WHOLE_FILES
        else LineOutput(out, resume, overwrite, made_with, one_line_each)
    )
    with output, postpone_loops(postponed):
        parser = load_several([*model, *(trees or ())], device)
        # Reading on from a pipe may block, and finished results must be written before.
        parser.works_ahead = parser.works_ahead and file.is_file()
        tally = ParseTally(strict, parser)
        with open_sentences(
            file, input, parser, tokenise, split_sentences, output, constraints, columns_of(column, keep), tally.rows
        ) as sentences:
            # A file is UTF-8, even if standard output is not.
            shown = tree_format() if format == "pretty" and out is None else format
            if best is not None:
                ranked = tally.parses.watch(best_many(parser, sentences, best, max_length, decoder))
                output.write(map(BEST_FORMATS[shown], ranked))
            else:
                found = parser.analyse_many(sentences, decoder, seed, max_length, branching, heads)
                analyses = tally.watch(found)
                if isinstance(output, WholeFiles):
                    output.write(analyses)
                elif format in DOCUMENTS:
                    output.write(DOCUMENTS[format](analyses, posteriors, None if layout == "auto" else layout))
                else:
                    output.write(FORMATS[shown](analysis, posteriors) for analysis in analyses)
    show_lines(*tally.lines())


def _check_best(best: int | None, format: str, posteriors: bool, branching: float | None) -> None:
    """Refuse options that do not work with several trees per sentence."""
    if best is None:
        return
    if format not in BEST:
        raise RamifyError(f"--best works only with the formats {', '.join(BEST)}; leave it out, or choose one of them.")
    if posteriors or branching:
        raise RamifyError(
            "--best gives probabilities of whole trees, not of spans; leave out --posteriors and --branching."
        )


def _made_of(constraints: str | None) -> str | None:
    """The checksum of a file of constraints, which must exist; `inline` and `punctuation` as they are."""
    from ramify.storage.model_files import checksum

    if constraints in (None, INLINE, PUNCTUATION):
        return constraints
    if not Path(constraints).is_file():
        raise RamifyError(
            f"{constraints}: this file of constraints does not exist; check its name, or give inline or punctuation."
        )
    return checksum(constraints)
