"""How far the members of averages agree with each other; no gold trees are involved."""

from __future__ import annotations

from ramify.lab.report.exhibit import Exhibit, Section, Table, file_name, number
from ramify.lab.report.notes import provenance
from ramify.lab.results.collection import Collection
from ramify.lab.results.schema import Result


def agreement(study: Collection) -> Section:
    """A table for each average."""
    about = (
        "S-F1 between the trees of two models, in percent, over the sentences of the test set, and with left and right "
        "branching. A model that is nearly left or right branching, or far from all others, collapsed."
    )
    averages = [result for result in study.results if result.scores.agreement]
    return Section("Agreement of averaged models", about, [_of(r, r is not averages[0]) for r in averages])


def _of(result: Result, folded: bool) -> Exhibit:
    found = result.scores.agreement or {}
    heads = found["columns"]
    rows = [
        (name, *(None if name == other else number(value) for other, value in zip(heads, f1, strict=True)))
        for name, f1 in found["sentence_f1"].items()
        if name not in ("left", "right")
    ]
    name, title = file_name("agreement", result.data, result.model), f"{result.data}: {result.model}"
    return Exhibit(name, title, provenance([result]), Table(["", *heads], {"": [*rows]}), folded=folded)
