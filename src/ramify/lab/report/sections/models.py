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
    exhibit_of,
    model_table,
    over_runs,
    provenance,
    vocabularies,
    vocabulary_note,
)
from ramify.lab.report.published import published
from ramify.lab.results.collection import Collection, decoders_of, perplexity_of, with_details
from ramify.lab.results.schema import Result, f1_of, grouped, spread


def scores(study: Collection) -> Iterator[Exhibit]:
    """A table for each group of the experiment, its treebanks below each other."""
    for group in study.groups:
        systems: list[tuple[str, list[Result]]] = []
        for data, models in group.results.items():
            systems += [(data, results) for results in models.values() if results]
            systems += [(data, [baseline]) for baseline in study.baselines(data)]
        everything = sorted((r for _, results in systems for r in results), key=lambda r: r.is_baseline)
        shown = [r for r in everything if not r.is_baseline]
        decoders = decoders_of(shown) or [""]
        names = [decoder_name(decoder) for decoder in decoders]
        ours = [head.strip() for name in names for head in (f"S-F1 {name}", f"max {name}")]
        theirs = [head.strip() for name in names for head in (f"published {name}", f"published max {name}")]
        # Where models know different words, their perplexities can be compared only with the spelling of the others.
        spelt = any(len(of) > 1 for of in vocabularies(shown).values())
        likelihood = ["perplexity", "perplexity with spelling"][: 1 + spelt]
        parts: dict[str, list[Row]] = grouped((data, _row(results, decoders, spelt)) for data, results in systems)
        if parts:
            table = Table(["model", "seeds", *ours, *likelihood, *theirs], parts, len(theirs)).without_empty_columns()
            notes = [*bound_note(shown), *vocabulary_note(shown), *provenance(everything)]
            notes += published().remarks(everything)
            yield Exhibit("scores", (group.name,), title_for(group.title, parts), notes, table)


def _row(results: list[Result], decoders: list[str], spelt: bool) -> Row:
    """Of a model, or of a baseline, whose score stands below the first decoder."""
    by_decoder = [[r for r in results if r.decoder == decoder] for decoder in decoders]
    # By one decoder there may be fewer results than by another, while an experiment runs.
    counts = [len(found) for found in by_decoder if found]
    seeds: Cell = Number(counts[0], digits=0) if len(set(counts)) == 1 else " / ".join(map(str, counts))
    if results[0].is_baseline:
        by_decoder[0] = results
    if results[0].is_baseline or results[0].members:  # an average is of several seeds
        seeds = None
    f1 = [f1_of(found) for found in by_decoder]
    known = [published().f1(found[0]) if found else None for found in by_decoder]
    ours = [cell for each in f1 for cell in (mean(each), best(each))]
    theirs = [
        cell for each in known for cell in (mean(each), number(each.best) if each and each.best != each.mean else None)
    ]
    likelihood = [mean(perplexity_of(results, with_spelling)) for with_spelling in (False, True)[: 1 + spelt]]
    return results[0].system, seeds, *ours, *likelihood, *theirs


def treebank_comparison(study: Collection) -> Iterator[Exhibit]:
    """For each group the models that were trained on two treebanks or more, with the baselines."""
    for group in study.groups:
        models = group.on_several()
        if not models:
            continue
        datasets = [data for data, of in group.results.items() if any(of.get(m) for m in models)]
        systems = {m: {d: with_details(of) for d in datasets if (of := group.results[d].get(m))} for m in models}
        for result in (r for data in datasets for r in study.baselines(data)):
            systems.setdefault(result.system, {})[result.data] = [result]
        values = {name: {data: f1_of(of) for data, of in by_data.items()} for name, by_data in systems.items()}
        known = {f"published {m}": {data: published().f1(of[0]) for data, of in systems[m].items()} for m in models}
        theirs = {head: by_data for head, by_data in known.items() if any(by_data.values())}
        columns = values | theirs
        rows: list[Row] = [(data, *(mean(column.get(data)) for column in columns.values())) for data in datasets]
        # By treebank, so that the notes name treebanks in their order.
        found = [r for data in datasets for by_data in systems.values() for r in by_data.get(data, [])]
        shown = sorted(found, key=lambda r: r.is_baseline)
        baselines = [name for name in systems if name not in models]
        yield Exhibit(
            "across-treebanks",
            (group.name,),
            f"S-F1 by treebank: {group.title}",
            [*decoder_note(shown), *provenance(shown), *published().remarks(shown)],
            Table(["data", *columns], {"": [*rows, _mean_row(rows)]}, len(theirs)),
            partial(
                draw_dots, {data: data for data in datasets}, values, Systems(study.style_numbers, baselines), "S-F1"
            ),
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
    sized = [runs for of in study.by_model.values() if _size((runs := with_details(of))[0])]
    families = grouped(((of[0].data, *(repr(of[0].setting(name)) for name in FAMILY_SETTINGS)), of) for of in sized)
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
                yield Series(first.data, name, dict(sorted(by_size.items())))


def _size(result: Result) -> int:
    """The number of preterminals, or 0."""
    size = result.setting("preterminals")
    return size if type(size) is int else 0


def _all_but_preterminals(result: Result) -> Hashable:
    return frozenset((name, repr(value)) for name, value in (result.settings or {}).items() if name not in IGNORED)


def cost(study: Collection) -> Iterator[Exhibit]:
    """Time per epoch, parameters and memory of every model."""
    # One result per seed: what training took does not depend on the decoder.
    by_seed = {key: [*{r.seed: r for r in of}.values()] for key, of in study.by_model.items()}
    found = {
        key: of
        for key, of in by_seed.items()
        if any(r.parameters or r.seconds_per_epoch or r.peak_memory_mb for r in of)
    }
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
    found = study.by_model_with(lambda r: r.scores.rule_cosine is not None)
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
        notes = [*bound_note(shown), *vocabulary_note(shown), *provenance(shown)]
        draw = partial(draw_curves, perplexity, f1, Systems(study.style_numbers))
        yield exhibit_of(unit, "curves", "Training", notes, draw=draw)


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
