"""From a TOML file, or a preset's name, to a plan; everything that can be refused is refused here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import Any

from ramify.errors import RamifyError
from ramify.evaluation.baselines import BASELINES, check_baseline
from ramify.lab.plan.data_sets import data_sets
from ramify.lab.plan.experiment import DataSet, Group, Plan, Run, run_name
from ramify.lab.plan.toml_tables import Table, check_name, name_from, read_toml, unknown
from ramify.models import FAMILIES
from ramify.training.settings import Settings, load_settings

MOST_THREADS = 1024
NOT_THERE = {
    "seed": "seeds are told for the whole experiment or for a group, as in seeds = [0, 1]",
    "input": "experiments read trees",
    "split_sentences": "experiments read trees",
}
"""Settings that an experiment decides otherwise."""


def presets() -> dict[str, Path]:
    """The experiments that come with the package, by name."""
    folder = Path(str(resources.files("ramify.lab.plan") / "presets"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def find_experiment(text: str) -> Path:
    """The file that is meant: its path, or the name of a preset."""
    path = Path(text)
    if path.is_file():
        return path
    known = presets()
    if text in known:
        return known[text]
    if path.suffix == ".toml":
        raise RamifyError(f"{text}: there is no such file; check the name.")
    raise RamifyError(f"{text}: is no TOML file and no preset; presets are {', '.join(known)}.")


def read_plan(experiment: str | Path, places: Mapping[str, str] | None = None, root: Path | None = None) -> Plan:
    """The plan of an experiment; `places` tell where data sets are, `root` is the folder of all others."""
    path = find_experiment(str(experiment))
    content = Table(str(path), read_toml(path))
    title = content.text("title", path.stem)
    threads = content.number("threads", 1, 1, MOST_THREADS)
    baselines = content.listed("baselines", BASELINES, str, check_baseline)
    common = _Common(
        _settings_table(content.table("settings"), f"{path}, [settings]"),
        content.listed("seeds", [0], int, check_seed),
        content.listed("decoders", ["mbr"], str, _check_decoder),
    )
    base = Path() if path in presets().values() else path.parent
    data, of_data = data_sets(content.table("data"), str(path), base, places or {}, root)
    of_data = {name: _settings_table(table, f"{path}, [data.{name}]") for name, table in of_data.items()}
    models = {name: _Model.read(name, table, str(path)) for name, table in content.table("models").items()}
    if not models:
        raise RamifyError(f"{path}: there is no model; describe one under [models.NAME].")
    for name, table in content.table("averages").items():
        if name in models:
            raise RamifyError(f"{path}: {name} is a model and an average; give one of them another name.")
        models[name] = _Model.read_average(name, table, str(path))
    _check_others(str(path), models)
    groups = content.tables("group") or [{"name": name_from(path.stem), "title": title}]
    content.finish()
    reader = _Groups(path, common, of_data, models)
    found = tuple(reader.read(place, group) for place, group in enumerate(groups, start=1))
    names = [group.name for group in found]
    if len(set(names)) < len(names):
        raise RamifyError(f"{path}: two groups have one name; give each its own.")
    _check_all_used(str(path), "data set", data, {name for group in found for name in group.data})
    _check_all_used(str(path), "model", models, {name for group in found for name in group.models})
    _check_needs(str(path), found)
    words = {name: str((common.settings | of_data[name]).get("words", "auto")) for name in data}
    sets = {name: DataSet(name, files, words[name]) for name, files in data.items()}
    return Plan(path.stem, title, sets, found, tuple(baselines), threads)


def _check_all_used(where: str, what: str, known: Collection[str], used: set[str]) -> None:
    for name in known:
        if name not in used:
            raise RamifyError(f"{where}: the {what} {name} is in no group; add it to one, or leave it out.")


@dataclass(frozen=True)
class _Common:
    settings: dict[str, Any]
    seeds: list[int]
    decoders: list[str]


@dataclass(frozen=True)
class _Model:
    settings: dict[str, Any]
    decoders: list[str] | None
    """Its own, instead of the group's"""
    teachers: list[str] = field(default_factory=list)
    """The models on whose runs, from every seed, its training is focused"""
    members: list[str] = field(default_factory=list)
    """The models whose runs, from every seed, are averaged; it is then not trained itself"""
    seeds: list[int] | None = None
    """Of teachers or members; None for all seeds of the experiment"""

    @classmethod
    def read(cls, name: str, content: object, path: str) -> _Model:
        check_name(name, f"{path}, [models]")
        where = f"{path}, [models.{name}]"
        table = Table(where, content)
        own = table.listed("decoders", [], str, _check_decoder) if "decoders" in table else None
        teachers = table.listed("teachers", [], str, lambda _: None)
        seeds = table.listed("teacher_seeds", [], int, check_seed) or None
        if seeds and not teachers:
            raise RamifyError(f"{where}: teacher_seeds goes with teachers; name them.")
        settings = _settings_table(table.rest(), where)
        for setting in ("focus", "focus_on", "focus_decay"):
            if setting in settings and not teachers:
                raise RamifyError(f"{where}: {setting} goes with teachers; name them.")
        return cls(settings, own, teachers, seeds=seeds)

    @classmethod
    def read_average(cls, name: str, content: object, path: str) -> _Model:
        check_name(name, f"{path}, [averages]")
        table = Table(f"{path}, [averages.{name}]", content)
        members = table.listed("members", [], str, lambda _: None)
        seeds = table.listed("seeds", [], int, check_seed) or None
        table.finish()
        if not members:
            raise RamifyError(f"{table.where}: has no members; name the models to average.")
        return cls({}, ["mbr"], members=members, seeds=seeds)

    def needs(self) -> list[str]:
        """The models that must be trained before."""
        return self.teachers + self.members


@dataclass(frozen=True)
class _Groups:
    path: Path
    common: _Common
    of_data: dict[str, dict[str, Any]]
    models: dict[str, _Model]

    def read(self, place: int, content: object) -> Group:
        table = Table(f"{self.path}, [[group]] {place}", content)
        name = table.text("name", "")
        if not name:
            raise RamifyError(f"{table.where}: has no name; give it one.")
        check_name(name, table.where)
        title = table.text("title", name)
        data = table.chosen("data", self.of_data)
        models = table.chosen("models", self.models)
        seeds = table.listed("seeds", self.common.seeds, int, check_seed)
        decoders = table.listed("decoders", self.common.decoders, str, _check_decoder)
        table.finish()
        for key, value in (("data", data), ("models", models), ("seeds", seeds), ("decoders", decoders)):
            if not value:
                raise RamifyError(f"{table.where}: {key} is empty; name at least one.")
        runs = tuple(
            self._run(d, m, seed, decoders)
            for d in data
            for m in models
            for seed in ([None] if self.models[m].members else seeds)
        )
        return Group(name, title, tuple(data), tuple(models), tuple(seeds), runs)

    def _run(self, data: str, model: str, seed: int | None, decoders: Sequence[str]) -> Run:
        about = self.models[model]
        decoders = decoders if about.decoders is None else about.decoders
        others = tuple(run_name(data, m, s) for m in about.needs() for s in about.seeds or self.common.seeds)
        if about.members:
            return Run(data, model, None, tuple(decoders), members=others)
        given = self.common.settings | self.of_data[data] | about.settings | {"seed": seed}
        try:
            settings = load_settings(None, given)
            _check_device(settings.device)
            _check_decoders(settings, decoders)
            if others and not FAMILIES[settings.model].takes_span_scores:
                raise RamifyError(f"{settings.model} cannot be focused: its loss takes no span scores.")
        except RamifyError as error:
            raise RamifyError(f"{self.path}, model {model} on {data}: {error}") from error
        return Run(data, model, settings, tuple(decoders), teachers=others)


def _check_others(where: str, models: Mapping[str, _Model]) -> None:
    """Refuse teachers and members that are not models, and models that would have to be trained before themselves."""
    for name, about in models.items():
        kind = "teacher" if about.teachers else "member"
        for other in about.needs():
            if other not in models:
                raise RamifyError(f"{where}: the {kind} of {name}, {unknown(other, models)}")
            if models[other].members:
                raise RamifyError(f"{where}: the {kind} of {name} is {other}, an average; name its members instead.")
        reached, ahead = set[str](), list(about.needs())
        while ahead:
            other = ahead.pop()
            if other == name:
                raise RamifyError(f"{where}: {name} is among its own teachers; leave it out there.")
            if other not in reached:
                reached.add(other)
                ahead += models[other].needs()


def _check_needs(where: str, groups: Sequence[Group]) -> None:
    """Refuse runs that wait for others that no group has."""
    runs = {run.name: run for group in groups for run in group.runs}
    for run in runs.values():
        for other in run.needs:
            if other not in runs:
                raise RamifyError(f"{where}: {run.name} needs {other}, which is in no group; add it to one.")


def _settings_table(content: dict[str, Any], where: str) -> dict[str, Any]:
    """Settings by their names, - as good as _; whether they go together is seen when all are known."""
    known = [setting.name for setting in fields(Settings) if setting.name not in NOT_THERE]
    settings = {name.replace("-", "_"): value for name, value in content.items()}
    if len(settings) < len(content):
        raise RamifyError(f"{where}: a setting stands there twice, once with - and once with _; keep one.")
    for name in settings:
        if name in NOT_THERE:
            raise RamifyError(f"{where}: {name} cannot be set here: {NOT_THERE[name]}.")
        if name not in known:
            raise RamifyError(f"{where}: {unknown(name, known)}")
    return settings


def _check_device(name: str) -> None:
    """Whether there is such a device; a GPU that is there is not touched, as that would take memory of it."""
    import torch

    from ramify.runtime.devices import chosen_device

    if name != "auto" and not (name.startswith("cuda") and torch.cuda.is_available()):
        chosen_device(name)


def check_seed(seed: int) -> None:
    """Refuse what cannot be a seed."""
    load_settings(None, {"seed": seed})


def _check_decoder(name: str) -> None:
    from ramify.decoding.decoders import DECODERS

    if name not in DECODERS:
        raise RamifyError(f"decoder {unknown(name, DECODERS)}")


def _check_decoders(settings: Settings, decoders: Sequence[str]) -> None:
    """Whether the model can have them; how many words it will know changes nothing."""

    from ramify.decoding.decoders import check_decoder
    from ramify.runtime.shapes import only_shapes

    with only_shapes():
        grammar = FAMILIES[settings.model](**settings.model_arguments(words=2))
    for decoder in decoders:
        check_decoder(grammar, decoder)
