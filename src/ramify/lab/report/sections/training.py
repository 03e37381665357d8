"""What training took and how it went: number and use of symbols, time, parameters, memory, curves, all results."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial

from ramify.evaluation.spans import CONVENTIONS
from ramify.lab.report.exhibit import Exhibit, Number, Row, Section, Table, mean, number
from ramify.lab.report.figures.plots import Curves, draw_curves, draw_symbols
from ramify.lab.report.figures.style import Systems
from ramify.lab.report.notes import bound_note, decoder_note, model_table, provenance, vocabulary_note
from ramify.lab.results.collection import Collection, Unit, perplexity_of
from ramify.lab.results.schema import Result, spread

FAMILY_SETTINGS = ("model", "compound", "activation")
"""Models that differ in these settings are of different families."""
MIN_SIZES = 3
"""Two points are not a curve; the table of scores has them anyway."""
IGNORED = {"preterminals", "seed", "device", "checkpoint_minutes"}


@dataclass(frozen=True)
class Series:
    """The runs of a family on a treebank by their number of preterminals."""

    data: str
    name: str
    runs: dict[int, list[Result]]

    def other_differences(self) -> list[str]:
        """Settings that are not the same everywhere; nonterminals and rank follow from the size unless they are set."""
        settings = [r.settings or {} for of in self.runs.values() for r in of]
        names = dict.fromkeys(name for each in settings for name in each if name not in IGNORED)
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
        for kind in _classes(results, lambda r: tuple(repr(r.setting(name)) for name in FAMILY_SETTINGS)):
            sizes = [_size(of[0]) for of in kind]
            finer = [kind] if len(set(sizes)) == len(sizes) else _classes(kind, _all_but_preterminals)
            for group in finer:
                by_size = {_size(of[0]): of for of in reversed(group)}
                if len(by_size) >= MIN_SIZES:
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
    return frozenset((name, repr(value)) for name, value in (result.settings or {}).items() if name not in IGNORED)


def cost(study: Collection) -> Section:
    """Time per epoch, parameters and memory of every model."""

    def measured(data: str, model: str) -> list[Result]:
        # One result per seed: what training took does not depend on the decoder.
        found = list({r.seed: r for r in study.all_of(data, model)}.values())
        return found if any(r.parameters or r.seconds_per_epoch or r.peak_memory_mb for r in found) else []

    found = study.by_model(measured)
    heads = ["model", "seeds", "parameters, millions", "seconds an epoch", "epochs", "peak memory, MB", "hardware"]
    # A note names the hardware if it is the same everywhere.
    columns = len(heads) - (len({r.hardware for of in found.values() for r in of}) == 1)
    table = partial(model_table, "cost", "Time, parameters and memory", heads[:columns], found)
    return Section("cost", [table(lambda model, of: _cost_row(model, of)[:columns])] if found else [])


def use_of_symbols(study: Collection) -> Section:
    """Symbols used, and how alike their rules are, where that is known."""

    def row(model: str, of: Sequence[Result]) -> Row:
        used = spread(use.used for r in of if (use := r.scores.nonterminals_used))
        return model, Number(len(of), digits=0), mean(used), mean(spread(r.scores.rule_cosine for r in of), 3)

    found = study.by_model(lambda data, model: [r for r in study.of(data, model) if r.scores.rule_cosine is not None])
    heads = ("model", "seeds", "nonterminals used", "rule cosine")
    return Section(
        "use-of-symbols", [model_table("use-of-symbols", "Use of symbols", heads, found, row)] if found else []
    )


def _cost_row(model: str, of: Sequence[Result]) -> Row:
    parameters = next((r.parameters for r in of if r.parameters), None)
    return (
        model,
        Number(len(of), digits=0),
        number(parameters and parameters / 1e6, 2),
        mean(spread(r.seconds_per_epoch for r in of)),
        mean(spread(len(r.epochs) or None for r in of), 0),
        mean(spread(r.peak_memory_mb for r in of), 0),
        "; ".join(dict.fromkeys(r.hardware for r in of)),
    )


def curves(study: Collection) -> Section:
    """Perplexity and F1 of the dev set after every epoch."""
    return Section("curves", [_curves(study, *unit) for unit in study.units_with(lambda r: r.epochs)])


def _curves(study: Collection, unit: Unit, systems: dict[str, list[Result]]) -> Exhibit:
    perplexity, f1 = _by_epoch(systems, "dev_perplexity"), _by_epoch(systems, "dev_f1")
    shown = [r for of in systems.values() for r in of]
    return Exhibit(
        "curves",
        (unit.group.name, unit.data),
        f"Training: {unit.title}",
        [*bound_note(shown), *vocabulary_note(shown), *provenance(shown)],
        draw=partial(draw_curves, perplexity, f1, Systems(study.style_numbers)),
        folded=unit.folded,
    )


def _by_epoch(systems: dict[str, list[Result]], name: str) -> Curves:
    def curve(result: Result) -> dict[int, float]:
        return {e.epoch: value for e in result.epochs if (value := getattr(e, name)) is not None}

    return {m: [found for r in of if (found := curve(r))] for m, of in systems.items()}


def every_run(study: Collection) -> Section:
    """All results in one flat table, above all for other programs."""
    heads = (
        "data", "system", "seed", "decoder", "S-F1", "C-F1", *(f"S-F1 {name}" for name in CONVENTIONS), "perplexity",
        "seconds an epoch", "parameters", "peak memory, MB", "signature", "hardware", "file",
    )  # fmt: skip
    rows: list[Row] = [
        (
            r.data,
            r.system,
            "" if r.seed is None else str(r.seed),
            r.decoder,
            Number(r.f1, r.scores.f1_std, 2),
            number(r.scores.scores.corpus_f1, 2),
            *(number(getattr(r.scores.by_convention.get(name), "sentence_f1", None), 2) for name in CONVENTIONS),
            number(r.perplexity, 1),
            number(r.seconds_per_epoch, 1),
            number(r.parameters, 0),
            number(r.peak_memory_mb, 0),
            " | ".join(filter(None, (r.scores.signature, r.perplexity_signature))),
            r.hardware,
            r.path,
        )
        for r in study.results
    ]
    title, notes = f"All {len(rows)} results", ["One row per seed and decoder.", *vocabulary_note(study.results)]
    table = Exhibit("runs", (), title, notes, Table(heads, {"": rows}), folded=True, in_print=False)
    return Section("runs", [table] if rows else [])
