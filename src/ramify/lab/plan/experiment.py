"""An experiment as it will be run: every data set, run and group, nothing left to be looked up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

from msgspec.structs import replace

from ramify.lab.plan.data_sets import DataSet
from ramify.lab.results.places import RUNS
from ramify.lab.results.schema import FORMAT, Group, PlanRecord, Run, run_name
from ramify.training.settings import Settings
from ramify.version import VERSION


def planned_run(
    data: str, model: str, settings: Settings, decoders: Sequence[str], teachers: Sequence[str] = ()
) -> Run:
    """A model that will be trained."""
    path = f"{RUNS}/{run_name(data, model, settings.seed)}"
    return Run(data, model, settings.seed, tuple(decoders), path, tuple(teachers), settings=asdict(settings))


def planned_average(data: str, model: str, members: Sequence[str], decoders: Sequence[str] = ("mbr",)) -> Run:
    """An average of models that will be trained."""
    path = f"{RUNS}/{run_name(data, model, None)}"
    return Run(data, model, None, tuple(decoders), path, members=tuple(members))


def settings_of(run: Run) -> Settings:
    """The settings of a run that is trained."""
    return Settings(**(run.settings or {}))


@dataclass(frozen=True)
class Plan:
    """A whole experiment."""

    name: str
    title: str
    data: dict[str, DataSet]
    groups: tuple[Group, ...]
    baselines: tuple[str, ...]
    threads: int
    """Of every run; sums depend on it in their last digits, so it belongs to the experiment, not to the machine"""

    @cached_property
    def runs(self) -> dict[str, Run]:
        """By name; one that several groups share is there once. All first seeds come before all second ones."""
        merged: dict[str, Run] = {}
        for run in self._in_order():
            earlier = merged.get(run.name)
            decoders = (*earlier.decoders, *run.decoders) if earlier else run.decoders
            merged[run.name] = replace(run, decoders=tuple(dict.fromkeys(decoders)))
        return merged

    def _in_order(self) -> Iterator[Run]:
        for place in range(max(len(group.seeds) for group in self.groups)):
            for group in self.groups:
                yield from (run for run in group.runs if run.seed in group.seeds[place : place + 1])
        yield from (run for group in self.groups for run in group.runs if run.members)

    def as_record(self) -> PlanRecord:
        """What is written before the first run begins; settings are only with the runs themselves."""
        groups = (replace(g, runs=tuple(replace(run, settings=None) for run in g.runs)) for g in self.groups)
        data = {name: data.as_record() for name, data in self.data.items()}
        return PlanRecord(
            FORMAT,
            self.name,
            self.title,
            VERSION,
            self.threads,
            self.baselines,
            data,
            tuple(groups),
            tuple(self.runs.values()),
        )
