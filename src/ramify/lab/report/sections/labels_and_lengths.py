"""Recall by gold label and F1 by length, of the models that stand in one group on one treebank."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from typing import Any

from ramify.lab.report.exhibit import Exhibit, Row, Section, Table, mean, number
from ramify.lab.report.figures.dot_plot import draw_dots
from ramify.lab.report.figures.line_plots import draw_lengths
from ramify.lab.report.figures.style import Systems
from ramify.lab.report.notes import decoder_note, provenance
from ramify.lab.report.published import published
from ramify.lab.results.collection import Collection, Unit
from ramify.lab.results.schema import Result
from ramify.lab.results.spread import Spread, spread

RAREST = 0.5
"""Labels with a smaller share of the constituents, in percent, are left out of the table."""
LABELS_DRAWN = 8

ByName = dict[str, list[Result]]
"""The runs of each model, and each baseline by its name"""
Details = Callable[[Result], dict[str, Any]]


def by_label(study: Collection) -> Section:
    """How much of each gold category is bracketed."""
    found = (_labels(study, *unit) for unit in _units(study, lambda r: r.scores.recall_by_label))
    return Section("recall-by-label", [exhibit for exhibit in found if exhibit])


def _labels(study: Collection, unit: Unit, found: ByName) -> Exhibit | None:
    labels = next(iter(found.values()))[0].scores.recall_by_label
    shown = [label for label, about in labels.items() if about.share >= RAREST]
    if not shown:
        return None
    values = _spreads(found, shown, lambda r: r.scores.recall_by_label, "recall")
    theirs = {name: recall for name, of in found.items() if (recall := published().recall(of[0]))}
    columns: list[Any] = [*values.values(), *theirs.values()]
    rows: list[Row] = [
        (x, number(labels[x].share), number(labels[x].mean_length), *(mean(column.get(x)) for column in columns))
        for x in shown
    ]
    heads = ["label", "share, %", "mean length", *found, *(f"published {name}" for name in theirs)]
    rare = len(labels) - len(shown)
    notes = [f"{rare} labels with a share below {RAREST} % are left out."] if rare else []
    notes += [*_notes(found), *(published().remarks([of[0] for of in found.values()]) if theirs else [])]
    bands = {label: f"{label[:12]} ({labels[label].share:.0f} %)" for label in shown[:LABELS_DRAWN]}
    baselines = _baseline_names(found)
    drawn = {name: of for name, of in values.items() if name not in baselines or name.startswith("right")}
    return Exhibit(
        "recall-by-label",
        (unit.group.name, unit.data),
        f"Recall by label: {unit.title}",
        notes,
        Table(heads, {"": rows}, len(theirs)),
        partial(draw_dots, bands, drawn, Systems(study.looks, baselines), "recall, %"),
        unit.folded,
    )


def by_length(study: Collection) -> Section:
    """How F1 falls with the length of sentences."""
    return Section("f1-by-length", [_lengths(study, *unit) for unit in _units(study, lambda r: r.scores.by_length)])


def _lengths(study: Collection, unit: Unit, found: ByName) -> Exhibit:
    ranges = {x: about.sentences for x, about in next(iter(found.values()))[0].scores.by_length.items()}
    values = _spreads(found, ranges, lambda r: r.scores.by_length, "sentence_f1")
    rows: list[Row] = [(x, number(n, 0), *(mean(of[x]) for of in values.values())) for x, n in ranges.items()]
    bins = disjoint(list(ranges))
    systems = Systems(study.looks, _baseline_names(found))
    return Exhibit(
        "f1-by-length",
        (unit.group.name, unit.data),
        f"S-F1 by length: {unit.title}",
        _notes(found),
        Table(["words", "sentences", *found], {"": rows}),
        partial(draw_lengths, bins, values, systems) if len(bins) > 1 else None,
        unit.folded,
    )


def disjoint(ranges: Sequence[str]) -> list[str]:
    """Of ranges such as 2-10, 11-20, 2-40 those that contain no other: the bins."""
    bounds = {name: _bounds(name) for name in ranges}
    return [
        name
        for name, (first, last) in bounds.items()
        if not any(first <= a and b <= last and (a, b) != (first, last) for a, b in bounds.values())
    ]


def _bounds(name: str) -> tuple[float, float]:
    first, *last = map(int, re.findall(r"[0-9]{1,9}", name) or [0])
    return first, last[0] if last else inf


def _units(study: Collection, details: Details) -> Iterator[tuple[Unit, ByName]]:
    """What is drawn together, with the baselines, of results that have details."""
    for unit in study.units():
        of_models = {m: [r for r in study.of(unit.data, m, unit.group) if details(r)] for m in unit.models}
        found: ByName = {m: of for m, of in of_models.items() if of}
        if found:
            found |= {f"{r.model} (baseline)": [r] for r in study.baselines(unit.data) if details(r)}
            yield unit, found


def _spreads(found: ByName, keys: Any, details: Details, field: str) -> dict[str, dict[str, Spread | None]]:
    """Of one field of the details under each key, over the runs of each system."""
    return {
        name: {key: spread(getattr(details(r).get(key), field, None) for r in of) for key in keys}
        for name, of in found.items()
    }


def _baseline_names(found: ByName) -> list[str]:
    return [name for name, of in found.items() if of[0].is_baseline]


def _notes(found: ByName) -> list[str]:
    shown = [r for of in found.values() for r in of]
    return [*decoder_note(shown), *provenance(shown)]
