"""Treebanks below each other, models beside each other."""

from __future__ import annotations

from functools import partial
from statistics import fmean

from ramify.report.contents.section import Picture, Section, decoder_name, provenance
from ramify.report.figures.across import draw_across
from ramify.report.published import published
from ramify.report.results import Result, Runs, Spread, spread
from ramify.report.tables import Cell, Column, Number, Part, Table, mean


def across(runs: Runs) -> Section | None:
    """The models that were trained on two treebanks or more, with the baselines."""
    models = runs.on_several
    rows = [data for data in runs.datasets if any(runs.of(data, m) for m in models)]
    if not models:
        return None
    found = {(data, m): runs.of(data, m) for data in rows for m in models}
    baselines = list(dict.fromkeys(r.model for data in rows for r in runs.baselines(data)))
    beside = {(r.data, r.model): Spread(r.f1, r.f1_std, r.f1, 1) for data in rows for r in runs.baselines(data)}
    values = {place: spread(r.f1 for r in of) for place, of in found.items()}
    table = _table(rows, models, baselines, {**values, **beside}, found)
    decoders = " and ".join(dict.fromkeys(decoder_name(r.decoder) for of in found.values() for r in of))
    notes = [f"Decoder: {decoders}.", *provenance([r for of in found.values() for r in of])]
    table = Table(table.name, table.title, table.columns, table.parts, notes, table.part_head)
    picture = Picture(
        "across-treebanks",
        "S-F1 by treebank",
        partial(draw_across, rows, models, baselines, {**values, **beside}, runs.looks),
        "S-F1 of each model on each treebank, mean over seeds with its standard deviation; grey marks are baselines.",
        notes,
    )
    return Section("Across treebanks", _INTRODUCTION, [table, picture])


_INTRODUCTION = "The same models on several treebanks: S-F1 in percent."


def _table(
    rows: list[str],
    models: list[str],
    baselines: list[str],
    values: dict[tuple[str, str], Spread | None],
    found: dict[tuple[str, str], list[Result]],
) -> Table:
    known = {
        m: {data: p for data in rows if found[data, m] and (p := published().f1(found[data, m][0]))} for m in models
    }
    with_published = [m for m in models if known[m]]
    heads = [Column("data"), *map(Column, models), *(Column(f"{name} (baseline)") for name in baselines)]
    heads += [Column(f"published {m}", faint=True) for m in with_published]
    lines: list[tuple[Cell, ...]] = [
        (
            data,
            *(mean(values.get((data, name))) for name in (*models, *baselines)),
            *(mean(known[m].get(data)) for m in with_published),
        )
        for data in rows
    ]
    means: list[Cell] = ["mean"]
    for place in range(1, len(heads)):
        column = [line[place] for line in lines]
        # A mean over other treebanks than its neighbours' would invite a wrong comparison.
        whole = all(isinstance(cell, Number) for cell in column)
        means.append(Number(fmean(c.value for c in column if isinstance(c, Number))) if whole else None)
    return Table("across-treebanks", "S-F1 by treebank and model", heads, [Part([*lines, tuple(means)])])
