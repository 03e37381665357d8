"""`ramify compare`: is one system better than another?"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from ramify.cli.common import Branching, Decoder, Device, Trees, app, check_loadable, existing_models, notes
from ramify.cli.evaluate import AsJson, Counting, Gold, MaxLength, Words, gold_for
from ramify.errors import RamifyError
from ramify.model_names import split_name, system_kind
from ramify.runtime.memory import importing


def _existing_sides(systems: list[str]) -> list[str]:
    for text in systems:
        if system_kind(text) == "model":
            check_loadable(split_name(text)[1])
    return systems


@app.command(
    epilog="Example: ramify compare right runs/mine test.trees, or "
    "ramify compare runs/mine -m runs/one -m runs/two test.trees"
)
def compare(
    systems: Annotated[
        list[str],
        typer.Argument(
            help="Two systems: each a model folder, rule file (.pcfg), file of trees, or baseline. With -m or --trees "
            "give only one; it is compared with their average.",
            callback=_existing_sides,
        ),
    ],
    trees: Gold,
    model: Annotated[
        list[str] | None,
        typer.Option("-m", "--model", help="Model folder to average; can be repeated.", callback=existing_models),
    ] = None,
    other_trees: Trees = None,
    convention: Counting = "tn",
    decoder: Decoder = "mbr",
    branching: Branching = None,
    words: Words = "auto",
    max_length: MaxLength = None,
    samples: Annotated[int, typer.Option(min=1, help="Number of samples in each test.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for samples and random trees.")] = 0,
    as_json: AsJson = False,
    device: Device = "auto",
) -> None:
    """Test the difference in S-F1 of two systems: paired bootstrap with a 95 % interval, and permutation test."""
    with importing():
        from ramify.evaluation.significance import compare_f1
        from ramify.evaluation.spans import count_spans
        from ramify.parser.systems import System
        from ramify.terminal import comparison_lines, failure_lines, progress_counter, results_console

    sides = [System.guess(text) for text in systems]
    averaged = [System.of("model", text) for text in model or ()]
    averaged += [System.of("predicted", text) for text in other_trees or ()]
    if averaged:
        sides.append(System.average(averaged))
    if len(sides) != 2:
        raise RamifyError(f"compare needs two systems, not {len(sides)}; an average of -m and --trees counts as one.")
    gold = gold_for(sides, trees, words, max_length)
    with progress_counter(notes, "sentences") as on_sentence:
        # For random trees only the first draw counts, because a test compares two lists of trees.
        first, second = (
            system.predictions(
                gold,
                decoder=decoder,
                device=device,
                seed=seed,
                on_sentence=on_sentence,
                branching=branching,
            )[0]
            for system in sides
        )
    ours, theirs = (count_spans(gold.spans, each.spans, gold.lengths, convention).f1 for each in (first, second))
    found = compare_f1(ours, theirs, samples, seed)
    names, means = (first.system, second.system), (100 * float(ours.mean()), 100 * float(theirs.mean()))
    signature = gold.signature(convention, tuple(dict.fromkeys((*first.options, *second.options))))
    if as_json:
        records = [
            {"system": each.system, "sentence_f1": mean, "failures": each.failures}
            for each, mean in zip((first, second), means, strict=True)
        ]
        typer.echo(json.dumps({"systems": records, **asdict(found), "signature": signature}, ensure_ascii=False))
        return
    console = results_console()
    failed = failure_lines((first, second), len(gold.parses))
    for line in (*comparison_lines(names, means, found), *failed, signature):
        console.print(line, markup=False)
