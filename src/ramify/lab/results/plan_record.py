"""The plan of an experiment, as far as a report needs it: the groups, the runs and the baselines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ramify.lab.results.collection import Group
from ramify.lab.results.schema import BadRecordError, named, seed_of

PLAN = "experiment.json"


@dataclass(frozen=True)
class Plan:
    """What there should be."""

    title: str
    groups: list[Group]
    runs: dict[str, list[str]]
    """The folder of each run below that of the experiment, as written, and its decoders"""
    baselines: list[tuple[str, str]]
    """Treebank and name"""


def no_plan() -> Plan:
    """Of a folder that has none."""
    return Plan("", [], {}, [])


def plan_of(record: Any) -> Plan:
    """The plan in a file; entries that are none are passed over."""
    if not isinstance(record, dict):
        raise BadRecordError("is no plan of an experiment")
    entries = list(_dicts(record.get("groups")))
    groups = [_group(entry, f"group {number}") for number, entry in enumerate(entries, 1)]
    runs: dict[str, list[str]] = {}
    for run in (run for entry in entries for run in _dicts(entry.get("runs"))):
        parts = ("runs", run.get("data"), run.get("model"), f"seed-{run.get('seed')}")
        decoders = runs.setdefault(str(run.get("path") or "/".join(map(str, parts))), [])
        decoders += [decoder for decoder in _names(run.get("decoders")) if decoder not in decoders]
    datasets = dict.fromkeys(data for group in groups for data in group.models)
    baselines = [(data, baseline) for data in datasets for baseline in _names(record.get("baselines"))]
    return Plan(named(record.get("title") or record.get("name")), groups, runs, baselines)


def _group(entry: dict[str, Any], otherwise: str) -> Group:
    models: dict[str, list[str]] = {}
    planned: set[tuple[str, str, int | None, str]] = set()
    for run in _dicts(entry.get("runs")):
        data, model = named(run.get("data")), named(run.get("model"))
        if data and model and model not in models.setdefault(data, []):
            models[data].append(model)
        planned |= {(data, model, seed_of(run.get("seed")), decoder) for decoder in _names(run.get("decoders"))}
    called = named(entry.get("name")) or otherwise
    return Group(called, named(entry.get("title")) or called, models, frozenset(planned) or None)


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    return (entry for entry in value if isinstance(entry, dict)) if isinstance(value, list) else iter(())


def _names(value: Any) -> list[str]:
    return [named(each) for each in value if isinstance(each, str)] if isinstance(value, list) else []
