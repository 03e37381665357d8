"""What training took and how it went: time, parameters and memory, the curves, and all results in one table."""

from __future__ import annotations

from functools import partial

from ramify.evaluation.spans import CONVENTIONS
from ramify.lab.report.exhibit import Exhibit, Number, Row, Section, Table, mean, number, titled
from ramify.lab.report.figures.line_plots import Curves, draw_curves
from ramify.lab.report.figures.style import Systems
from ramify.lab.report.notes import bound_note, provenance, vocabulary_note
from ramify.lab.results.collection import Collection, Unit
from ramify.lab.results.schema import Result
from ramify.lab.results.spread import spread


def cost(study: Collection) -> Section:
    """Time per epoch, parameters and memory of every model."""
    parts: dict[str, list[Row]] = {}
    shown: list[Result] = []
    for data in study.datasets:
        for model in study.models(data):
            # One result per seed: what training took does not depend on the decoder.
            of = list({r.seed: r for r in study.all_of(data, model)}.values())
            if any(r.parameters or r.seconds_per_epoch or r.peak_memory_mb for r in of):
                shown += of
                parts.setdefault(data, []).append(_cost_row(model, of))
    if not parts:
        return Section("cost", [])
    heads = [
        "model", "seeds", "parameters, millions", "seconds an epoch", "epochs", "peak memory, MB", "hardware"
    ]  # fmt: skip
    if len({r.hardware for r in shown}) == 1:  # which is in a note
        heads, parts = heads[:-1], {data: [row[:-1] for row in rows] for data, rows in parts.items()}
    title = titled("Time, parameters and memory", parts)
    return Section("cost", [Exhibit("cost", (), title, provenance(shown), Table(heads, parts))])


def use_of_symbols(study: Collection) -> Section:
    """Symbols used, and how alike their rules are, where that is known."""
    parts: dict[str, list[Row]] = {}
    shown: list[Result] = []
    for data in study.datasets:
        for model in study.models(data):
            of = [result for result in study.of(data, model) if result.scores.rule_cosine is not None]
            if of:
                shown += of
                used = spread(use.used for r in of if (use := r.scores.nonterminals_used))
                cosine = spread(r.scores.rule_cosine for r in of)
                parts.setdefault(data, []).append((model, Number(len(of), digits=0), mean(used), mean(cosine, 3)))
    if not parts:
        return Section("use-of-symbols", [])
    table = Table(["model", "seeds", "nonterminals used", "rule cosine"], parts)
    title = titled("Use of symbols", parts)
    return Section("use-of-symbols", [Exhibit("use-of-symbols", (), title, provenance(shown), table)])


def _cost_row(model: str, of: list[Result]) -> Row:
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
    found = (_curves(study, unit) for unit in study.units())
    return Section("curves", [exhibit for exhibit in found if exhibit])


def _curves(study: Collection, unit: Unit) -> Exhibit | None:
    of_models = {m: [r for r in study.of(unit.data, m, unit.group) if r.epochs] for m in unit.models}
    systems = {m: of for m, of in of_models.items() if of}
    if not systems:
        return None
    perplexity, f1 = _by_epoch(systems, "dev_perplexity"), _by_epoch(systems, "dev_f1")
    shown = [r for of in systems.values() for r in of]
    return Exhibit(
        "curves",
        (unit.group.name, unit.data),
        f"Training: {unit.title}",
        [*bound_note(shown), *vocabulary_note(shown), *provenance(shown)],
        draw=partial(draw_curves, perplexity, f1, Systems(study.looks)),
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
            f"{r.model} (baseline)" if r.is_baseline else r.model,
            "" if r.seed is None else str(r.seed),
            r.decoder,
            Number(r.f1, r.scores.f1_std, 2),
            number(r.scores.scores.corpus_f1, 2),
            *(number(r.scores.by_convention[name].sentence_f1, 2) for name in CONVENTIONS),
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
