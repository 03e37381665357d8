"""S-F1 and perplexity of every model beside baselines and published figures, by group, by treebank, within averages."""

from __future__ import annotations

from functools import partial
from statistics import fmean

from ramify.lab.report.exhibit import Cell, Exhibit, Number, Row, Section, Table, best, mean, number, title_for
from ramify.lab.report.figures.plots import draw_dots
from ramify.lab.report.figures.style import Systems
from ramify.lab.report.notes import (
    bound_note,
    decoder_name,
    decoder_note,
    provenance,
    vocabularies,
    vocabulary_note,
)
from ramify.lab.report.published import published
from ramify.lab.results.collection import Collection, TableGroup, decoders_of, perplexity_of
from ramify.lab.results.schema import Result, spread


def scores(study: Collection) -> Section:
    """A table for each group of the experiment, its treebanks below each other."""
    return Section("scores", [found for group in study.groups if (found := _scores(study, group))])


def _scores(study: Collection, group: TableGroup) -> Exhibit | None:
    found = {(data, m): study.all_of(data, m, group) for data, models in group.models.items() for m in models}
    shown = [r for of in found.values() for r in of]
    beside = [r for data in group.models for r in study.baselines(data)]
    decoders = decoders_of(shown) or [""]
    names = [decoder_name(decoder) for decoder in decoders]
    ours = [head.strip() for name in names for head in (f"S-F1 {name}", f"max {name}")]
    theirs = [head.strip() for name in names for head in (f"published {name}", f"published max {name}")]
    # Where models know different words, their perplexities can be compared only with the spelling of the others.
    spelt = any(len(of) > 1 for of in vocabularies(shown).values())
    likelihood = ["perplexity", "perplexity with spelling"][: 1 + spelt]
    parts = {}
    for data, models in group.models.items():
        rows = [_model_row(m, found[data, m], decoders, spelt) for m in models if found[data, m]]
        rows += [_baseline_row(result, len(decoders), spelt) for result in study.baselines(data)]
        if rows:
            parts[data] = rows
    if not parts:
        return None
    table = Table(["model", "seeds", *ours, *likelihood, *theirs], parts, len(theirs)).without_empty_columns()
    notes = [*bound_note(shown), *vocabulary_note(shown), *provenance([*shown, *beside])]
    notes += published().remarks([*shown, *beside])
    return Exhibit("scores", (group.name,), title_for(group.title, parts), notes, table)


def _model_row(model: str, results: list[Result], decoders: list[str], spelt: bool) -> Row:
    by_decoder = {decoder: [r for r in results if r.decoder == decoder] for decoder in decoders}
    # By one decoder there may be fewer results than by another, while an experiment runs.
    counts = [len(found) for found in by_decoder.values() if found]
    seeds: Cell = Number(counts[0], digits=0) if len(set(counts)) == 1 else " / ".join(map(str, counts))
    if results[0].members:
        seeds = None  # an average is of several
    ours: list[Cell] = []
    theirs: list[Cell] = []
    for found in by_decoder.values():
        f1 = spread(r.f1 for r in found)
        ours += [mean(f1), best(f1)]
        theirs += _published(found[0] if found else None)
    likelihood = [mean(perplexity_of(results, with_spelling)) for with_spelling in (False, True)[: 1 + spelt]]
    return model, seeds, *ours, *likelihood, *theirs


def _baseline_row(result: Result, decoders: int, spelt: bool) -> Row:
    """Its one score stands below the first decoder."""
    f1, others = (mean(result.spread), best(result.spread)), [None] * 2 * (decoders - 1)
    return result.system, None, *f1, *others, *[None] * (1 + spelt), *_published(result), *others


def _published(result: Result | None) -> tuple[Cell, Cell]:
    found = result and published().f1(result)
    if not found:
        return None, None
    return mean(found), number(found.best) if found.best != found.mean else None


def treebank_comparison(study: Collection) -> Section:
    """For each group the models that were trained on two treebanks or more, with the baselines."""
    return Section(
        "across-treebanks", [_comparison_table(study, group) for group in study.groups if study.on_several(group)]
    )


def _comparison_table(study: Collection, group: TableGroup) -> Exhibit:
    models = study.on_several(group)
    datasets = [data for data in group.models if any(study.of(data, m, group) for m in models)]
    found = {m: {data: study.of(data, m, group) for data in datasets} for m in models}
    beside = {(r.system, data): r for data in datasets for r in study.baselines(data)}
    baselines = list(dict.fromkeys(name for name, _ in beside))
    values = {m: {data: spread(r.f1 for r in of) for data, of in by_data.items()} for m, by_data in found.items()}
    values |= {b: {data: beside[b, data].spread for data in datasets if (b, data) in beside} for b in baselines}
    known = {m: {data: published().f1(of[0]) for data, of in by_data.items() if of} for m, by_data in found.items()}
    columns = [*values.values(), *(theirs for theirs in known.values() if any(theirs.values()))]
    rows: list[Row] = [(data, *(mean(column.get(data)) for column in columns)) for data in datasets]
    theirs = [f"published {m}" for m in models if any(known[m].values())]
    # By treebank, so that the notes name treebanks in their order.
    shown = [*(r for data in datasets for m in models for r in found[m][data]), *beside.values()]
    return Exhibit(
        "across-treebanks",
        (group.name,),
        f"S-F1 by treebank: {group.title}",
        [*decoder_note(shown), *provenance(shown), *published().remarks(shown)],
        Table(["data", *values, *theirs], {"": [*rows, _mean_row(rows)]}, len(theirs)),
        partial(draw_dots, {data: data for data in datasets}, values, Systems(study.style_numbers, baselines), "S-F1"),
    )


def _mean_row(rows: list[Row]) -> Row:
    """Only of columns without a gap: a mean over other treebanks than its neighbours' invites a wrong comparison."""
    columns = ([cell.value for cell in column if isinstance(cell, Number)] for column in zip(*rows, strict=True))
    return "mean", *(Number(fmean(of)) if len(of) == len(rows) else None for of in list(columns)[1:])


def agreement(study: Collection) -> Section:
    """A table for each average."""
    averages = [result for result in study.results if result.member_agreement]
    return Section("agreement", [_agreement(r, r is not averages[0]) for r in averages])


def _agreement(result: Result, folded: bool) -> Exhibit:
    found = result.member_agreement
    assert found is not None
    heads = found.columns
    rows = [
        (name, *(None if name == other else number(value) for other, value in zip(heads, f1, strict=True)))
        for name, f1 in found.sentence_f1.items()
        if name not in ("left", "right")
    ]
    of, table = (result.data, result.model), Table(["", *heads], {"": [*rows]})
    return Exhibit("agreement", of, ": ".join(of), provenance([result]), table, folded=folded)
