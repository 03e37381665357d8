"""What an experiment left, as the report sees it: checked results, the groups they stand in, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from statistics import fmean, pstdev
from typing import Literal

from ramify.evaluation.baselines import BASELINES

DECODERS = ("mbr", "viterbi")
"""The order in which decoders are shown, others behind; details are told of the first that a run has."""

Setting = str | int | float | bool | None


@dataclass(frozen=True)
class LengthScore:
    """S-F1 of the sentences of one range of lengths."""

    f1: float
    sentences: int


@dataclass(frozen=True)
class LabelScore:
    """How much of one gold category is bracketed, in percent, and how often it occurs."""

    recall: float
    constituents: int
    share: float
    mean_length: float


@dataclass(frozen=True)
class Subtype:
    """A nonterminal that stands for part of a gold label's constituents, and the words these begin with."""

    nonterminal: str
    count: int
    share: float | None
    first_words: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Induced:
    """What the induced nonterminals have to do with gold labels, counted over correctly predicted constituents."""

    usage: dict[str, int]
    alignment: dict[str, dict[str, int]]
    """gold label: nonterminal: constituents"""
    subtypes: dict[str, tuple[Subtype, ...]]


@dataclass(frozen=True)
class Epoch:
    """One line of a run's metrics."""

    number: int
    train_perplexity: float | None
    dev_perplexity: float | None
    dev_f1: float | None
    seconds: float | None


@dataclass(frozen=True)
class Result:
    """One system with one decoder on one treebank."""

    data: str
    model: str
    """Of a baseline its name"""
    seed: int | None
    decoder: str
    is_baseline: bool
    f1: float
    corpus_f1: float | None
    f1_by_convention: dict[str, float]
    draws: int
    """Of how many draws f1 is the mean, as of random trees; 1 for all others"""
    f1_std: float | None
    f1_max: float | None
    """Over these draws"""
    sentences: int | None
    perplexity: float | None
    by_length: dict[str, LengthScore]
    by_label: dict[str, LabelScore]
    signature: str
    induced: Induced | None
    settings: dict[str, Setting]
    epochs: tuple[Epoch, ...]
    seconds_per_epoch: float | None
    parameters: int | None
    memory_mb: float | None
    machine: str
    """Processor, threads and what else was written of the hardware, in words"""
    path: str
    """Below the folder of runs"""

    @property
    def dev_perplexity(self) -> float | None:
        """Of the best epoch, by which a run is chosen without looking at trees."""
        return min((e.dev_perplexity for e in self.epochs if e.dev_perplexity is not None), default=None)


Trouble = Literal["missing", "half-finished", "failed", "broken"]


@dataclass(frozen=True)
class Problem:
    """A run that has no results to show, or not all of them."""

    what: Trouble
    where: str
    why: str


@dataclass(frozen=True)
class Group:
    """Runs that stand in one table: the models of each treebank, in the order of the plan."""

    name: str
    title: str
    models: dict[str, list[str]]
    decoders: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    """Those the plan names for this group; a model may have others for the sake of another group. None: all"""

    def has(self, result: Result) -> bool:
        """Whether a result of one of its models is of its decoders and seeds."""
        by_decoder = not self.decoders or result.decoder in self.decoders
        return by_decoder and (not self.seeds or result.seed in self.seeds)


@dataclass(frozen=True)
class Unit:
    """The models of one group on one treebank."""

    group: Group
    data: str
    models: list[str]
    title: str
    """The treebank and, where it has several, the group"""
    folded: bool
    """Whether it is of another treebank than the first"""


@dataclass(frozen=True, eq=False)
class Runs:
    """Everything found in a folder."""

    title: str
    groups: list[Group]
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

    def all_of(self, data: str, model: str) -> list[Result]:
        """The runs of one model, every seed with every decoder."""
        return self._by_model.get((data, model), [])

    def of(self, data: str, model: str, decoder: str | None = None) -> list[Result]:
        """The runs of one model by seed, with one decoder or that of which details are told."""
        found = self.all_of(data, model)
        chosen = decoder or next(iter(decoders_of(found)), None)
        return sorted((r for r in found if r.decoder == chosen), key=lambda r: (r.seed is None, r.seed or 0))

    def baselines(self, data: str) -> list[Result]:
        """Those of one treebank, in their usual order."""
        found = [r for r in self.results if r.is_baseline and r.data == data]
        order = {name: place for place, name in enumerate(BASELINES)}
        return sorted(found, key=lambda r: (order.get(r.model, len(order)), r.model))

    @property
    def on_several(self) -> list[str]:
        """The models with results on two treebanks or more."""
        everywhere = dict.fromkeys(model for data in self.datasets for model in self.models(data))
        return [model for model in everywhere if sum(bool(self.of(data, model)) for data in self.datasets) > 1]

    @cached_property
    def looks(self) -> dict[str, int]:
        """A number for each model, the same in all figures, and another one than the models drawn beside it have."""
        together = [*(unit.models for unit in self.units()), self.on_several]
        numbers: dict[str, int] = {}
        for model in (model for models in together for model in models):
            taken = {numbers.get(other) for models in together if model in models for other in models}
            numbers.setdefault(model, next(number for number in count() if number not in taken))
        return numbers

    def units(self) -> list[Unit]:
        """What is drawn together: the models with results of one group on one treebank.

        Left out are those of which another group has all, with others beside them.
        """
        found = [
            (group, data, with_results)
            for group in self.groups
            for data, models in group.models.items()
            if (with_results := [model for model in models if self.of(data, model)])
        ]
        kept: list[tuple[Group, str, list[str]]] = []
        for group, data, models in found:
            larger = any(set(models) < set(others) for _, d, others in found if d == data)
            if not larger and all(set(models) != set(others) for _, d, others in kept if d == data):
                kept.append((group, data, models))
        datasets = [data for _, data, _ in kept]
        return [
            Unit(
                group,
                data,
                models,
                data if datasets.count(data) == 1 else f"{data}, {group.title}",
                data != datasets[0],
            )
            for group, data, models in kept
        ]


def decoders_of(results: Iterable[Result]) -> list[str]:
    """The decoders of these results, MBR first."""
    names = {r.decoder for r in results}
    return [*(d for d in DECODERS if d in names), *sorted(names.difference(DECODERS))]


def chosen_run(runs: Sequence[Result]) -> Result:
    """The one with the best dev likelihood, as nobody without trees could choose better; else the first."""
    return min(runs, key=lambda r: float("inf") if r.dev_perplexity is None else r.dev_perplexity)


@dataclass(frozen=True)
class Spread:
    """Mean, biased standard deviation (divided by the number of runs) and maximum."""

    mean: float
    std: float | None
    """None of a single run"""
    best: float
    runs: int


def spread(values: Iterable[float | None]) -> Spread | None:
    """Of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Spread(fmean(known), pstdev(known) if len(known) > 1 else None, max(known), len(known))
