"""Reads the TOML file of an experiment, or a preset, into a plan; all mistakes are reported here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from ramify.errors import RamifyError
from ramify.evaluation.baselines import BASELINES, check_baseline
from ramify.lab.plan.experiment import DataSet, Plan, data_sets, planned_average, planned_run
from ramify.lab.plan.toml_file import (
    Names,
    Seed,
    Seeds,
    SettingsTable,
    bundled_files,
    check_known,
    check_name,
    check_table,
    describe_unknown,
    errors_located,
    find_file,
    name_from,
    read_toml,
    split_table,
)
from ramify.lab.results.schema import Group, Run, run_name
from ramify.models import FAMILIES
from ramify.training.settings import Settings, load_settings

MISPLACED_SETTINGS = {
    "seed": "seeds are set for the whole experiment, for a group or for a model, as in seeds = [0, 1]",
    "input": "experiments read trees",
    "column": "experiments read trees",
    "split_sentences": "experiments read trees",
}
"""Settings that an experiment sets in another way, and how."""
FOCUS_SETTINGS = ("teacher_seeds", "focus", "focus_on", "focus_decay")


class ExperimentTable(Struct):
    """The whole file."""

    title: str = ""
    threads: Annotated[int, Meta(ge=1, le=1024)] = 1
    split: Literal["test", "dev"] = "test"
    """The one that is scored"""
    baselines: tuple[str, ...] = tuple(BASELINES)
    seeds: tuple[Seed, ...] = (0,)
    decoders: tuple[str, ...] = ("mbr",)
    settings: SettingsTable = {}
    data: dict[str, Any] = {}
    models: dict[str, Any] = {}
    averages: dict[str, Any] = {}
    group: list[dict[str, Any]] = []


class ModelTable(Struct):
    """A table [models.NAME], besides settings: seeds and decoders instead of the group's, and models to focus on."""

    seeds: tuple[Seed, ...] = ()
    decoders: Names | None = None
    needs: tuple[str, ...] = field(default=(), name="teachers")
    """The models that must be trained before"""
    seeds_needed: tuple[Seed, ...] = field(default=(), name="teacher_seeds")
    """If empty, their own seeds or, if they have none, all seeds of the experiment"""


class AverageTable(Struct):
    """A table [averages.NAME]: the models whose runs are averaged, and how. It is not trained itself."""

    needs: Names = field(name="members")
    seeds_needed: tuple[Seed, ...] = field(default=(), name="seeds")
    leave_out_collapsed: bool = False


class GroupTable(Struct, kw_only=True):
    """A table [[group]]; what it does not set is set by the whole experiment."""

    name: str
    title: str = ""
    data: Names
    models: Names
    seeds: Seeds
    decoders: Names


def presets() -> dict[str, Path]:
    """The experiments that come with the package, by name."""
    return bundled_files("presets")


def find_experiment(text: str) -> Path:
    """The file with this path, or the preset with this name."""
    return find_file(text, "presets", "a preset")


def read_plan(experiment: str | Path, places: Mapping[str, str] | None = None, root: Path | None = None) -> Plan:
    """The plan of an experiment; `places` say where data sets are, `root` is the folder of all others."""
    path = find_experiment(str(experiment))
    where = str(path)
    table = check_table(read_toml(path), ExperimentTable, where)
    with errors_located(f"{where}, baselines"):
        for name in table.baselines:
            check_baseline(name)
    common = _training_settings(table.settings, f"{where}, [settings]")
    base = Path() if path in presets().values() else path.parent
    found = data_sets(table.data, where, base, places or {}, root)
    settings = {name: common | _training_settings(own, f"{where}, [data.{name}]") for name, (_, own) in found.items()}
    models = _models(table, where)
    title = table.title or path.stem
    reader = _Groups(where, table, settings, models)
    entries = table.group or [{"name": name_from(path.stem), "title": title}]
    groups = tuple(reader.group(place, entry) for place, entry in enumerate(entries, start=1))
    _check_groups(where, groups, found, models)
    data = {
        name: DataSet(name, files, str(settings[name].get("words", "auto")), table.split)
        for name, (files, _) in found.items()
    }
    return Plan(path.stem, title, data, groups, table.baselines, table.threads)


def _check_groups(where: str, groups: Sequence[Group], data: Collection[str], models: Collection[str]) -> None:
    """Refuse what no group contains, and runs that wait for others that no group contains."""
    if len({group.name for group in groups}) < len(groups):
        raise RamifyError(f"{where}: two groups have the same name; rename one of them.")
    used = {("data set", name) for group in groups for name in group.data}
    used |= {("model", name) for group in groups for name in group.models}
    for what, name in (*(("data set", name) for name in data), *(("model", name) for name in models)):
        if (what, name) not in used:
            raise RamifyError(f"{where}: no group contains the {what} {name}; add it to one, or remove it.")
    runs = {run.name: run for group in groups for run in group.runs}
    for run in runs.values():
        for other in run.needs:
            if other not in runs:
                raise RamifyError(f"{where}: {run.name} needs {other}, which no group contains; add it to one.")


Models = dict[str, tuple[ModelTable | AverageTable, SettingsTable]]
"""Models and averages by name, with the settings that they have everywhere"""


def _models(table: ExperimentTable, path: str) -> Models:
    found: Models = {}
    for name, content in table.models.items():
        where = f"{path}, [models.{name}]"
        check_name(name, f"{path}, [models]")
        about, rest = split_table(content, ModelTable, where)
        settings = _training_settings(rest, where)
        for key in FOCUS_SETTINGS:
            if key in content and not about.needs:
                raise RamifyError(f"{where}: {key} has no effect without teachers; name them, or leave it out.")
        found[name] = about, settings
    if not found:
        raise RamifyError(f"{path}: names no model; describe one under [models.NAME].")
    for name, content in table.averages.items():
        where = f"{path}, [averages.{name}]"
        check_name(name, f"{path}, [averages]")
        average = check_table(content, AverageTable, where)
        if name in found:
            raise RamifyError(f"{path}: a model and an average are both called {name}; rename one of them.")
        found[name] = average, {}
    _check_teachers(path, found)
    return found


@dataclass(frozen=True)
class _Groups:
    path: str
    table: ExperimentTable
    settings: dict[str, SettingsTable]
    """Of each data set"""
    models: Models

    def group(self, place: int, content: dict[str, Any]) -> Group:
        where = f"{self.path}, [[group]] {place}"
        everything = {"data": [*self.settings], "models": [*self.models]}
        common = {"seeds": self.table.seeds, "decoders": self.table.decoders}
        about = check_table(everything | common | content, GroupTable, where)
        check_name(about.name, where)
        check_known(about.data, self.settings, f"{where}, data")
        check_known(about.models, self.models, f"{where}, models")
        runs = tuple(run for data in about.data for model in about.models for run in self._runs(data, model, about))
        seeds = dict.fromkeys((*about.seeds, *(run.seed for run in runs if run.seed is not None)))
        return Group(about.name, about.title or about.name, about.data, about.models, tuple(seeds), runs)

    def _runs(self, data: str, model: str, group: GroupTable) -> list[Run]:
        about, own = self.models[model]
        others = [
            run_name(data, needed, seed)
            for needed in about.needs
            for seed in about.seeds_needed or getattr(self.models[needed][0], "seeds", ()) or self.table.seeds
        ]
        if isinstance(about, AverageTable):
            return [planned_average(data, model, others, about.leave_out_collapsed)]
        chosen = group.decoders if about.decoders is None else about.decoders
        with errors_located(f"{self.path}, model {model} on {data}"):
            values = self.settings[data] | own
            settings = (_settings(values | {"seed": seed}, chosen, others) for seed in about.seeds or group.seeds)
            return [planned_run(data, model, each, chosen, others) for each in settings]


def _settings(values: SettingsTable, decoders: Sequence[str], teachers: Sequence[str]) -> Settings:
    """The settings of a run, checked; the number of words that its model will know does not matter."""
    import torch

    from ramify.decoding.decoders import DECODERS, check_decoder
    from ramify.runtime.devices import choose_device
    from ramify.runtime.shapes import only_shapes

    settings = load_settings(None, values)
    # An available GPU is not touched, because that would use some of its memory.
    if settings.device != "auto" and not (settings.device.startswith("cuda") and torch.cuda.is_available()):
        choose_device(settings.device)
    with only_shapes():
        grammar = FAMILIES[settings.model](**settings.model_arguments(words=2))
    check_known(decoders, DECODERS, "decoders")
    for decoder in decoders:
        check_decoder(grammar, decoder)
    if teachers and not FAMILIES[settings.model].takes_span_scores:
        raise RamifyError(
            f"{settings.model} cannot learn from teachers, because its loss has no span scores; leave them out."
        )
    return settings


def _check_teachers(where: str, models: Models) -> None:
    """Refuse teachers and members that are not models, and models that would have to be trained before themselves."""
    for name, (about, _) in models.items():
        kind = "member" if isinstance(about, AverageTable) else "teacher"
        for other in about.needs:
            if other not in models:
                raise RamifyError(f"{where}: the {kind} of {name}, {describe_unknown(other, models)}")
            if isinstance(models[other][0], AverageTable):
                raise RamifyError(f"{where}: the {kind} of {name} is {other}, an average; name its members instead.")
    try:
        TopologicalSorter({name: about.needs for name, (about, _) in models.items()}).prepare()
    except CycleError as error:
        raise RamifyError(
            f"{where}: {error.args[1][0]} is one of its own teachers; remove it from the list."
        ) from error


def _training_settings(content: SettingsTable, where: str) -> SettingsTable:
    """Settings by name, with - or _; contradictions are found later, when all settings are known."""
    settings = {name.replace("-", "_"): value for name, value in content.items()}
    if len(settings) < len(content):
        raise RamifyError(f"{where}: a setting is given twice, once with - and once with _; keep one.")
    for name in settings:
        if name in MISPLACED_SETTINGS:
            raise RamifyError(f"{where}: {name} cannot be set here: {MISPLACED_SETTINGS[name]}.")
    check_known(settings, [each.name for each in fields(Settings) if each.name not in MISPLACED_SETTINGS], where)
    return settings
