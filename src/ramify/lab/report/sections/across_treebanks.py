"""Treebanks below each other, models beside each other."""

from __future__ import annotations

from functools import partial
from statistics import fmean

from ramify.lab.report.figures.across import draw_across
from ramify.lab.report.published import published
from ramify.lab.report.report_table import Cell, Column, Number, Part, Table, mean
from ramify.lab.report.sections.section import Picture, Section, decoder_note, name_of, provenance
from ramify.lab.results.collection import Group, Runs, spread


def across(runs: Runs) -> Section | None:
    """For each group the models that were trained on two treebanks or more, with the baselines."""
    blocks = [block for group in runs.groups if runs.on_several(group) for block in _of_group(runs, group)]
    return Section("Across treebanks", _INTRODUCTION, blocks) if blocks else None


_INTRODUCTION = "The same models on several treebanks: S-F1 in percent."


def _of_group(runs: Runs, group: Group) -> list[Table | Picture]:
    models = runs.on_several(group)
    datasets = [data for data in group.models if any(runs.of(data, m, group) for m in models)]
    found = {(data, m): runs.of(data, m, group) for data in datasets for m in models}
    beside = {(data, f"{r.model} (baseline)"): r for data in datasets for r in runs.baselines(data)}
    baselines = list(dict.fromkeys(name for _, name in beside))
    values = {place: spread(r.f1 for r in of) for place, of in found.items()}
    values |= {place: r.spread for place, r in beside.items()}
    shown = [*(r for of in found.values() for r in of), *beside.values()]
    notes = [decoder_note(shown), *provenance(shown)]
    name, title = name_of("across-treebanks", group.name), f"S-F1 by treebank: {group.title}"

    known = {
        m: {data: p for data in datasets if found[data, m] and (p := published().f1(found[data, m][0]))} for m in models
    }
    with_published = [m for m in models if known[m]]
    columns = [*map(Column, ("data", *models, *baselines))]
    columns += [Column(f"published {m}", faint=True) for m in with_published]
    rows: list[tuple[Cell, ...]] = [
        (
            data,
            *(mean(values.get((data, name))) for name in (*models, *baselines)),
            *(mean(known[m].get(data)) for m in with_published),
        )
        for data in datasets
    ]
    table_notes = [*notes, *published().remarks(shown)]
    table = Table(name, title, columns, [Part([*rows, _mean_row(rows)])], table_notes)
    picture = Picture(
        name,
        title,
        partial(draw_across, datasets, models, baselines, values, runs.looks),
        "S-F1 of each model on each treebank, mean over seeds with its standard deviation; grey marks are baselines.",
        notes,
    )
    return [table, picture]


def _mean_row(rows: list[tuple[Cell, ...]]) -> tuple[Cell, ...]:
    means: list[Cell] = ["mean"]
    for column in list(zip(*rows, strict=True))[1:]:
        # A mean over other treebanks than its neighbours' would invite a wrong comparison.
        whole = all(isinstance(cell, Number) for cell in column)
        means.append(Number(fmean(c.value for c in column if isinstance(c, Number))) if whole else None)
    return tuple(means)
