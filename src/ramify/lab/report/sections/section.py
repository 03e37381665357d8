"""What sections of the report are made of, and the remarks that their tables have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ramify.lab.report.report_table import Table
from ramify.lab.results.collection import Result

NAMES = {"mbr": "MBR", "viterbi": "Viterbi"}


@dataclass(frozen=True)
class Picture:
    """A figure that is drawn when it is needed."""

    name: str
    """Of its files"""
    title: str
    draw: Callable[[], Any]
    """Gives a matplotlib Figure"""
    caption: str
    notes: list[str] = field(default_factory=list)
    folded: bool = False


@dataclass(frozen=True)
class Section:
    """A heading, what there is to know, tables and figures."""

    title: str
    introduction: str
    blocks: list[Table | Picture]


def name_of(*parts: str) -> str:
    """A file's name from names in any script."""
    name = "-".join(filter(None, (re.sub(r"[\W_]+", "-", part.lower()).strip("-") for part in parts)))
    return name.encode("utf-8", "ignore")[:200].decode("utf-8", "ignore") or "x"


def decoder_name(decoder: str) -> str:
    """As it is written in tables."""
    return NAMES.get(decoder, decoder)


def decoder_note(results: Iterable[Result]) -> str:
    """By which decoder, or decoders, the trees were found."""
    names = dict.fromkeys(decoder_name(r.decoder) for r in results if not r.is_baseline)
    return f"Decoder: {' and '.join(names)}." if names else ""


def bound_note(results: Iterable[Result]) -> list[str]:
    """Whose perplexity is no more than a bound."""
    names = dict.fromkeys(r.model for r in results if r.is_bound and r.perplexity is not None)
    return [f"Perplexity of {', '.join(names)} is an upper bound: the true one is lower."] if names else []


def vocabularies(results: Iterable[Result]) -> dict[str, dict[str, list[str]]]:
    """By data set and vocabulary the models with a perplexity; perplexities of different vocabularies differ anyway."""
    found: dict[str, dict[str, list[str]]] = {}
    for result in results:
        if result.perplexity is not None:
            models = found.setdefault(result.data, {}).setdefault(result.vocabulary, [])
            if result.model not in models:
                models.append(result.model)
    return found


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
    """Seeds, signatures and hardware of the results in a table or figure."""
    draws = {r.model: r.draws for r in results if r.is_baseline and r.draws > 1}
    notes = [seeds_note(results), *(f"Of {name} trees ± is over {count} draws." for name, count in draws.items())]
    signatures: dict[str, dict[str, list[str]]] = {}
    for result in results:
        systems = signatures.setdefault(result.data, {}).setdefault(result.signature or "none written", [])
        if result.model not in systems:
            systems.append(result.model)
    for data, found in signatures.items():
        of_data = "" if len(signatures) == 1 else f" of {data}"
        for signature, systems in found.items():
            # Scores with different signatures cannot be compared, so a reader must see whose they are.
            whose = "" if len(found) == 1 else f" ({', '.join(systems)})"
            notes.append(f"Signature{of_data}{whose}: {signature}.")
    notes += (
        f"Without a parse, and scored as flat trees: {result.not_derived:,} of {result.sentences or 0:,} sentences of "
        f"{result.data} by {result.model}, {result.source if result.members else f'seed {result.source}'}, "
        f"{result.decoder}; "
        f"their numbers are in {result.path}."
        for result in results
        if result.not_derived
    )
    machines = dict.fromkeys(result.machine for result in results if result.machine and not result.is_baseline)
    return [*filter(None, notes), *([f"Hardware: {'; '.join(machines)}."] if machines else [])]


def seeds_note(results: Iterable[Result]) -> str:
    """How many runs are behind the figures, and which seeds."""
    seeds: dict[tuple[str, str], dict[str, None]] = {}
    for result in results:
        if not result.is_baseline:
            seeds.setdefault((result.data, result.model), {})[result.source] = None
    several_data = len({data for data, _ in seeds}) > 1
    alike: dict[tuple[str, ...], list[str]] = {}
    for (data, model), known in seeds.items():
        alike.setdefault(tuple(known), []).append(f"{data} {model}" if several_data else model)
    if not alike:
        return ""
    (usual, systems), *others = sorted(alike.items(), key=lambda item: -len(item[1]))
    each = " each" if len(systems) > 1 else ""
    exceptions = (f"; {_counted(known)} of {', '.join(names)}" for known, names in others)
    deviation = _DEVIATION if any(len(known) > 1 for known in alike) else ""
    return f"{_counted(usual)}{each}{''.join(exceptions)}{deviation}."


_DEVIATION = "; ± is the biased standard deviation over seeds"


def _counted(seeds: Sequence[str]) -> str:
    if seeds[0].startswith("average"):
        return seeds[0]
    return f"{len(seeds)} seed{'s' * (len(seeds) != 1)} ({', '.join(seeds)})"
