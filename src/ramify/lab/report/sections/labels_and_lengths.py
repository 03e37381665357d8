"""Recall by gold label and F1 by length, of the models that stand in one group on one treebank."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf

from ramify.lab.report.figures.labels import draw_labels
from ramify.lab.report.figures.lengths import draw_lengths
from ramify.lab.report.published import published
from ramify.lab.report.report_table import Cell, Column, Part, Table, figure, mean
from ramify.lab.report.sections.section import Picture, Section, decoder_note, name_of, provenance
from ramify.lab.results.collection import Result, Runs, Spread, Unit, spread

RAREST = 0.5
"""Labels with a smaller share of the constituents, in percent, are left out of the table."""
LABELS_DRAWN = 8

Systems = dict[str, list[Result]]
"""The runs of each model, and each baseline by its name"""


def by_label(runs: Runs) -> Section | None:
    """How much of each gold category is bracketed."""
    blocks: list[Table | Picture] = []
    for unit, systems in _units(runs, lambda r: bool(r.by_label)):
        labels = next(iter(systems.values()))[0].by_label
        shown = [label for label, about in labels.items() if about.share >= RAREST]
        if not shown:
            continue
        values = {name: {x: _recall(of, x) for x in shown} for name, of in systems.items()}
        notes = _notes(systems)
        rare = f"{len(labels) - len(shown)} labels with a share below {RAREST} % are left out."
        parts = [Part([_label_row(label, systems, values) for label in shown])]
        columns = [Column("label"), Column("share, %"), Column("mean length"), *map(Column, systems)]
        columns += [Column(f"published {name}", faint=True) for name in _with_published(systems)]
        name, title = name_of("recall-by-label", unit.group.name, unit.data), f"Recall by label: {unit.title}"
        remarks = published().remarks([of[0] for of in systems.values()]) if _with_published(systems) else []
        table_notes = [*([rare] if len(labels) > len(shown) else []), *notes, *remarks]
        blocks.append(Table(name, title, columns, parts, table_notes, folded=unit.folded))
        drawn = {label: labels[label].share for label in shown[:LABELS_DRAWN]}
        blocks.append(
            Picture(
                name,
                title,
                partial(draw_labels, drawn, values, _baseline_names(systems), runs.looks),
                "Recall of the most frequent gold labels, mean over seeds with its standard deviation; in brackets the "
                "label's share of all gold constituents.",
                notes,
                unit.folded,
            )
        )
    return Section("Recall by gold label", _ABOUT_LABELS, blocks) if blocks else None


_ABOUT_LABELS = (
    "The percentage of the gold constituents of a label that are bracketed, whatever the system calls them. Every "
    "label of a unary chain counts; spans over one word or the whole sentence do not. Share is the label's part of all "
    "gold constituents, mean length is in words."
)


def by_length(runs: Runs) -> Section | None:
    """How F1 falls with the length of sentences."""
    blocks: list[Table | Picture] = []
    for unit, systems in _units(runs, lambda r: bool(r.by_length)):
        ranges = {name: about.sentences for name, about in next(iter(systems.values()))[0].by_length.items()}
        values = {name: {x: _f1_at(of, x) for x in ranges} for name, of in systems.items()}
        notes = _notes(systems)
        rows: list[tuple[Cell, ...]] = [
            (x, figure(count, 0), *(mean(values[name][x]) for name in systems)) for x, count in ranges.items()
        ]
        columns = [Column("words"), Column("sentences"), *map(Column, systems)]
        name, title = name_of("f1-by-length", unit.group.name, unit.data), f"S-F1 by length: {unit.title}"
        blocks.append(Table(name, title, columns, [Part(rows)], notes, folded=unit.folded))
        bins = disjoint(list(ranges))
        if len(bins) > 1:
            blocks.append(
                Picture(
                    name,
                    title,
                    partial(draw_lengths, bins, values, _baseline_names(systems), runs.looks),
                    "S-F1 of sentences by their length in words, mean over seeds with its standard deviation; grey "
                    "lines are baselines.",
                    notes,
                    unit.folded,
                )
            )
    return Section("F1 by sentence length", "", blocks) if blocks else None


def disjoint(ranges: Sequence[str]) -> list[str]:
    """Of ranges such as 2-10, 11-20, 2-40 those that no other lies in: the bins."""
    bounds = {name: _bounds(name) for name in ranges}
    return [name for name, of in bounds.items() if not any(_within(other, of) for other in bounds.values())]


def _bounds(name: str) -> tuple[float, float]:
    first, *last = map(int, re.findall(r"[0-9]{1,9}", name) or [0])
    return first, last[0] if last else inf


def _within(inner: tuple[float, float], outer: tuple[float, float]) -> bool:
    return inner != outer and outer[0] <= inner[0] and inner[1] <= outer[1]


def _units(runs: Runs, told: Callable[[Result], bool]) -> Iterator[tuple[Unit, Systems]]:
    """What is drawn together, with the baselines."""
    for unit in runs.units():
        found = {m: [r for r in runs.of(unit.data, m, unit.group) if told(r)] for m in unit.models}
        systems: Systems = {m: of for m, of in found.items() if of}
        if systems:
            systems |= {f"{r.model} (baseline)": [r] for r in runs.baselines(unit.data) if told(r)}
            yield unit, systems


def _baseline_names(systems: Systems) -> list[str]:
    return [name for name, of in systems.items() if of[0].is_baseline]


def _notes(systems: Systems) -> list[str]:
    shown = [r for of in systems.values() for r in of]
    return [decoder_note(shown), *provenance(shown)]


def _label_row(label: str, systems: Systems, values: dict[str, dict[str, Spread | None]]) -> tuple[Cell, ...]:
    about = next(iter(systems.values()))[0].by_label[label]
    ours = (mean(values[name][label]) for name in systems)
    theirs = (mean(published().recall(systems[name][0]).get(label)) for name in _with_published(systems))
    return label, figure(about.share), figure(about.mean_length), *ours, *theirs


def _with_published(systems: Systems) -> list[str]:
    return [name for name, of in systems.items() if published().recall(of[0])]


def _recall(results: Sequence[Result], label: str) -> Spread | None:
    return spread(r.by_label[label].recall if label in r.by_label else None for r in results)


def _f1_at(results: Sequence[Result], length: str) -> Spread | None:
    return spread(r.by_length[length].f1 if length in r.by_length else None for r in results)
