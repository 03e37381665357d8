"""All results in the folder of an experiment, finished or not, and which of them belong together."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Literal

from ramify.errors import RamifyError
from ramify.evaluation.baselines import BASELINES as BASELINE_NAMES
from ramify.lab.results.schema import (
    BASELINES,
    CONFIG,
    FAILED,
    FORMAT,
    METRICS,
    PLAN,
    RESULTS,
    Failure,
    Group,
    PlanRecord,
    RecordError,
    Result,
    Spread,
    grouped,
    one_line,
    read_record,
    read_result,
    spread,
)

DECODERS = ("mbr", "viterbi")
"""The order in which decoders are shown, others after them; details are those of the first that a run has."""

ByModel = dict[str, list[Result]]
"""By model its results, every seed with every decoder; or by model the runs of which details are shown"""


@dataclass(frozen=True)
class Problem:
    """A run that has no results to show, or not all of them."""

    what: Literal["missing", "half-finished", "failed", "broken"]
    where: str
    why: str


@dataclass(frozen=True)
class ResultGroup:
    """What one table shows."""

    name: str
    title: str
    results: dict[str, ByModel]
    """By data set the results of each model; one may have no models, but baselines"""

    def on_several(self) -> list[str]:
        """The models with results on two treebanks or more."""
        has_results = grouped((model, bool(of)) for models in self.results.values() for model, of in models.items())
        return [model for model, on in has_results.items() if sum(on) > 1]


@dataclass(frozen=True)
class Unit:
    """The models of one group on one treebank, which are drawn together."""

    group: ResultGroup
    data: str
    models: ByModel
    """The runs of which details are shown"""
    title: str
    """The treebank and, where it has several, the group"""
    folded: bool
    """Whether it is of another treebank than the first"""


@dataclass(frozen=True, eq=False)
class Collection:
    """Everything found in a folder."""

    title: str
    groups: list[ResultGroup]
    results: list[Result]
    problems: list[Problem] = field(default_factory=list)

    @property
    def datasets(self) -> list[str]:
        """In the order of the groups."""
        return list(dict.fromkeys(data for group in self.groups for data in group.results))

    @cached_property
    def by_model(self) -> dict[tuple[str, str], list[Result]]:
        """All results of each model in any group, by data set and model in the order of the groups."""
        found = grouped(((r.data, r.model), r) for r in self.results if not r.is_baseline)
        pairs = [
            (data, model) for data in self.datasets for group in self.groups for model in group.results.get(data, ())
        ]
        return {pair: found[pair] for pair in pairs if pair in found}

    def by_model_with(self, details: Callable[[Result], object]) -> dict[tuple[str, str], list[Result]]:
        """The runs of each model that have these details; models without any are left out."""
        found = {pair: [r for r in with_details(of) if details(r)] for pair, of in self.by_model.items()}
        return {pair: of for pair, of in found.items() if of}

    def baselines(self, data: str) -> list[Result]:
        """Those of one treebank, in their usual order."""
        found = [r for r in self.results if r.is_baseline and r.data == data]
        order = {name: place for place, name in enumerate(BASELINE_NAMES)}
        return sorted(found, key=lambda r: (order.get(r.model, len(order)), r.model))

    @cached_property
    def style_numbers(self) -> dict[str, int]:
        """A number for each model: the same in all figures, and another one than those of models in the same figure."""
        together = [*(unit.models for unit in self.units()), *(group.on_several() for group in self.groups)]
        numbers: dict[str, int] = {}
        for model in (model for models in together for model in models):
            used = {numbers.get(other) for models in together if model in models for other in models}
            numbers.setdefault(model, next(number for number in count() if number not in used))
        return numbers

    def units(self) -> list[Unit]:
        """What is drawn together, without units whose results all belong to another unit."""
        found = [
            (group, data, {model: runs for model, of in models.items() if (runs := with_details(of))})
            for group in self.groups
            for data, models in group.results.items()
        ]
        paths = [frozenset(r.path for runs in models.values() for r in runs) for _, _, models in found]
        kept: dict[frozenset[str], tuple[ResultGroup, str, ByModel]] = {}
        for results, unit in zip(paths, found, strict=True):
            if results and not any(results < others for others in paths):
                kept.setdefault(results, unit)
        datasets = [data for _, data, _ in kept.values()]
        return [
            Unit(
                group,
                data,
                models,
                data if datasets.count(data) == 1 else f"{data}, {group.title}",
                data != datasets[0],
            )
            for group, data, models in kept.values()
        ]

    def units_with(self, details: Callable[[Result], object]) -> Iterator[tuple[Unit, ByModel]]:
        """What is drawn together, with the runs of each model that have these details; others are left out."""
        for unit in self.units():
            found = {m: of for m, runs in unit.models.items() if (of := [r for r in runs if details(r)])}
            if found:
                yield unit, found


def with_details(results: Sequence[Result]) -> list[Result]:
    """The results of a model by seed, with the decoder of which details are shown."""
    chosen = next(iter(decoders_of(results)), None)
    return sorted((r for r in results if r.decoder == chosen), key=lambda r: (r.seed is None, r.seed or 0))


def decoders_of(results: Iterable[Result]) -> list[str]:
    """The decoders of these results, MBR first."""
    names = {r.decoder for r in results}
    return [*(d for d in DECODERS if d in names), *sorted(names.difference(DECODERS))]


def choose_run(runs: Sequence[Result]) -> Result:
    """The run with the best dev likelihood, which needs no trees; without likelihoods the first."""
    return min(runs, key=lambda r: float("inf") if r.dev_perplexity is None else r.dev_perplexity)


def perplexity_of(results: Iterable[Result], with_spelling: bool = False) -> Spread | None:
    """Over the seeds, by any decoder; None if it is infinite or unknown for one of them."""
    by_seed: dict[int | None, float | None] = {}
    for result in results:
        found = result.perplexity_with_spelling if with_spelling else result.perplexity
        by_seed[result.seed] = found or by_seed.get(result.seed)
    return None if None in by_seed.values() else spread(by_seed.values())


def collect_results(folder: Path) -> Collection:
    """The results below `folder`, by the plan of its experiment or, without one, whatever is found."""
    if not folder.is_dir():
        raise RamifyError(f"{folder}: is not a folder; give the one that `ramify experiment` wrote into.")
    problems: list[Problem] = []
    plan = PlanRecord(FORMAT, "", folder.resolve().name, "", 1, (), {}, (), ())
    if (folder / PLAN).exists():
        try:
            plan = read_record(folder / PLAN, PlanRecord)
        except RecordError as error:
            problems.append(Problem("broken", PLAN, f"{error.why}; the folder is searched instead"))
    results: dict[tuple[object, ...], Result] = {}
    for path in _result_files(folder, plan):
        try:
            result = read_result(path, folder)
        except RecordError as error:
            problems.append(Problem("broken", one_line(path.relative_to(folder).as_posix()), error.why))
            continue
        first = results.setdefault((result.data, result.model, result.seed, result.decoder, result.kind), result)
        if first is not result:  # it would count twice
            problems.append(Problem("broken", result.path, f"is of the same run as {first.path}; left out"))
    found = list(results.values())
    problems += _unfinished(folder, plan, found, {problem.where for problem in problems})
    if not found and not problems:
        raise RamifyError(f"{folder}: has no results; run `ramify experiment` first.")
    planned = (_results_of(group, found) for group in plan.groups)
    groups = [group for group in (*planned, *_unplanned(plan, found)) if group.results]
    problems.sort(key=lambda problem: (problem.what, problem.where))
    return Collection(plan.title or "Runs", groups, found, problems)


def _result_files(folder: Path, plan: PlanRecord) -> list[Path]:
    """In natural order: seed-10 after seed-9."""
    found = {path for path in folder.rglob(f"{BASELINES}/*/*.json") if not (path.parent / CONFIG).exists()}
    found.update(folder.rglob(f"{RESULTS}/*.json"))
    for run in plan.runs:  # whose folder may be a link, which a search does not follow
        place = folder / run.path / RESULTS
        found.update(place.glob("*.json") if os.path.isdir(place) else ())  # noqa: PTH112
    return sorted((path for path in found if not path.name.startswith(".") and path.name != FAILED), key=_natural)


def _natural(path: Path) -> list[tuple[int, str]]:
    parts = re.split(r"([0-9]+)", str(path))
    return [(int(part[:9]), "") if part.isdecimal() else (-1, part) for part in parts if part]


def _results_of(group: Group, results: list[Result]) -> ResultGroup:
    """A group of the plan; a model may have further results for the sake of another group."""
    planned = {(run.data, run.model, run.seed, decoder) for run in group.runs for decoder in run.decoders}
    models = [r for r in results if not r.is_baseline and (r.data, r.model, r.seed, r.decoder) in planned]
    found = grouped(((r.data, r.model), r) for r in models)
    by_data: dict[str, ByModel] = {data: {} for data in group.data}
    for run in group.runs:
        by_data.setdefault(run.data, {})[run.model] = found.get((run.data, run.model), [])
    return ResultGroup(group.name, group.title, by_data)


def _unplanned(plan: PlanRecord, results: list[Result]) -> Iterator[ResultGroup]:
    """The results that no group of the plan has; without a plan, all."""
    planned = {(run.data, run.model) for group in plan.groups for run in group.runs}
    others = [r for r in results if not r.is_baseline and (r.data, r.model) not in planned]
    shown = {data for group in plan.groups for data in (*group.data, *(run.data for run in group.runs))}
    # A data set may have results of baselines alone.
    shown -= {r.data for r in others}
    by_data: dict[str, ByModel] = {r.data: {} for r in results if r.data not in shown}
    for result in others:
        by_data[result.data].setdefault(result.model, []).append(result)
    if by_data:
        yield ResultGroup("others", "Other runs" if plan.groups else "All runs", by_data)


def _unfinished(folder: Path, plan: PlanRecord, results: list[Result], broken: set[str]) -> Iterator[Problem]:
    """Planned runs and baselines without results, and folders of runs that failed or stopped."""
    present = {result.path for result in results} | broken
    started = {str(Path(path).parent.parent) for path in present}
    for run in plan.runs:
        lacking = [decoder for decoder in run.decoders if f"{run.path}/{RESULTS}/{decoder}.json" not in present]
        if run.path not in started or lacking:
            yield _state(folder / run.path, run.path, lacking if run.path in started else [])
    failed = {path.parent.name for path in folder.glob(f"{BASELINES}/*/{FAILED}")}  # which is reported below
    for data in plan.data.keys() - failed:
        for file in (f"{BASELINES}/{data}/{name}.json" for name in plan.baselines):
            if file not in present:
                yield Problem("missing", file, "was not scored")
    stopped = dict.fromkeys(path.parent for name in (FAILED, METRICS) for path in sorted(folder.rglob(name)))
    for path in stopped:
        where = one_line(path.relative_to(folder).as_posix())
        if where not in started and all(where != run.path for run in plan.runs):
            yield _state(path, where, [])


def _state(run: Path, where: str, lacking: list[str]) -> Problem:
    # The functions of `os.path`, unlike the methods of a Path, accept a folder that cannot be read.
    if os.path.isfile(run / FAILED):  # noqa: PTH113
        try:
            return Problem("failed", where, read_record(run / FAILED, Failure).error)
        except RecordError as error:
            return Problem("failed", where, f"for an unknown reason: {FAILED} {error.why}")
    if lacking:
        return Problem("half-finished", where, f"no results by {', '.join(lacking)} yet")
    if not os.path.isdir(run):  # noqa: PTH112
        return Problem("missing", where, "was not begun")
    try:
        epochs = (run / METRICS).read_bytes().count(b"\n") if (run / METRICS).is_file() else 0
    except OSError:
        epochs = 0
    trained = f"after {epochs} epoch{'s' * (epochs != 1)} of training" if epochs else "before the end of an epoch"
    return Problem("half-finished", where, f"stopped {trained}, or still runs: no results yet")
