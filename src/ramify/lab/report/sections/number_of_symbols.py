"""What more symbols bring: perplexity and F1 of one family against its number of preterminals."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial

from ramify.lab.report.exhibit import Exhibit, Number, Row, Section, Table, mean
from ramify.lab.report.figures.line_plots import draw_symbols
from ramify.lab.report.notes import bound_note, decoder_note, provenance, vocabulary_note
from ramify.lab.results.collection import Collection, perplexity_of
from ramify.lab.results.schema import Result
from ramify.lab.results.spread import spread

KIND = ("model", "compound", "activation")
"""Models that differ in these settings are of different families."""
LEAST_SIZES = 3
"""Two points are not a curve; the table of scores has them anyway."""
UNIMPORTANT = {"preterminals", "seed", "device", "checkpoint_minutes"}


@dataclass(frozen=True)
class Series:
    """The runs of a family on a treebank by their number of preterminals."""

    data: str
    name: str
    runs: dict[int, list[Result]]

    def other_differences(self) -> list[str]:
        """Settings that are not the same everywhere; nonterminals and rank follow from the size unless they are set."""
        settings = [r.settings or {} for of in self.runs.values() for r in of]
        names = dict.fromkeys(name for each in settings for name in each if name not in UNIMPORTANT)
        return [name for name in names if len({repr(each.get(name)) for each in settings}) > 1]


def symbols(study: Collection) -> Section:
    """A table and a figure with two axes for every family that was trained at several sizes."""
    return Section("symbols", [_exhibit(study, series) for series in find_series(study)])


def _exhibit(study: Collection, series: Series) -> Exhibit:
    f1 = {p: spread(r.f1 for r in of) for p, of in series.runs.items()}
    perplexity = {p: perplexity_of(of) for p, of in series.runs.items()}
    runs = [r for of in series.runs.values() for r in of]
    also = series.other_differences()
    notes = [*decoder_note(runs), *bound_note(runs), *vocabulary_note(runs)]
    notes += [f"The runs also differ in {', '.join(also)}."] if also else []
    rows: list[Row] = [
        (Number(p, digits=0), Number(len(of), digits=0), mean(f1[p]), mean(perplexity[p]))
        for p, of in series.runs.items()
    ]
    return Exhibit(
        "symbols",
        (series.data, series.name),
        f"By number of symbols: {series.name} on {series.data}",
        [*notes, *provenance(runs)],
        Table(["preterminals", "seeds", "S-F1", "perplexity"], {"": rows}),
        partial(draw_symbols, f1, perplexity),
        series.data != study.datasets[0],
    )


def find_series(study: Collection) -> list[Series]:
    """Families with several sizes; where two models have the same size, only those alike in all else are one."""
    found: list[Series] = []
    for data in study.datasets:
        results = [of for model in study.models(data) if (of := study.of(data, model)) and _size(of[0])]
        for kind in _classes(results, lambda r: tuple(repr(r.setting(name)) for name in KIND)):
            sizes = [_size(of[0]) for of in kind]
            finer = [kind] if len(set(sizes)) == len(sizes) else _classes(kind, _all_but_preterminals)
            for group in finer:
                by_size = {_size(of[0]): of for of in reversed(group)}
                if len(by_size) >= LEAST_SIZES:
                    first = kind[0][0]
                    is_plain = first.setting("compound") is not True and first.setting("activation", "relu") == "relu"
                    whole = len(finer) == 1 and is_plain
                    name = str(first.setting("model")) if whole else f"{group[0][0].model} and others"
                    found.append(Series(data, name, dict(sorted(by_size.items()))))
    return found


def _size(result: Result) -> int:
    """The number of preterminals, or 0."""
    size = result.setting("preterminals")
    return size if type(size) is int else 0


def _classes(results: list[list[Result]], key: Callable[[Result], Hashable]) -> list[list[list[Result]]]:
    classes: dict[Hashable, list[list[Result]]] = {}
    for of in results:
        classes.setdefault(key(of[0]), []).append(of)
    return list(classes.values())


def _all_but_preterminals(result: Result) -> Hashable:
    return frozenset((name, repr(value)) for name, value in (result.settings or {}).items() if name not in UNIMPORTANT)
