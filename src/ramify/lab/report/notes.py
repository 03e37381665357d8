"""Notes below tables and figures: where their numbers come from, and which of them can be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ramify.lab.report.exhibit import Cell, Exhibit, Number, Row, Table, mean, title_for
from ramify.lab.results.collection import Unit
from ramify.lab.results.schema import Result, grouped, spread

DECODERS = {"mbr": "MBR", "viterbi": "Viterbi"}


def decoder_name(decoder: str) -> str:
    """As it is written in tables."""
    return DECODERS.get(decoder, decoder)


def decoder_note(results: Iterable[Result]) -> list[str]:
    """By which decoder, or decoders, the trees were found."""
    names = dict.fromkeys(decoder_name(r.decoder) for r in results if not r.is_baseline)
    return [f"Decoder: {' and '.join(names)}."] if names else []


def bound_note(results: Iterable[Result]) -> list[str]:
    """Which perplexities are bounds."""
    names = dict.fromkeys(r.model for r in results if r.is_compound and r.perplexity is not None)
    return [f"Perplexity of {', '.join(names)} is an upper bound: the true one is lower."] if names else []


def models_by(results: Iterable[Result], key: Callable[[Result], str]) -> dict[str, dict[str, list[str]]]:
    """By data set and key the models, each once."""
    of_data = grouped((result.data, (key(result), result.model)) for result in results)
    return {data: grouped(dict.fromkeys(pairs)) for data, pairs in of_data.items()}


def vocabularies(results: Iterable[Result]) -> dict[str, dict[str, list[str]]]:
    """By data set and vocabulary the models with a perplexity; perplexities of different vocabularies differ anyway."""
    return models_by((r for r in results if r.perplexity is not None), lambda r: r.vocabulary)


def vocabulary_note(results: Iterable[Result]) -> list[str]:
    """Which perplexities cannot be compared, because other words are known."""
    return [
        f"Perplexities of different vocabularies cannot be compared, except with spelling. {data}: "
        + "; ".join(f"{', '.join(models)}: {vocabulary}" for vocabulary, models in found.items())
        + "."
        for data, found in vocabularies(results).items()
        if len(found) > 1
    ]


def provenance(results: Sequence[Result]) -> list[str]:
    """Seeds, draws, signatures, sentences without a parse and hardware of the results in a table or figure."""
    notes = _seeds_note([r for r in results if not r.is_baseline])
    draws = {r.model: len(r.scores.run_f1) for r in results if r.is_baseline and len(r.scores.run_f1) > 1}
    notes += [f"For {name} trees, ± is over {count} draws." for name, count in draws.items()]
    signatures = models_by(results, lambda r: r.scores.signature)
    for data, found in signatures.items():
        of_data = "" if len(signatures) == 1 else f" of {data}"
        for signature, systems in found.items():
            # Scores with different signatures cannot be compared, so a reader must see whose they are.
            whose = "" if len(found) == 1 else f" ({', '.join(systems)})"
            notes.append(f"Signature{of_data}{whose}: {signature}.")
    notes += [
        f"Without a parse, and scored as flat trees: {r.scores.not_derived:,} of {r.scores.scores.sentences:,} "
        f"sentences of {r.data} by {r.model}, {'' if r.members else 'seed '}{r.source}, {r.decoder}; their numbers are "
        f"in {r.path}."
        for r in results
        if r.scores.not_derived
    ]
    machines = dict.fromkeys(r.hardware for r in results if not r.is_baseline)
    return [*notes, *([f"Hardware: {'; '.join(machines)}."] if machines else [])]


def _seeds_note(results: Sequence[Result]) -> list[str]:
    """How many runs the figures are of, and which seeds."""
    if not results:
        return []
    several_data = len({r.data for r in results}) > 1
    runs = dict.fromkeys((f"{r.data} {r.model}" if several_data else r.model, r.source) for r in results)
    alike = grouped((tuple(seeds), system) for system, seeds in grouped(runs).items())
    (most_common, names), *others = sorted(alike.items(), key=lambda item: -len(item[1]))
    each = " each" if len(names) > 1 else ""
    exceptions = (f"; {_counted(seeds)} of {', '.join(names)}" for seeds, names in others)
    deviation = "; ± is the biased standard deviation over seeds" if any(len(seeds) > 1 for seeds in alike) else ""
    return [f"{_counted(most_common)}{each}{''.join(exceptions)}{deviation}."]


def _counted(seeds: Sequence[str]) -> str:
    if seeds[0].startswith("average"):
        return seeds[0]
    return f"{len(seeds)} seed{'s' * (len(seeds) != 1)} ({', '.join(seeds)})"


def exhibit_of(
    unit: Unit,
    kind: str,
    title: str,
    notes: list[str],
    table: Table | None = None,
    draw: Callable[[], Any] | None = None,
) -> Exhibit:
    """An exhibit of what is drawn together."""
    return Exhibit(kind, (unit.group.name, unit.data), f"{title}: {unit.title}", notes, table, draw, unit.folded)


Column = Callable[[list[Result]], Cell]


def over_runs(value: Callable[[Result], float | None], digits: int = 1) -> Column:
    """A column: the spread of a figure over the runs of a model."""
    return lambda results: mean(spread(map(value, results)), digits)


def model_table(
    kind: str, title: str, columns: Mapping[str, Column], found: Mapping[tuple[str, str], list[Result]]
) -> Iterator[Exhibit]:
    """A table with a row for each model, in one part per data set; none without results."""
    parts: dict[str, list[Row]] = grouped(
        (data, (model, Number(len(of), digits=0), *(column(of) for column in columns.values())))
        for (data, model), of in found.items()
    )
    if parts:
        notes = provenance([result for of in found.values() for result in of])
        yield Exhibit(kind, (), title_for(title, parts), notes, Table(["model", "seeds", *columns], parts))
