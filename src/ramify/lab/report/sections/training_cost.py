"""What training took and how it went: time, parameters and memory, and the curves."""

from __future__ import annotations

from functools import partial

from ramify.lab.report.figures.curves import draw_curves
from ramify.lab.report.report_table import Cell, Number, Part, Table, columns, figure, mean
from ramify.lab.report.sections.section import Picture, Section, bound_note, name_of, provenance, vocabulary_note
from ramify.lab.results.collection import Result, Runs, spread


def cost(runs: Runs) -> Section | None:
    """Time per epoch, parameters and memory of every model."""
    rows: dict[str, list[tuple[Cell, ...]]] = {}
    shown: list[Result] = []
    for data in runs.datasets:
        for model in runs.models(data):
            # One result a seed: what training took does not depend on the decoder.
            of = list({r.seed: r for r in runs.all_of(data, model)}.values())
            if any(r.parameters or r.seconds_per_epoch or r.memory_mb for r in of):
                shown += of
                rows.setdefault(data, []).append(_cost_row(model, of))
    if not rows:
        return None
    heads = columns(
        "model", "seeds", "parameters, millions", "seconds an epoch", "epochs", "peak memory, MB", "hardware"
    )  # fmt: skip
    if len({r.machine for r in shown}) == 1:  # which a note tells
        heads, rows = heads[:-1], {data: [row[:-1] for row in lines] for data, lines in rows.items()}
    parts = [Part(lines, data if len(rows) > 1 else "") for data, lines in rows.items()]
    title = "Time, parameters and memory" + ("" if len(rows) > 1 else f": {next(iter(rows))}")
    return Section("Cost", _ABOUT_COST, [Table("cost", title, heads, parts, provenance(shown), "data")])


_ABOUT_COST = (
    "Time is of training and judging the dev set, as it was on a machine that may have had other work; compiling the "
    "inner loops, where it was needed, is in it. Memory is the most that the whole process had while it trained."
)


def _cost_row(model: str, of: list[Result]) -> tuple[Cell, ...]:
    parameters = next((r.parameters for r in of if r.parameters), None)
    return (
        model,
        Number(len(of), digits=0),
        figure(parameters and parameters / 1e6, 2),
        mean(spread(r.seconds_per_epoch for r in of)),
        mean(spread(len(r.epochs) or None for r in of), 0),
        mean(spread(r.memory_mb for r in of), 0),
        "; ".join(dict.fromkeys(r.machine for r in of if r.machine)),
    )


def curves(runs: Runs) -> Section | None:
    """Perplexity and F1 of the dev set after every epoch."""
    blocks: list[Table | Picture] = []
    for unit in runs.units():
        found = {m: [r for r in runs.of(unit.data, m, unit.group) if r.epochs] for m in unit.models}
        systems = {m: of for m, of in found.items() if of}
        if not systems:
            continue
        perplexity = {m: _by_epoch(of, "dev_perplexity") for m, of in systems.items()}
        f1 = {m: _by_epoch(of, "dev_f1") for m, of in systems.items()}
        shown = [r for of in systems.values() for r in of]
        blocks.append(
            Picture(
                name_of("curves", unit.group.name, unit.data),
                f"Training: {unit.title}",
                partial(draw_curves, perplexity, f1, runs.looks),
                "Perplexity of the dev set, by which the best epoch is chosen, and its S-F1, which is only told, after "
                "each epoch: a thin line a seed, marks at the mean of those that trained so long.",
                [*bound_note(shown), *vocabulary_note(shown), *provenance(shown)],
                folded=unit.folded,
            )
        )
    return Section("Training curves", "", blocks) if blocks else None


def _by_epoch(of: list[Result], name: str) -> list[dict[int, float]]:
    each = ({e.number: getattr(e, name) for e in r.epochs if getattr(e, name) is not None} for r in of)
    return [curve for curve in each if curve]


def every_run(runs: Runs) -> Section | None:
    """All results in one flat table, above all for other programs."""
    heads = columns(
        "data", "system", "seed", "decoder", "S-F1", "C-F1", "S-F1 tn", "S-F1 kim", "perplexity", "seconds an epoch",
        "parameters", "peak memory, MB", "signature", "hardware", "file",
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (
            r.data,
            f"{r.model} (baseline)" if r.is_baseline else r.model,
            "" if r.seed is None else str(r.seed),
            r.decoder,
            Number(r.f1, r.f1_std, 2),
            figure(r.corpus_f1, 2),
            *(figure(r.f1_by_convention.get(name), 2) for name in ("tn", "kim")),
            figure(r.perplexity, 1),
            figure(r.seconds_per_epoch, 1),
            figure(r.parameters, 0),
            figure(r.memory_mb, 0),
            " | ".join(filter(None, (r.signature, r.perplexity_signature))),
            r.machine,
            r.path,
        )
        for r in runs.results
    ]
    if not rows:
        return None
    title, note = f"All {len(rows)} results", "One row a seed and decoder."
    notes = [note, *vocabulary_note(runs.results)]
    table = Table("runs", title, heads, [Part(rows)], notes, folded=True, in_print=False)
    return Section("Every run", "", [table])
