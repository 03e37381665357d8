"""`ramify evaluate`: models, other systems and baselines against gold trees, or against the heads of CoNLL-U."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ramify.cli.common import Branching, Decoder, Device, Heads, app, existing_models, notes
from ramify.cli.line_output import print_lines
from ramify.errors import RamifyError
from ramify.evaluation.spans import Convention
from ramify.runtime.memory import importing

if TYPE_CHECKING:
    from ramify.evaluation.gold import Gold as GoldTrees
    from ramify.parser.systems import System

Gold = Annotated[Path, typer.Argument(help="Gold trees.")]
GoldOfEither = Annotated[Path, typer.Argument(help="Gold trees, or CoNLL-U to score heads.")]
Counting = Annotated[
    Convention, typer.Option(help="Scoring convention: remove all spans over the whole sentence (tn), or one (kim).")
]
Words = Annotated[
    str,
    typer.Option(
        help="Which leaves are words: auto; ptb (those with a word tag of the Penn Treebank); none (all, no tag is "
        "removed); or the tags to remove."
    ),
]
MaxLength = Annotated[int | None, typer.Option(min=2, help="Score only sentences of at most this many words.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print all results as JSON, one line per row.")]


def gold_for(systems: Sequence[System], trees: Path, words: str, max_length: int | None) -> GoldTrees:
    """The gold trees; the given rule decides which leaves are words or, for `auto`, that of the models."""
    from ramify.corpus.cleaning import WordRule, warn_about_absent_tags
    from ramify.evaluation.gold import load_gold
    from ramify.parser.systems import common_rule

    if words == "auto":
        return load_gold(trees, common_rule(systems), max_length)
    gold = load_gold(trees, WordRule.from_name(words), max_length)
    warn_about_absent_tags(gold.rule, gold.corpus.parses, gold.corpus.source)
    return gold


@app.command(epilog="Example: ramify evaluate -m runs/mine --predicted other=other.trees --baseline right test.trees")
def evaluate(
    trees: GoldOfEither,
    model: Annotated[
        list[str] | None,
        typer.Option("-m", "--model", help="Model folder, or NAME=FOLDER; can be repeated.", callback=existing_models),
    ] = None,
    predicted: Annotated[
        list[str] | None,
        typer.Option(
            "--predicted",
            "--trees",
            help="Trees of another system, or heads in CoNLL-U; FILE or NAME=FILE; can be repeated.",
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            help="left, right, balanced, random or oracle; for CoNLL-U left-chain or right-chain; or "
            "NAME=right and so on."
        ),
    ] = None,
    average: Annotated[
        bool, typer.Option("--average", help="Add a row for the average of all models and files of trees.")
    ] = False,
    convention: Counting = "tn",
    decoder: Decoder = "mbr",
    branching: Branching = None,
    heads: Heads = "projective",
    words: Words = "auto",
    max_length: MaxLength = None,
    evalb: Annotated[bool, typer.Option("--evalb", help="Add the labelled scores of EVALB.")] = False,
    details: Annotated[
        bool, typer.Option("--details", help="Add scores by length and label, of labels and tags, and calibration.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Random seed for random trees and the decoder sample.")] = 0,
    as_json: AsJson = False,
    device: Device = "auto",
) -> None:
    """Score systems against gold trees, one row each; runs that differ only in the seed get a row for their mean.

    Against CoNLL-U, heads are scored instead of brackets: directed and undirected accuracy.
    """
    with importing():
        from ramify.evaluation.evalb import RULE
        from ramify.parser.systems import System, evaluate_systems
        from ramify.terminal import (
            agreement_table,
            collapse_lines,
            coverage_lines,
            detail_tables,
            evalb_table,
            evaluation_table,
            failure_lines,
            progress_counter,
            results_console,
            run_lines,
        )

    systems = [System.of("model", text) for text in model or ()]
    systems += [System.of("predicted", text) for text in predicted or ()]
    if average:
        systems.append(System.average(systems))
    systems += [System.of("baseline", text) for text in baseline or ()]
    if not systems:
        raise RamifyError("Nothing to evaluate; give --model FOLDER, --predicted FILE or --baseline NAME.")
    if _is_conllu(trees):
        if words != "auto" or convention != "tn" or evalb:
            raise RamifyError(f"{trees}: contains heads, not trees; leave out --words, --convention and --evalb.")
        if average:
            raise RamifyError(
                f"{trees}: contains heads, but an average has none; leave out --average, or give bracketed trees."
            )
        _evaluate_heads(systems, trees, max_length, decoder, branching, heads, device, seed, details, as_json)
        return
    gold = gold_for(systems, trees, words, max_length)
    with progress_counter(notes, "sentences") as on_sentence:
        rows = evaluate_systems(
            systems,
            gold,
            convention=convention,
            with_evalb=evalb,
            decoder=decoder,
            branching=branching,
            device=device,
            seed=seed,
            on_sentence=on_sentence,
        )
    if as_json:
        print_lines(json.dumps(row.as_record(), ensure_ascii=False) for row in rows)
        return
    console = results_console()
    console.print(evaluation_table(rows))
    reports = (*run_lines(rows), *failure_lines(rows, len(gold.parses)), *coverage_lines(rows))
    for line in (*reports, rows[0].signature):
        console.print(line, markup=False)
    for row in rows:
        if row.agreement is not None:
            console.print(agreement_table(row.agreement))
            for line in collapse_lines(row.agreement["collapsed"]):
                console.print(line, markup=False)
    if evalb:
        console.print(evalb_table(rows))
        console.print(gold.signed(*RULE), markup=False)
    if details:
        console.print(*detail_tables(rows), sep="\n")


def _is_conllu(file: Path) -> bool:
    from ramify.corpus.reading import guess_file_kind

    return file.is_file() and guess_file_kind(file) == "conllu"


def _evaluate_heads(
    systems: Sequence[System],
    file: Path,
    max_length: int | None,
    decoder: Decoder,
    branching: float | None,
    heads: Heads,
    device: str,
    seed: int,
    details: bool,
    as_json: bool,
) -> None:
    from ramify.evaluation.dependencies import load_gold_heads
    from ramify.parser.systems import evaluate_heads
    from ramify.terminal import failure_lines, head_table, heads_by_length, progress_counter, results_console

    gold = load_gold_heads(file, max_length)
    with progress_counter(notes, "sentences") as on_sentence:
        rows = evaluate_heads(
            systems,
            gold,
            decoder=decoder,
            branching=branching,
            heads=heads,
            device=device,
            seed=seed,
            on_sentence=on_sentence,
        )
    if as_json:
        print_lines(json.dumps(row.as_record(), ensure_ascii=False) for row in rows)
        return
    console = results_console()
    console.print(head_table(rows))
    failures = failure_lines(rows, len(gold.heads), "All their heads count as wrong.")
    for line in (*failures, rows[0].signature):
        console.print(line, markup=False)
    if details:
        console.print(heads_by_length(rows))
