"""The main tables: S-F1 and perplexity of every model, baselines and published figures beside them."""

from __future__ import annotations

from ramify.report.contents.section import Section, decoder_name, name_of, provenance
from ramify.report.published import published
from ramify.report.results import Group, Result, Runs, Spread, decoders_of, spread
from ramify.report.tables import Cell, Column, Number, Part, Table, best, figure, mean, without_empty_columns


def scores(runs: Runs) -> Section | None:
    """A table a group of the experiment, its treebanks below each other."""
    tables = [table for group in runs.groups if (table := _table(runs, group))]
    return Section("Scores", _INTRODUCTION, [*tables]) if tables else None


_INTRODUCTION = (
    "Unlabelled sentence F1 of the test set in percent: mean over seeds with the biased standard deviation, and the "
    "best seed. Perplexity does not depend on the decoder. Baselines are trees that need no learning; oracle is the "
    "best that binary trees can reach."
)


def _table(runs: Runs, group: Group) -> Table | None:
    shown = [r for data, models in group.models.items() for model in models for r in _all(runs, data, model)]
    beside = [r for data in group.models for r in runs.baselines(data)]
    if not shown and not beside:
        return None
    decoders = decoders_of(shown) or [""]
    heads = [Column("model"), Column("seeds")]
    for decoder in decoders:
        name = decoder_name(decoder)
        heads += [Column(f"S-F1 {name}".strip()), Column(f"max {name}".strip())]
        heads += [Column(f"published {name}".strip(), faint=True), Column(f"published max {name}".strip(), faint=True)]
    heads.append(Column("perplexity"))
    several = len(group.models) > 1
    parts = []
    for data, models in group.models.items():
        rows = [_model_row(runs, data, model, decoders) for model in models if _all(runs, data, model)]
        rows += [_baseline_row(result, len(decoders)) for result in runs.baselines(data)]
        if rows:
            parts.append(Part(rows, data if several else ""))
    kept = without_empty_columns(heads, (row for part in parts for row in part.rows))
    parts = [Part([tuple(row[i] for i in kept) for row in part.rows], part.heading) for part in parts]
    title = group.title if several else f"{group.title}: {next(iter(group.models))}"
    notes = [*provenance([*shown, *beside]), *published().remarks([*shown, *beside])]
    return Table(name_of("scores", group.name), title, [heads[i] for i in kept], parts, notes, "data")


def _all(runs: Runs, data: str, model: str) -> list[Result]:
    return [r for r in runs.results if not r.is_baseline and (r.data, r.model) == (data, model)]


def _model_row(runs: Runs, data: str, model: str, decoders: list[str]) -> tuple[Cell, ...]:
    everything = _all(runs, data, model)
    seeds = max(len(runs.of(data, model, decoder)) for decoder in decoders)
    cells: list[Cell] = [model, Number(seeds, digits=0)]
    for decoder in decoders:
        found = runs.of(data, model, decoder)
        f1 = spread(r.f1 for r in found)
        cells += [mean(f1), best(f1), *_published(found[0] if found else None)]
    by_seed = {r.seed: r.perplexity for r in everything}
    return *cells, mean(spread(by_seed.values()))


def _baseline_row(result: Result, decoders: int) -> tuple[Cell, ...]:
    """Its one score stands below the first decoder."""
    f1 = Spread(result.f1, result.f1_std, result.f1_max or result.f1, result.draws)
    first: list[Cell] = [mean(f1), best(f1), *_published(result)]
    return f"{result.model} (baseline)", None, *first, *([None] * 4 * (decoders - 1)), None


def _published(result: Result | None) -> tuple[Cell, Cell]:
    found = result and published().f1(result)
    if not found:
        return None, None
    return mean(found), figure(found.best) if found.best != found.mean else None
