"""The sections on labels and lengths: recall by gold label, F1 by length, and induced nonterminals by gold label."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from typing import Any

from ramify.evaluation.induced import label_entropy, purity, transpose_alignment
from ramify.evaluation.subtypes import MIN_COUNT
from ramify.lab.report.exhibit import Cell, Exhibit, Row, Table, mean, number
from ramify.lab.report.figures import Systems, draw_dots, draw_heat_map, draw_lengths
from ramify.lab.report.notes import decoder_name, decoder_note, exhibit_of, model_table, over_runs, provenance
from ramify.lab.report.published import published
from ramify.lab.results.collection import ByModel, Collection, Unit, choose_run
from ramify.lab.results.schema import Induced, Result, Spread, spread

MIN_PERCENT = 0.5
"""Labels with a smaller share of the constituents, in percent, are left out of the table."""
LABELS_DRAWN = 8

Details = Callable[[Result], dict[str, Any]]


def by_label(study: Collection) -> Iterator[Exhibit]:
    """How much of each gold category is bracketed."""
    for unit, found, systems, notes in _units(study, lambda r: r.scores.recall_by_label):
        labels = next(iter(found.values()))[0].scores.recall_by_label
        shown = [label for label, about in labels.items() if about.share >= MIN_PERCENT]
        if not shown:
            continue
        values = _spreads(found, shown, lambda r: r.scores.recall_by_label, "recall")
        theirs = {name: recall for name, of in found.items() if (recall := published().recall(of[0]))}
        columns: list[Any] = [*values.values(), *theirs.values()]
        rows: list[Row] = [
            (x, number(labels[x].share), number(labels[x].mean_length), *(mean(column.get(x)) for column in columns))
            for x in shown
        ]
        heads = ["label", "share, %", "mean length", *found, *(f"published {name}" for name in theirs)]
        rare = len(labels) - len(shown)
        left_out = [f"{rare} labels with a share below {MIN_PERCENT} % are left out."] if rare else []
        remarks = published().remarks([of[0] for of in found.values()]) if theirs else []
        bands = {label: f"{label[:12]} ({labels[label].share:.0f} %)" for label in shown[:LABELS_DRAWN]}
        drawn = {name: of for name, of in values.items() if name not in systems.baselines or name.startswith("right")}
        table = Table(heads, {"": rows}, len(theirs))
        draw = partial(draw_dots, bands, drawn, systems, "recall, %")
        yield exhibit_of(unit, "recall-by-label", "Recall by label", [*left_out, *notes, *remarks], table, draw)


def by_length(study: Collection) -> Iterator[Exhibit]:
    """How F1 falls with the length of sentences."""
    for unit, found, systems, notes in _units(study, lambda r: r.scores.by_length):
        ranges = {x: about.sentences for x, about in next(iter(found.values()))[0].scores.by_length.items()}
        values = _spreads(found, ranges, lambda r: r.scores.by_length, "sentence_f1")
        rows: list[Row] = [(x, number(n, 0), *(mean(of[x]) for of in values.values())) for x, n in ranges.items()]
        bins = disjoint_ranges(list(ranges))
        table = Table(["words", "sentences", *found], {"": rows})
        draw = partial(draw_lengths, bins, values, systems) if len(bins) > 1 else None
        yield exhibit_of(unit, "f1-by-length", "S-F1 by length", notes, table, draw)


def disjoint_ranges(ranges: Sequence[str]) -> list[str]:
    """Of ranges such as 2-10, 11-20, 2-40 those that contain no other: the bins."""
    bounds = {}
    for name in ranges:
        first, *last = map(int, re.findall(r"[0-9]{1,9}", name) or [0])
        bounds[name] = first, last[0] if last else inf
    return [
        name
        for name, (first, last) in bounds.items()
        if not any(first <= a and b <= last and (a, b) != (first, last) for a, b in bounds.values())
    ]


def _units(study: Collection, details: Details) -> Iterator[tuple[Unit, ByModel, Systems, list[str]]]:
    """What is drawn together, with the baselines, of results that have these details; its styles, and notes on it."""
    for unit, models in study.units_with(details):
        baselines = {r.system: [r] for r in study.baselines(unit.data) if details(r)}
        found = models | baselines
        shown = [r for of in found.values() for r in of]
        yield unit, found, Systems(study.style_numbers, [*baselines]), [*decoder_note(shown), *provenance(shown)]


def _spreads(found: ByModel, keys: Any, details: Details, field: str) -> dict[str, dict[str, Spread | None]]:
    """By system and key, one field of the details over the runs."""
    return {
        name: {key: spread(getattr(details(r).get(key), field, None) for r in of) for key in keys}
        for name, of in found.items()
    }


SYMBOLS = 30
LABELS = 7
OTHER = "OTHER"
PURE_SHARE = 0.9
"""A nonterminal stands for a label that this share of its constituents, or more, have."""
SUBTYPES = 6
"""At most this many nonterminals of a label are listed."""


def induced(study: Collection) -> Iterator[Exhibit]:
    """A table of purity over all models, then a heat map and the subtypes of each model's chosen run."""
    found = study.by_model_with(lambda r: r.induced and r.induced.alignment and r.induced.usage)

    def column(value: Callable[[Induced], float], digits: int = 1) -> Callable[[list[Result]], Cell]:
        return over_runs(lambda r: value(r.induced) if r.induced else None, digits)

    columns = {
        "nonterminals used": column(lambda of: len(of.usage)),
        "H(label | nonterminal)": column(lambda of: label_entropy(of.alignment), 2),
        "purity, %": column(lambda of: 100 * purity(of.alignment)),
        "pure nonterminals": column(lambda of: pure_symbols(of)[0]),
        "constituents of these, %": column(lambda of: pure_symbols(of)[1]),
    }
    yield from model_table("purity", "Nonterminals that stand for single labels", columns, found)
    for (data, _), results in found.items():
        run = choose_run(results)
        chosen = "the one" if len(results) == 1 else "of the best dev likelihood"
        seed = "" if run.seed is None else f" {run.seed}"
        notes = [f"Seed{seed}, {chosen}; decoder {decoder_name(run.decoder)}.", *provenance([run])[1:]]
        yield from _of_run(run, notes, folded=data != next(iter(found))[0])


def pure_symbols(of: Induced) -> tuple[int, float]:
    """How many nonterminals stand for one label, and the percentage of the constituents they have."""
    rows = [[*row.values()] for row in transpose_alignment(of.alignment).values()]
    pure = [sum(row) for row in rows if sum(row) >= MIN_COUNT and max(row) >= PURE_SHARE * sum(row)]
    return len(pure), 100 * sum(pure) / sum(map(sum, rows))


def heat_map_values(of: Induced, frequency: dict[str, int]) -> tuple[list[str], list[str], list[list[float]]]:
    """Labels, nonterminals and P(nonterminal | label); a label's row sums to one over all nonterminals.

    Shown are the nonterminals used most, and the most frequent labels with the rest pooled.
    """
    totals = {label: frequency.get(label, 0) or sum(counts.values()) for label, counts in of.alignment.items()}
    ordered = sorted(totals, key=lambda label: -totals[label])
    rows = {label: Counter(of.alignment[label]) for label in ordered[:LABELS]}
    for label in ordered[LABELS:]:
        rows[OTHER] = rows.get(OTHER, Counter()) + Counter(of.alignment[label])
    symbols = sorted(of.usage, key=lambda symbol: -of.usage[symbol])[:SYMBOLS]
    return list(rows), symbols, [[counts[s] / counts.total() for s in symbols] for counts in rows.values()]


def _of_run(run: Result, notes: list[str], folded: bool) -> Iterator[Exhibit]:
    assert run.induced is not None
    of, where, name = run.induced, f"{run.model} on {run.data}", (run.data, run.model)
    frequency = {label: about.constituents for label, about in run.scores.recall_by_label.items()}
    labels, symbols, values = heat_map_values(of, frequency)
    draw = partial(draw_heat_map, labels, symbols, values)
    yield Exhibit("alignment", name, f"Alignment: {where}", notes, draw=draw, folded=folded)
    rows: list[Row] = []
    for label in labels:
        total = sum(of.alignment.get(label, {}).values())
        for place, subtype in enumerate(sorted(of.subtypes.get(label, ()), key=lambda each: -each.count)[:SUBTYPES]):
            words = ", ".join(f"{word} {count}" for word, count in subtype.first_words) or "nothing tells it apart"
            share = number(100 * subtype.count / total) if total else None
            rows.append((label if place == 0 else "", subtype.nonterminal, number(subtype.count, 0), share, words))
    if rows:
        about = "For each label the nonterminals that divide it, with the first words that tell them apart, counted."
        table = Table(["label", "nonterminal", "constituents", "share, %", "first words"], {"": rows})
        yield Exhibit("subtypes", name, f"Subtypes: {where}", [about, *notes], table, folded=True)
