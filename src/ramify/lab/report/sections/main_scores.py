"""The main tables: S-F1 and perplexity of every model, baselines and published figures beside them."""

from __future__ import annotations

from ramify.lab.report.published import published
from ramify.lab.report.report_table import (
    Cell,
    Column,
    Number,
    Part,
    Table,
    best,
    columns,
    figure,
    mean,
    without_empty_columns,
)
from ramify.lab.report.sections.section import (
    Section,
    bound_note,
    decoder_name,
    name_of,
    provenance,
    vocabularies,
    vocabulary_note,
)
from ramify.lab.results.collection import Group, Result, Runs, decoders_of, perplexity_of, spread


def scores(runs: Runs) -> Section | None:
    """A table a group of the experiment, its treebanks below each other."""
    tables = [table for group in runs.groups if (table := _table(runs, group))]
    return Section("Scores", _INTRODUCTION, [*tables]) if tables else None


_INTRODUCTION = (
    "Unlabelled sentence F1 of the test set in percent: mean over seeds with the biased standard deviation, and the "
    "best seed. Perplexity does not depend on the decoder; it can be compared only among models with the same "
    "vocabulary, so never between treebanks. Baselines are trees that need no learning; oracle is the best that binary "
    "trees can reach."
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
    # Where the models know different words, their perplexities can be compared only with the spelling of the others.
    with_spelling = any(len(of) > 1 for of in vocabularies(shown).values())
    likelihood = ("perplexity", "perplexity with spelling") if with_spelling else ("perplexity",)
    heads = [*columns("model", "seeds", *ours, *likelihood), *(Column(head, faint=True) for head in theirs)]
    several = len(group.models) > 1
    parts = []
    for data, models in group.models.items():
        rows = [
            _model_row(model, found[data, model], decoders, with_spelling) for model in models if found[data, model]
        ]
        rows += [_baseline_row(result, len(decoders), with_spelling) for result in runs.baselines(data)]
        if rows:
            parts.append(Part(rows, data if several else ""))
    kept = without_empty_columns(heads, (row for part in parts for row in part.rows))
    parts = [Part([tuple(row[i] for i in kept) for row in part.rows], part.heading) for part in parts]
    title = group.title if several else f"{group.title}: {next(iter(group.models))}"
    notes = [*bound_note(shown), *vocabulary_note(shown), *provenance([*shown, *beside])]
    notes += published().remarks([*shown, *beside])
    return Table(name_of("scores", group.name), title, [heads[i] for i in kept], parts, notes, "data")


def _model_row(model: str, results: list[Result], decoders: list[str], with_spelling: bool) -> tuple[Cell, ...]:
    by_decoder = {decoder: [r for r in results if r.decoder == decoder] for decoder in decoders}
    # By one decoder there may be fewer results than by another, when an experiment is still at work.
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
    likelihood = [mean(perplexity_of(results, spelt)) for spelt in ((False, True) if with_spelling else (False,))]
    return model, seeds, *ours, *likelihood, *theirs


def _baseline_row(result: Result, decoders: int, with_spelling: bool) -> tuple[Cell, ...]:
    """Its one score stands below the first decoder."""
    f1, others = (mean(result.spread), best(result.spread)), [None] * 2 * (decoders - 1)
    likelihood = [None] * (2 if with_spelling else 1)
    return f"{result.model} (baseline)", None, *f1, *others, *likelihood, *_published(result), *others


def _published(result: Result | None) -> tuple[Cell, Cell]:
    found = result and published().f1(result)
    if not found:
        return None, None
    return mean(found), figure(found.best) if found.best != found.mean else None
