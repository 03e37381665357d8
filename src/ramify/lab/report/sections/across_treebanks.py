"""The same models on several treebanks."""

from __future__ import annotations

from functools import partial
from statistics import fmean

from ramify.lab.report.exhibit import Exhibit, Number, Row, Section, Table, file_name, mean
from ramify.lab.report.figures.dot_plot import draw_dots
from ramify.lab.report.figures.style import Systems
from ramify.lab.report.notes import decoder_note, provenance
from ramify.lab.report.published import published
from ramify.lab.results.collection import Collection, TableGroup
from ramify.lab.results.spread import spread


def across(study: Collection) -> Section:
    """For each group the models that were trained on two treebanks or more, with the baselines."""
    exhibits = [_of_group(study, group) for group in study.groups if study.on_several(group)]
    return Section("Across treebanks", "The same models on several treebanks: S-F1 in percent.", exhibits)


def _of_group(study: Collection, group: TableGroup) -> Exhibit:
    models = study.on_several(group)
    datasets = [data for data in group.models if any(study.of(data, m, group) for m in models)]
    found = {m: {data: study.of(data, m, group) for data in datasets} for m in models}
    beside = {(f"{r.model} (baseline)", data): r for data in datasets for r in study.baselines(data)}
    baselines = list(dict.fromkeys(name for name, _ in beside))
    values = {m: {data: spread(r.f1 for r in of) for data, of in by_data.items()} for m, by_data in found.items()}
    values |= {b: {data: beside[b, data].spread for data in datasets if (b, data) in beside} for b in baselines}
    known = {m: {data: published().f1(of[0]) for data, of in by_data.items() if of} for m, by_data in found.items()}
    columns = [*values.values(), *(theirs for theirs in known.values() if any(theirs.values()))]
    rows: list[Row] = [(data, *(mean(column.get(data)) for column in columns)) for data in datasets]
    theirs = [f"published {m}" for m in models if any(known[m].values())]
    # By treebank, so that the notes name treebanks in their order.
    shown = [*(r for data in datasets for m in models for r in found[m][data]), *beside.values()]
    return Exhibit(
        file_name("across-treebanks", group.name),
        f"S-F1 by treebank: {group.title}",
        [*decoder_note(shown), *provenance(shown), *published().remarks(shown)],
        Table(["data", *values, *theirs], {"": [*rows, _mean_row(rows)]}, len(theirs)),
        partial(draw_dots, {data: data for data in datasets}, values, Systems(study.looks, baselines), "S-F1"),
        "S-F1 of each model on each treebank, mean over seeds with its standard deviation; baselines are grey.",
    )


def _mean_row(rows: list[Row]) -> Row:
    """Only of columns without a gap: a mean over other treebanks than its neighbours' invites a wrong comparison."""
    columns = ([cell.value for cell in column if isinstance(cell, Number)] for column in zip(*rows, strict=True))
    return "mean", *(Number(fmean(of)) if len(of) == len(rows) else None for of in list(columns)[1:])
