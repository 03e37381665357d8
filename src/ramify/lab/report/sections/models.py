"""The sections on models as wholes: scores, agreement, number and use of symbols, cost, training, all results."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from ramify.evaluation.spans import CONVENTIONS
from ramify.lab.report.exhibit import Cell, Exhibit, Number, Row, Table, best, mean, number, title_for
from ramify.lab.report.figures import Curves, Systems, draw_curves, draw_dots, draw_symbols
from ramify.lab.report.notes import (
    bound_note,
    decoder_name,
    decoder_note,
    model_table,
    over_runs,
    provenance,
    vocabularies,
    vocabulary_note,
)
from ramify.lab.report.published import published
from ramify.lab.results.collection import Collection, decoders_of, perplexity_of
from ramify.lab.results.schema import Result, grouped, spread


def scores(study: Collection) -> Iterator[Exhibit]:
    """A table for each group of the experiment, its treebanks below each other."""
    for group in study.groups:
        found = {(data, m): study.all_of(data, m, group) for data, models in group.models_on.items() for m in models}
        shown = [r for of in found.values() for r in of]
        beside = {data: study.baselines(data) for data in group.models_on}
        decoders = decoders_of(shown) or [""]
        names = [decoder_name(decoder) for decoder in decoders]
        ours = [head.strip() for name in names for head in (f"S-F1 {name}", f"max {name}")]
        theirs = [head.strip() for name in names for head in (f"published {name}", f"published max {name}")]
        # Where models know different words, their perplexities can be compared only with the spelling of the others.
        spelt = any(len(of) > 1 for of in vocabularies(shown).values())
        likelihood = ["perplexity", "perplexity with spelling"][: 1 + spelt]
        parts = {}
        for data, models in group.models_on.items():
            rows = [_model_row(m, found[data, m], decoders, spelt) for m in models if found[data, m]]
            rows += [_baseline_row(result, len(decoders), spelt) for result in beside[data]]
            if rows:
                parts[data] = rows
        if parts:
            table = Table(["model", "seeds", *ours, *likelihood, *theirs], parts, len(theirs)).without_empty_columns()
            everything = [*shown, *(r for of in beside.values() for r in of)]
            notes = [*bound_note(shown), *vocabulary_note(shown), *provenance(everything)]
            notes += published().remarks(everything)
            yield Exhibit("scores", (group.name,), title_for(group.title, parts), notes, table)


def _model_row(model: str, results: list[Result], decoders: list[str], spelt: bool) -> Row:
    by_decoder = [[r for r in results if r.decoder == decoder] for decoder in decoders]
    # By one decoder there may be fewer results than by another, while an experiment runs.
    counts = [len(found) for found in by_decoder if found]
    seeds: Cell = Number(counts[0], digits=0) if len(set(counts)) == 1 else " / ".join(map(str, counts))
    if results[0].members:
        seeds = None  # an average is of several
    f1 = [spread(r.f1 for r in found) for found in by_decoder]
    ours = [cell for each in f1 for cell in (mean(each), best(each))]
    theirs = [cell for found in by_decoder for cell in _published(found[:1])]
    likelihood = [mean(perplexity_of(results, with_spelling)) for with_spelling in (False, True)[: 1 + spelt]]
    return model, seeds, *ours, *likelihood, *theirs


def _baseline_row(result: Result, decoders: int, spelt: bool) -> Row:
    """Its one score stands below the first decoder."""
    f1, others = (mean(result.spread), best(result.spread)), [None] * 2 * (decoders - 1)
    return result.system, None, *f1, *others, *[None] * (1 + spelt), *_published([result]), *others


def _published(results: list[Result]) -> tuple[Cell, Cell]:
    found = next(map(published().f1, results), None)
    if found is None:
        return None, None
    return mean(found), number(found.best) if found.best != found.mean else None


def treebank_comparison(study: Collection) -> Iterator[Exhibit]:
    """For each group the models that were trained on two treebanks or more, with the baselines."""
    for group in study.groups:
        models = study.on_several(group)
        if not models:
            continue
        datasets = [data for data in group.models_on if any(study.of(data, m, group) for m in models)]
        found = {m: {data: study.of(data, m, group) for data in datasets} for m in models}
        beside = {(r.system, data): r for data in datasets for r in study.baselines(data)}
        baselines = list(dict.fromkeys(name for name, _ in beside))
        values = {m: {data: spread(r.f1 for r in of) for data, of in by_data.items()} for m, by_data in found.items()}
        values |= {b: {data: beside[b, data].spread for data in datasets if (b, data) in beside} for b in baselines}
        known = {m: {data: published().f1(of[0]) for data, of in by_data.items() if of} for m, by_data in found.items()}
        theirs = {f"published {m}": by_data for m, by_data in known.items() if any(by_data.values())}
        columns = [*values.values(), *theirs.values()]
        rows: list[Row] = [(data, *(mean(column.get(data)) for column in columns)) for data in datasets]
        # By treebank, so that the notes name treebanks in their order.
        shown = [*(r for data in datasets for m in models for r in found[m][data]), *beside.values()]
        bands, systems = {data: data for data in datasets}, Systems(study.style_numbers, baselines)
        yield Exhibit(
            "across-treebanks",
            (group.name,),
            f"S-F1 by treebank: {group.title}",
            [*decoder_note(shown), *provenance(shown), *published().remarks(shown)],
            Table(["data", *values, *theirs], {"": [*rows, _mean_row(rows)]}, len(theirs)),
            partial(draw_dots, bands, values, systems, "S-F1"),
        )


def _mean_row(rows: list[Row]) -> Row:
    """Only of columns without a gap: a mean over other treebanks than its neighbours' invites a wrong comparison."""
    columns = ([cell.value for cell in column if isinstance(cell, Number)] for column in zip(*rows, strict=True))
    return "mean", *(Number(fmean(of)) if len(of) == len(rows) else None for of in list(columns)[1:])


def agreement(study: Collection) -> Iterator[Exhibit]:
    """A table for each average, all but the first one folded."""
    averages = [(result, found) for result in study.results if (found := result.member_agreement)]
    for place, (result, found) in enumerate(averages):
        rows: list[Row] = [
            (name, *(None if name == other else number(f1) for other, f1 in zip(found.columns, row, strict=True)))
            for name, row in found.sentence_f1.items()
            if name not in ("left", "right")
        ]
        of, table = (result.data, result.model), Table(["", *found.columns], {"": rows})
        yield Exhibit("agreement", of, ": ".join(of), provenance([result]), table, folded=place > 0)


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


def symbols(study: Collection) -> Iterator[Exhibit]:
    """A table and a figure with two axes for every family that was trained at several sizes."""
    for series in find_series(study):
        f1 = {p: spread(r.f1 for r in of) for p, of in series.runs.items()}
        perplexity = {p: perplexity_of(of) for p, of in series.runs.items()}
        runs = [r for of in series.runs.values() for r in of]
        notes = [*decoder_note(runs), *bound_note(runs), *vocabulary_note(runs)]
        if also := series.other_differences():
            notes.append(f"The runs also differ in {', '.join(also)}.")
        rows: list[Row] = [
            (Number(p, digits=0), Number(len(of), digits=0), mean(f1[p]), mean(perplexity[p]))
            for p, of in series.runs.items()
        ]
        yield Exhibit(
            "symbols",
            (series.data, series.name),
            f"By number of symbols: {series.name} on {series.data}",
            [*notes, *provenance(runs)],
            Table(["preterminals", "seeds", "S-F1", "perplexity"], {"": rows}),
            partial(draw_symbols, f1, perplexity),
            series.data != study.datasets[0],
        )


def find_series(study: Collection) -> Iterator[Series]:
    """Families with several sizes; where two models have the same size, only those alike in all else are one."""
    for data in study.datasets:
        results = [of for model in study.models(data) if (of := study.of(data, model)) and _size(of[0])]
        families = grouped((tuple(repr(of[0].setting(name)) for name in FAMILY_SETTINGS), of) for of in results)
        for kind in families.values():
            alike = grouped((_all_but_preterminals(of[0]), of) for of in kind)
            finer = [kind] if len({_size(of[0]) for of in kind}) == len(kind) else [*alike.values()]
            for group in finer:
                by_size = {_size(of[0]): of for of in reversed(group)}
                if len(by_size) >= MIN_SIZES:
                    first = kind[0][0]
                    is_plain = first.setting("compound") is not True and first.setting("activation", "relu") == "relu"
                    whole = len(finer) == 1 and is_plain
                    name = str(first.setting("model")) if whole else f"{group[0][0].model} and others"
                    yield Series(data, name, dict(sorted(by_size.items())))


def _size(result: Result) -> int:
    """The number of preterminals, or 0."""
    size = result.setting("preterminals")
    return size if type(size) is int else 0


def _all_but_preterminals(result: Result) -> Hashable:
    return frozenset((name, repr(value)) for name, value in (result.settings or {}).items() if name not in IGNORED)


def cost(study: Collection) -> Iterator[Exhibit]:
    """Time per epoch, parameters and memory of every model."""

    def measured(data: str, model: str) -> list[Result]:
        # One result per seed: what training took does not depend on the decoder.
        found = list({r.seed: r for r in study.all_of(data, model)}.values())
        return found if any(r.parameters or r.seconds_per_epoch or r.peak_memory_mb for r in found) else []

    found = study.by_model(measured)
    columns: dict[str, Callable[[list[Result]], Cell]] = {
        "parameters, millions": lambda of: number(next((r.parameters / 1e6 for r in of if r.parameters), None), 2),
        "seconds an epoch": over_runs(lambda r: r.seconds_per_epoch),
        "epochs": over_runs(lambda r: len(r.epochs) or None, 0),
        "peak memory, MB": over_runs(lambda r: r.peak_memory_mb, 0),
    }
    if len({r.hardware for of in found.values() for r in of}) > 1:  # otherwise a note names it
        columns["hardware"] = lambda of: "; ".join(dict.fromkeys(r.hardware for r in of))
    yield from model_table("cost", "Time, parameters and memory", columns, found)


def use_of_symbols(study: Collection) -> Iterator[Exhibit]:
    """Symbols used, and how alike their rules are, where that is known."""
    found = study.by_model(lambda data, model: [r for r in study.of(data, model) if r.scores.rule_cosine is not None])
    columns = {
        "nonterminals used": over_runs(lambda r: getattr(r.scores.nonterminals_used, "used", None)),
        "rule cosine": over_runs(lambda r: r.scores.rule_cosine, 3),
    }
    yield from model_table("use-of-symbols", "Use of symbols", columns, found)


def curves(study: Collection) -> Iterator[Exhibit]:
    """Perplexity and F1 of the dev set after every epoch."""
    for unit, systems in study.units_with(lambda r: r.epochs):
        perplexity, f1 = _by_epoch(systems, "dev_perplexity"), _by_epoch(systems, "dev_f1")
        shown = [r for of in systems.values() for r in of]
        yield Exhibit(
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


def every_run(study: Collection) -> Iterator[Exhibit]:
    """All results in one flat table, above all for other programs."""
    rows: list[dict[str, Cell]] = [
        {
            "data": r.data,
            "system": r.system,
            "seed": "" if r.seed is None else str(r.seed),
            "decoder": r.decoder,
            "S-F1": Number(r.f1, r.scores.f1_std, 2),
            "C-F1": number(r.scores.scores.corpus_f1, 2),
            **{
                f"S-F1 {name}": number(getattr(r.scores.by_convention.get(name), "sentence_f1", None), 2)
                for name in CONVENTIONS
            },
            "perplexity": number(r.perplexity, 1),
            "seconds an epoch": number(r.seconds_per_epoch, 1),
            "parameters": number(r.parameters, 0),
            "peak memory, MB": number(r.peak_memory_mb, 0),
            "signature": " | ".join(filter(None, (r.scores.signature, r.perplexity_signature))),
            "hardware": r.hardware,
            "file": r.path,
        }
        for r in study.results
    ]
    if rows:
        notes = ["One row per seed and decoder.", *vocabulary_note(study.results)]
        table = Table([*rows[0]], {"": [tuple(row.values()) for row in rows]})
        yield Exhibit("runs", (), f"All {len(rows)} results", notes, table, folded=True, in_print=False)
