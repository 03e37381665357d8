"""Induced nonterminals beside gold labels: how pure they are, which label consists of which, and how they divide it."""

from __future__ import annotations

from collections import Counter
from functools import partial

from ramify.evaluation.induced import by_nonterminal, label_entropy, purity
from ramify.evaluation.subtypes import LEAST_COUNT
from ramify.lab.report.exhibit import Exhibit, Number, Row, Section, Table, mean, number, titled
from ramify.lab.report.figures.heat_map import draw_heat_map
from ramify.lab.report.notes import decoder_name, provenance
from ramify.lab.results.collection import Collection, chosen_run
from ramify.lab.results.schema import Induced, Result
from ramify.lab.results.spread import spread

SYMBOLS = 30
LABELS = 7
OTHER = "OTHER"
PURE = 0.9
"""A nonterminal stands for a label that this share of its constituents, or more, have."""
SUBTYPES = 6
"""At most this many nonterminals of a label are listed."""


def induced(study: Collection) -> Section:
    """A table of purity over all models, then a heat map and the subtypes of each model's chosen run."""
    found = {
        (data, model): of
        for data in study.datasets
        for model in study.models(data)
        if (of := [r for r in study.of(data, model) if r.induced and r.induced.alignment])
    }
    exhibits = [_purity(found)] if found else []
    for (data, _), of in found.items():
        run = chosen_run(of)
        chosen = "the one" if len(of) == 1 else "of the best dev likelihood"
        seed = "" if run.seed is None else f" {run.seed}"
        notes = [f"Seed{seed}, {chosen}; decoder {decoder_name(run.decoder)}.", *provenance([run])[1:]]
        exhibits += _of_run(run, notes, folded=data != next(iter(found))[0])
    return Section("gold-labels", exhibits)


def pure_symbols(of: Induced) -> tuple[int, float]:
    """How many nonterminals stand for one label, and the percentage of the constituents they have."""
    rows = [[*row.values()] for row in by_nonterminal(of.alignment).values()]
    pure = [sum(row) for row in rows if sum(row) >= LEAST_COUNT and max(row) >= PURE * sum(row)]
    return len(pure), 100 * sum(pure) / sum(map(sum, rows))


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


def _purity(found: dict[tuple[str, str], list[Result]]) -> Exhibit:
    parts: dict[str, list[Row]] = {}
    for (data, model), of in found.items():
        each = [r.induced for r in of if r.induced]
        pure = [pure_symbols(one) for one in each]
        row = (
            model,
            Number(len(each), digits=0),
            mean(spread(len(one.usage) for one in each)),
            mean(spread(label_entropy(one.alignment) for one in each), 2),
            mean(spread(100 * purity(one.alignment) for one in each)),
            mean(spread(count for count, _ in pure)),
            mean(spread(share for _, share in pure)),
        )
        parts.setdefault(data, []).append(row)
    heads = (
        "model", "seeds", "nonterminals used", "H(label | nonterminal)", "purity, %", "pure nonterminals",
        "constituents of these, %",
    )  # fmt: skip
    title = titled("Nonterminals that stand for single labels", parts)
    return Exhibit("purity", (), title, provenance([r for of in found.values() for r in of]), Table(heads, parts))


def _of_run(run: Result, notes: list[str], folded: bool) -> list[Exhibit]:
    assert run.induced is not None
    of, where = run.induced, f"{run.model} on {run.data}"
    frequency = {label: about.constituents for label, about in run.scores.recall_by_label.items()}
    labels, symbols, values = heat(of, frequency)
    name, draw = (run.data, run.model), partial(draw_heat_map, labels, symbols, values)
    heat_map = Exhibit("alignment", name, f"Alignment: {where}", notes, draw=draw, folded=folded)
    rows: list[Row] = []
    for label in labels:
        total = sum(of.alignment.get(label, {}).values())
        for place, subtype in enumerate(sorted(of.subtypes.get(label, ()), key=lambda each: -each.count)[:SUBTYPES]):
            words = ", ".join(f"{word} {count}" for word, count in subtype.first_words) or "nothing tells it apart"
            share = number(100 * subtype.count / total) if total else None
            rows.append((label if place == 0 else "", subtype.nonterminal, number(subtype.count, 0), share, words))
    if not rows:
        return [heat_map]
    about = "For each label the nonterminals that divide it, with the first words that tell them apart, counted."
    table = Table(["label", "nonterminal", "constituents", "share, %", "first words"], {"": rows})
    return [heat_map, Exhibit("subtypes", name, f"Subtypes: {where}", [about, *notes], table, folded=True)]
