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

COMPOUND = ("c-pcfg", "sc-pcfg")

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
    dev_perplexity: float | None
    dev_f1: float | None


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
    not_derived: int | None
    """Sentences without a parse, which are scored as flat trees"""
    perplexity: float | None
    perplexity_with_spelling: float | None
    perplexity_signature: str
    """Which words are known, and the rate of those that are not; '' in results of before it was written"""
    unknown: int | None
    """Words of the text that are not in the vocabulary"""
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
    members: int = 0
    """Of an average, how many models it is of"""
    agreement: dict[str, dict[str, float]] | None = None
    """Of an average: S-F1 of each member, and of the average, with the others and with left and right branching"""

    @property
    def source(self) -> str:
        """Where a run came from: its seed, or that it is an average."""
        if self.members:
            return f"average of {self.members}"
        return "unknown" if self.seed is None else str(self.seed)

    @property
    def spread(self) -> Spread:
        """Of its draws."""
        return Spread(self.f1, self.f1_std, self.f1_max or self.f1)

    @property
    def is_bound(self) -> bool:
        """Whether its perplexity is not exact: that of a compound grammar is at most so much."""
        return self.settings.get("compound") is True or self.settings.get("model") in COMPOUND

    @property
    def vocabulary(self) -> str:
        """Perplexities can be compared where this is the same."""
        if self.unknown == 0:
            return "no unknown words"
        return self.perplexity_signature or f"vocabulary of at most {self.settings.get('vocabulary', '?')} words"

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
    planned: frozenset[tuple[str, str, int | None, str]] | None = None
    """Data, model, seed and decoder; a model may have other runs for the sake of another group. None: all of them"""

    def has(self, result: Result) -> bool:
        """Whether a result of one of its models belongs to it."""
        return self.planned is None or (result.data, result.model, result.seed, result.decoder) in self.planned


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

    def all_of(self, data: str, model: str, group: Group | None = None) -> list[Result]:
        """The runs of one model, every seed with every decoder, or those that belong to a group."""
        return [r for r in self._by_model.get((data, model), []) if group is None or group.has(r)]

    def of(self, data: str, model: str, group: Group | None = None) -> list[Result]:
        """The runs of one model by seed, with the decoder of which details are told."""
        found = self.all_of(data, model, group)
        chosen = next(iter(decoders_of(found)), None)
        return sorted((r for r in found if r.decoder == chosen), key=lambda r: (r.seed is None, r.seed or 0))

    def baselines(self, data: str) -> list[Result]:
        """Those of one treebank, in their usual order."""
        found = [r for r in self.results if r.is_baseline and r.data == data]
        order = {name: place for place, name in enumerate(BASELINES)}
        return sorted(found, key=lambda r: (order.get(r.model, len(order)), r.model))

    def on_several(self, group: Group) -> list[str]:
        """The models of a group with results on two treebanks or more."""
        models = dict.fromkeys(model for of in group.models.values() for model in of)
        return [m for m in models if sum(bool(self.of(data, m, group)) for data in group.models) > 1]

    @cached_property
    def looks(self) -> dict[str, int]:
        """A number for each model, the same in all figures, and another one than the models drawn beside it have."""
        together = [*(unit.models for unit in self.units()), *map(self.on_several, self.groups)]
        numbers: dict[str, int] = {}
        for model in (model for models in together for model in models):
            taken = {numbers.get(other) for models in together if model in models for other in models}
            numbers.setdefault(model, next(number for number in count() if number not in taken))
        return numbers

    def units(self) -> list[Unit]:
        """What is drawn together: the models with results of one group on one treebank.

        Left out are those of whose results another group has all.
        """
        found = [(group, data, self._drawn(group, data)) for group in self.groups for data in group.models]
        kept: list[tuple[Group, str, set[str]]] = []
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

    def _drawn(self, group: Group, data: str) -> set[str]:
        """The results of which details of a group are told, by their files."""
        return {result.path for model in group.models[data] for result in self.of(data, model, group)}


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


def spread(values: Iterable[float | None]) -> Spread | None:
    """Of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Spread(fmean(known), pstdev(known) if len(known) > 1 else None, max(known))


def perplexity_of(results: Iterable[Result], with_spelling: bool = False) -> Spread | None:
    """Over the seeds, whichever decoder their results are of; None if it is infinite, or not known, of one of them."""
    by_seed: dict[int | None, float | None] = {}
    for result in results:
        found = result.perplexity_with_spelling if with_spelling else result.perplexity
        by_seed[result.seed] = found or by_seed.get(result.seed)
    return None if None in by_seed.values() else spread(by_seed.values())
