"""Induced nonterminals beside gold labels: how pure they are, which label is made of which, and how they divide it."""

from __future__ import annotations

from collections import Counter
from functools import partial

from ramify.evaluation.induced import by_nonterminal, label_entropy, purity
from ramify.evaluation.subtypes import LEAST_COUNT
from ramify.lab.report.figures.alignment import draw_alignment
from ramify.lab.report.report_table import Cell, Number, Part, Table, columns, figure, mean
from ramify.lab.report.sections.section import Picture, Section, decoder_name, name_of, provenance
from ramify.lab.results.collection import Induced, Result, Runs, chosen_run, spread

SYMBOLS = 30
LABELS = 7
OTHER = "OTHER"
PURE = 0.9
"""From this share of one label on a nonterminal is said to stand for it."""
SUBTYPES = 6
"""At most so many nonterminals are told of a label."""


def induced(runs: Runs) -> Section | None:
    """A table of purity over all models, then a heat map and the subtypes of each model's chosen run."""
    found = [
        (data, model, of)
        for data in runs.datasets
        for model in runs.models(data)
        if (of := [r for r in runs.of(data, model) if r.induced])
    ]
    if not found:
        return None
    blocks: list[Table | Picture] = [_purity_table(found)]
    for data, _, of in found:
        run = chosen_run(of)
        chosen = "the one" if len(of) == 1 else "of the best dev likelihood"
        seed = "" if run.seed is None else f" {run.seed}"
        note = [f"Seed{seed}, {chosen}; decoder {decoder_name(run.decoder)}.", *provenance([run])[1:]]
        blocks += _of_run(run, note, folded=data != found[0][0])
    return Section("Nonterminals and gold labels", _INTRODUCTION, blocks)


_INTRODUCTION = (
    "Counted over the correctly predicted constituents. H(label | nonterminal), in bits, is what remains unknown of "
    "the gold label when the nonterminal is known; purity is the percentage of constituents whose label is the most "
    f"frequent one of their nonterminal. A nonterminal with {LEAST_COUNT} such constituents or more is called pure if "
    f"{100 * PURE:.0f} % of them have one label. Heat maps and subtypes are of one run, since symbols of different "
    "seeds have nothing in common."
)


def pure_symbols(of: Induced) -> tuple[int, float]:
    """How many nonterminals stand for one label, and the percentage of the constituents they have."""
    rows = by_nonterminal(of.alignment).values()
    totals = [sum(row.values()) for row in rows]
    pure = [
        total for row, total in zip(rows, totals, strict=True)
        if total >= LEAST_COUNT and max(row.values()) >= PURE * total
    ]  # fmt: skip
    return len(pure), 100 * sum(pure) / sum(totals)


def heat(of: Induced, frequency: dict[str, int]) -> tuple[list[str], list[str], list[list[float]]]:
    """Labels, nonterminals and P(nonterminal | label); a label's row sums to one over all nonterminals.

    Shown are the nonterminals used most, and the most frequent labels with the rest pooled.
    """
    totals = {label: frequency.get(label, 0) or sum(counts.values()) for label, counts in of.alignment.items()}
    ordered = sorted(totals, key=lambda label: -totals[label])
    rows = {label: Counter(of.alignment[label]) for label in ordered[:LABELS]}
    rest = [of.alignment[label] for label in ordered[LABELS:]]
    if rest:
        rows[OTHER] = sum((Counter(counts) for counts in rest), rows.get(OTHER, Counter()))
    symbols = sorted(of.usage, key=lambda symbol: -of.usage[symbol])[:SYMBOLS]
    return list(rows), symbols, [[counts[s] / counts.total() for s in symbols] for counts in rows.values()]


def _purity_table(found: list[tuple[str, str, list[Result]]]) -> Table:
    rows: dict[str, list[tuple[Cell, ...]]] = {}
    for data, model, of in found:
        each = [r.induced for r in of if r.induced]
        pure = [pure_symbols(one) for one in each]
        rows.setdefault(data, []).append(
            (
                model,
                Number(len(each), digits=0),
                mean(spread(len(one.usage) for one in each)),
                mean(spread(label_entropy(one.alignment) for one in each), 2),
                mean(spread(100 * purity(one.alignment) for one in each)),
                mean(spread(count for count, _ in pure)),
                mean(spread(share for _, share in pure)),
            )
        )
    heads = columns(
        "model", "seeds", "nonterminals used", "H(label | nonterminal)", "purity, %", "pure nonterminals",
        "constituents of these, %",
    )  # fmt: skip
    parts = [Part(lines, data if len(rows) > 1 else "") for data, lines in rows.items()]
    title = "Nonterminals that stand for single labels" + ("" if len(rows) > 1 else f": {next(iter(rows))}")
    return Table("purity", title, heads, parts, provenance([r for *_, of in found for r in of]), "data")


def _of_run(run: Result, notes: list[str], folded: bool) -> list[Table | Picture]:
    assert run.induced is not None
    of, where = run.induced, f"{run.model} on {run.data}"
    labels, symbols, values = heat(of, {label: about.constituents for label, about in run.by_label.items()})
    blocks: list[Table | Picture] = [
        Picture(
            name_of("alignment", run.data, run.model),
            f"Alignment: {where}",
            partial(draw_alignment, labels, symbols, values),
            "P(nonterminal | gold label) over the correctly predicted constituents of each label, for the "
            f"{len(symbols)} nonterminals used most, from left to right; numbers are percent, and white is less than "
            "one. A row sums to one over all nonterminals, those not shown included.",
            notes,
            folded,
        )
    ]
    rows: list[tuple[Cell, ...]] = []
    for label in labels:
        parts = sorted(of.subtypes.get(label, ()), key=lambda subtype: -subtype.count)[:SUBTYPES]
        total = sum(of.alignment.get(label, {}).values())
        for number, subtype in enumerate(parts):
            words = ", ".join(f"{word} {count}" for word, count in subtype.first_words) or "nothing tells it apart"
            share = figure(100 * subtype.count / total) if total else None
            rows.append((label if number == 0 else "", subtype.nonterminal, figure(subtype.count, 0), share, words))
    if rows:
        heads = columns("label", "nonterminal", "constituents", "share, %", "first words")
        title = f"Subtypes: {where}"
        about = "For each label the nonterminals that divide it, with the first words that tell them apart, counted."
        name = name_of("subtypes", run.data, run.model)
        blocks.append(Table(name, title, heads, [Part(rows)], [about, *notes], folded=True))
    return blocks
