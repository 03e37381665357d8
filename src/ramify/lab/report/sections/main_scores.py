"""The main tables: S-F1 and perplexity of every model, baselines and published figures beside them."""

from __future__ import annotations

from ramify.lab.report.exhibit import Cell, Exhibit, Number, Row, Section, Table, best, file_name, mean, number, titled
from ramify.lab.report.notes import bound_note, decoder_name, provenance, vocabularies, vocabulary_note
from ramify.lab.report.published import published
from ramify.lab.results.collection import Collection, TableGroup, decoders_of, perplexity_of
from ramify.lab.results.schema import Result
from ramify.lab.results.spread import spread


def scores(study: Collection) -> Section:
    """A table for each group of the experiment, its treebanks below each other."""
    about = (
        "Unlabelled sentence F1 of the test set in percent: mean over seeds with the biased standard deviation, and "
        "the best seed. Perplexity does not depend on the decoder; it can be compared only among models with the same "
        "vocabulary, so never between treebanks. Baselines are trees that need no learning; oracle is the best that "
        "binary trees can reach."
    )
    return Section("Scores", about, [found for group in study.groups if (found := _of_group(study, group))])


def _of_group(study: Collection, group: TableGroup) -> Exhibit | None:
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
    return Exhibit(file_name("scores", group.name), titled(group.title, parts), notes, table)


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
    return f"{result.model} (baseline)", None, *f1, *others, *[None] * (1 + spelt), *_published(result), *others


def _published(result: Result | None) -> tuple[Cell, Cell]:
    found = result and published().f1(result)
    if not found:
        return None, None
    return mean(found), number(found.best) if found.best != found.mean else None
