"""The main tables: S-F1 and perplexity of every model, baselines and published figures beside them."""

from __future__ import annotations

from ramify.report.contents.section import Section, bound_note, decoder_name, name_of, provenance
from ramify.report.published import published
from ramify.report.results import Group, Result, Runs, decoders_of, perplexity_of, spread
from ramify.report.tables import Cell, Column, Number, Part, Table, best, columns, figure, mean, without_empty_columns


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
    found = {
        (data, model): runs.all_of(data, model, group) for data, models in group.models.items() for model in models
    }
    shown = [r for of in found.values() for r in of]
    beside = [r for data in group.models for r in runs.baselines(data)]
    if not shown and not beside:
        return None
    decoders = decoders_of(shown) or [""]
    names = [decoder_name(decoder) for decoder in decoders]
    ours = [head.strip() for name in names for head in (f"S-F1 {name}", f"max {name}")]
    theirs = [head.strip() for name in names for head in (f"published {name}", f"published max {name}")]
    heads = [*columns("model", "seeds", *ours, "perplexity"), *(Column(head, faint=True) for head in theirs)]
    several = len(group.models) > 1
    parts = []
    for data, models in group.models.items():
        rows = [_model_row(model, found[data, model], decoders) for model in models if found[data, model]]
        rows += [_baseline_row(result, len(decoders)) for result in runs.baselines(data)]
        if rows:
            parts.append(Part(rows, data if several else ""))
    kept = without_empty_columns(heads, (row for part in parts for row in part.rows))
    parts = [Part([tuple(row[i] for i in kept) for row in part.rows], part.heading) for part in parts]
    title = group.title if several else f"{group.title}: {next(iter(group.models))}"
    notes = [*bound_note(shown), *provenance([*shown, *beside]), *published().remarks([*shown, *beside])]
    return Table(name_of("scores", group.name), title, [heads[i] for i in kept], parts, notes, "data")


def _model_row(model: str, results: list[Result], decoders: list[str]) -> tuple[Cell, ...]:
    by_decoder = {decoder: [r for r in results if r.decoder == decoder] for decoder in decoders}
    # By one decoder there may be fewer results than by another, when an experiment is still at work.
    counts = [len(found) for found in by_decoder.values() if found]
    seeds = Number(counts[0], digits=0) if len(set(counts)) == 1 else " / ".join(map(str, counts))
    ours: list[Cell] = []
    theirs: list[Cell] = []
    for found in by_decoder.values():
        f1 = spread(r.f1 for r in found)
        ours += [mean(f1), best(f1)]
        theirs += _published(found[0] if found else None)
    return model, seeds, *ours, mean(perplexity_of(results)), *theirs


def _baseline_row(result: Result, decoders: int) -> tuple[Cell, ...]:
    """Its one score stands below the first decoder."""
    f1, others = (mean(result.spread), best(result.spread)), [None] * 2 * (decoders - 1)
    return f"{result.model} (baseline)", None, *f1, *others, None, *_published(result), *others


def _published(result: Result | None) -> tuple[Cell, Cell]:
    found = result and published().f1(result)
    if not found:
        return None, None
    return mean(found), figure(found.best) if found.best != found.mean else None
