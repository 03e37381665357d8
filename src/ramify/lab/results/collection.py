"""All results of an experiment, and which of them belong together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Literal

from ramify.evaluation.baselines import BASELINES
from ramify.lab.results.schema import Group, Result, Spread, spread

DECODERS = ("mbr", "viterbi")
"""The order in which decoders are shown, others after them; details are those of the first that a run has."""


@dataclass(frozen=True)
class Problem:
    """A run that has no results to show, or not all of them."""

    what: Literal["missing", "half-finished", "failed", "broken"]
    where: str
    why: str


@dataclass(frozen=True)
class TableGroup:
    """Results that stand in one table: the models of each treebank, in the order of the plan."""

    name: str
    title: str
    models: dict[str, list[str]]
    planned: frozenset[tuple[str, str, int | None, str]] | None = None
    """Data, model, seed and decoder; a model may have other runs for the sake of another group. None: all of them"""

    @classmethod
    def of(cls, group: Group) -> TableGroup:
        """A group of a plan."""
        models: dict[str, dict[str, None]] = {}
        for run in group.runs:
            models.setdefault(run.data, {})[run.model] = None
        planned = frozenset((run.data, run.model, run.seed, d) for run in group.runs for d in run.decoders)
        return cls(group.name, group.title, {data: list(names) for data, names in models.items()}, planned)

    def has(self, result: Result) -> bool:
        """Whether a result of one of its models belongs to it."""
        return self.planned is None or (result.data, result.model, result.seed, result.decoder) in self.planned


@dataclass(frozen=True)
class Unit:
    """The models of one group on one treebank, which are drawn together."""

    group: TableGroup
    data: str
    models: list[str]
    title: str
    """The treebank and, where it has several, the group"""
    folded: bool
    """Whether it is of another treebank than the first"""


@dataclass(frozen=True, eq=False)
class Collection:
    """Everything found in a folder."""

    title: str
    groups: list[TableGroup]
    results: list[Result]
    problems: list[Problem] = field(default_factory=list)

    @property
    def datasets(self) -> list[str]:
        """In the order of the groups."""
        return list(dict.fromkeys(data for group in self.groups for data in group.models))

    @cached_property
    def _by_model(self) -> dict[tuple[str, str], list[Result]]:
        found: dict[tuple[str, str], list[Result]] = {}
        for result in self.results:
            if not result.is_baseline:
                found.setdefault((result.data, result.model), []).append(result)
        return found

    def models(self, data: str) -> list[str]:
        """Those in any group, in the order of the groups."""
        return list(dict.fromkeys(model for group in self.groups for model in group.models.get(data, [])))

    def all_of(self, data: str, model: str, group: TableGroup | None = None) -> list[Result]:
        """The results of one model, every seed with every decoder, or those that belong to a group."""
        return [r for r in self._by_model.get((data, model), []) if group is None or group.has(r)]

    def of(self, data: str, model: str, group: TableGroup | None = None) -> list[Result]:
        """The results of one model by seed, with the decoder of which details are shown."""
        found = self.all_of(data, model, group)
        chosen = next(iter(decoders_of(found)), None)
        return sorted((r for r in found if r.decoder == chosen), key=lambda r: (r.seed is None, r.seed or 0))

    def by_model(self, results: Callable[[str, str], list[Result]]) -> dict[tuple[str, str], list[Result]]:
        """What `results` gives for each data set and model; those without any are left out."""
        pairs = ((data, model) for data in self.datasets for model in self.models(data))
        return {pair: found for pair in pairs if (found := results(*pair))}

    def baselines(self, data: str) -> list[Result]:
        """Those of one treebank, in their usual order."""
        found = [r for r in self.results if r.is_baseline and r.data == data]
        order = {name: place for place, name in enumerate(BASELINES)}
        return sorted(found, key=lambda r: (order.get(r.model, len(order)), r.model))

    def on_several(self, group: TableGroup) -> list[str]:
        """The models of a group with results on two treebanks or more."""
        models = dict.fromkeys(model for of in group.models.values() for model in of)
        return [m for m in models if sum(bool(self.of(data, m, group)) for data in group.models) > 1]

    @cached_property
    def style_numbers(self) -> dict[str, int]:
        """A number for each model, the same in all figures, and another one than the models drawn beside it have."""
        together = [*(unit.models for unit in self.units()), *map(self.on_several, self.groups)]
        numbers: dict[str, int] = {}
        for model in (model for models in together for model in models):
            used = {numbers.get(other) for models in together if model in models for other in models}
            numbers.setdefault(model, next(number for number in count() if number not in used))
        return numbers

    def units(self) -> list[Unit]:
        """What is drawn together; left out are units of whose results another unit has all."""
        found = [(group, data, self._drawn(group, data)) for group in self.groups for data in group.models]
        kept: list[tuple[TableGroup, str, set[str]]] = []
        for group, data, results in found:
            larger = any(results < others for _, _, others in found)
            if results and not larger and all(results != others for _, _, others in kept):
                kept.append((group, data, results))
        datasets = [data for _, data, _ in kept]
        return [
            Unit(
                group,
                data,
                [model for model in group.models[data] if self.of(data, model, group)],
                data if datasets.count(data) == 1 else f"{data}, {group.title}",
                data != datasets[0],
            )
            for group, data, _ in kept
        ]

    def units_with(self, details: Callable[[Result], object]) -> Iterator[tuple[Unit, dict[str, list[Result]]]]:
        """What is drawn together, with the runs of each model that have these details; others are left out."""
        for unit in self.units():
            runs = {m: [r for r in self.of(unit.data, m, unit.group) if details(r)] for m in unit.models}
            found = {m: of for m, of in runs.items() if of}
            if found:
                yield unit, found

    def _drawn(self, group: TableGroup, data: str) -> set[str]:
        """The results of which details of a group are shown, by their files."""
        return {result.path for model in group.models[data] for result in self.of(data, model, group)}


def decoders_of(results: Iterable[Result]) -> list[str]:
    """The decoders of these results, MBR first."""
    names = {r.decoder for r in results}
    return [*(d for d in DECODERS if d in names), *sorted(names.difference(DECODERS))]


def choose_run(runs: Sequence[Result]) -> Result:
    """The run with the best dev likelihood, which needs no trees; without likelihoods the first."""
    return min(runs, key=lambda r: float("inf") if r.dev_perplexity is None else r.dev_perplexity)


def perplexity_of(results: Iterable[Result], with_spelling: bool = False) -> Spread | None:
    """Over the seeds, whichever decoder their results are of; None if it is infinite, or not known, of one of them."""
    by_seed: dict[int | None, float | None] = {}
    for result in results:
        found = result.perplexity_with_spelling if with_spelling else result.perplexity
        by_seed[result.seed] = found or by_seed.get(result.seed)
    return None if None in by_seed.values() else spread(by_seed.values())
