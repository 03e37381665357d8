"""What more symbols bring: perplexity and F1 of one family against its number of preterminals."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial

from ramify.lab.report.figures.symbols import draw_symbols
from ramify.lab.report.report_table import Cell, Number, Part, Table, columns, mean
from ramify.lab.report.sections.section import (
    Picture,
    Section,
    bound_note,
    decoder_note,
    name_of,
    provenance,
    vocabulary_note,
)
from ramify.lab.results.collection import Result, Runs, perplexity_of, spread
from ramify.lab.results.schema import whole

KIND = ("model", "compound", "activation")
"""Settings that make another family of grammars."""
LEAST_SIZES = 3
"""Two make no curve; their scores stand below each other anyway."""
UNIMPORTANT = {"preterminals", "seed", "device", "checkpoint_minutes"}


@dataclass(frozen=True)
class Series:
    """The runs of a family on a treebank by their number of preterminals."""

    data: str
    name: str
    runs: dict[int, list[Result]]

    def other_differences(self) -> list[str]:
        """Settings that are not the same everywhere; nonterminals and rank follow from the size unless told."""
        settings = [r.settings for of in self.runs.values() for r in of]
        names = dict.fromkeys(name for each in settings for name in each if name not in UNIMPORTANT)
        return [name for name in names if len({repr(each.get(name)) for each in settings}) > 1]


def symbols(runs: Runs) -> Section | None:
    """A table and a figure with two axes for every family that was trained at several sizes."""
    blocks: list[Table | Picture] = []
    for series in find_series(runs):
        f1 = {p: spread(r.f1 for r in of) for p, of in series.runs.items()}
        perplexity = {p: perplexity_of(of) for p, of in series.runs.items()}
        folded = series.data != runs.datasets[0]
        everything = [r for of in series.runs.values() for r in of]
        also = series.other_differences()
        notes = [decoder_note(everything), *bound_note(everything), *vocabulary_note(everything)]
        notes += [f"The runs also differ in {', '.join(also)}."] if also else []
        notes += provenance(everything)
        name, title = name_of("symbols", series.data, series.name), f"{series.name} on {series.data}"
        rows: list[tuple[Cell, ...]] = [
            (Number(p, digits=0), Number(len(series.runs[p]), digits=0), mean(f1[p]), mean(perplexity[p]))
            for p in series.runs
        ]
        heads = columns("preterminals", "seeds", "S-F1", "perplexity")
        blocks.append(Table(name, f"By number of symbols: {title}", heads, [Part(rows)], notes, folded=folded))
        blocks.append(
            Picture(
                name,
                f"By number of symbols: {title}",
                partial(draw_symbols, f1, perplexity),
                "S-F1 (circles, right axis, higher is better) and perplexity (squares, left axis, lower is better) "
                "against the number of preterminals; mean over seeds with its standard deviation.",
                notes,
                folded,
            )
        )
    return Section("Number of symbols", "", blocks) if blocks else None


def find_series(runs: Runs) -> list[Series]:
    """Families with several sizes; where two models have the same size, only those alike in all else are one."""
    found: list[Series] = []
    for data in runs.datasets:
        results = [of for model in runs.models(data) if (of := runs.of(data, model)) and _size(of[0])]
        for kind in _classes(results, _kind):
            loose = [r for of in kind for r in of]
            sizes = [_size(of[0]) for of in kind]
            finer = [kind] if len(set(sizes)) == len(sizes) else _classes(kind, _all_but_preterminals)
            for group in finer:
                by_size: dict[int, list[Result]] = {}
                for of in group:
                    by_size.setdefault(_size(of[0]), of)
                if len(by_size) >= LEAST_SIZES:
                    family = str(loose[0].settings.get("model", "model"))
                    name = family if len(finer) == 1 and _plain(loose[0]) else f"{group[0][0].model} and others"
                    found.append(Series(data, name, dict(sorted(by_size.items()))))
    return found


def _size(result: Result) -> int:
    """The number of preterminals, or 0."""
    return whole(result.settings.get("preterminals")) or 0


def _classes(results: list[list[Result]], key: Callable[[Result], Hashable]) -> list[list[list[Result]]]:
    classes: dict[Hashable, list[list[Result]]] = {}
    for of in results:
        classes.setdefault(key(of[0]), []).append(of)
    return list(classes.values())


def _kind(result: Result) -> Hashable:
    return tuple(repr(result.settings.get(name)) for name in KIND)


def _all_but_preterminals(result: Result) -> Hashable:
    return frozenset((name, repr(value)) for name, value in result.settings.items() if name not in UNIMPORTANT)


def _plain(result: Result) -> bool:
    return result.settings.get("compound") is not True and result.settings.get("activation", "relu") == "relu"
