"""How far the members of averages agree with each other; no gold trees are involved."""

from __future__ import annotations

from ramify.lab.report.report_table import Column, Part, Table, columns, figure
from ramify.lab.report.sections.section import Section, name_of, provenance
from ramify.lab.results.collection import Result, Runs


def agreement(runs: Runs) -> Section | None:
    """A table for each average."""
    averages = [result for result in runs.results if result.agreement]
    tables = [_table(result, folded=bool(place)) for place, result in enumerate(averages)]
    return Section("Agreement of averaged models", _INTRODUCTION, [*tables]) if tables else None


_INTRODUCTION = (
    "S-F1 between the trees of two models, in percent, over the sentences of the test set, and with left and right "
    "branching. A model that is nearly left or right branching, or far from all others, collapsed."
)


def _table(result: Result, folded: bool) -> Table:
    assert result.agreement is not None
    names = list(result.agreement)
    heads = list(next(iter(result.agreement.values())))
    rows = [
        (name, *(None if name == other else figure(result.agreement[name].get(other)) for other in heads))
        for name in names
        if name not in ("left", "right")
    ]
    title = f"{result.data}: {result.model}"
    name = name_of("agreement", result.data, result.model)
    return Table(name, title, [*columns(""), *map(Column, heads)], [Part([*rows])], provenance([result]), folded=folded)
