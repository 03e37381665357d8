"""Teachers, their average, which is the result, and students focused on them: from raw text to trees.

A recipe is an experiment on one data set: each stage needs the runs of the stage before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from ramify.corpus.reading import split_paths
from ramify.errors import RamifyError
from ramify.lab.plan.experiment import DataSet, Plan, begins_like_trees, planned_average, planned_run
from ramify.lab.plan.toml_file import (
    Seeds,
    SettingsTable,
    check_name,
    check_table,
    errors_located,
    find_file,
    name_from,
    read_toml,
    split_table,
)
from ramify.lab.results.schema import Group
from ramify.models import FAMILIES
from ramify.training.settings import Settings, load_settings
from ramify.training.text_sizes import FEW_SENTENCES, sizes_for_text

PLAN_NAME, TITLE = "focus", "Averaging and focusing"
RESULT = "result"
"""The average of the teachers without those that collapsed"""
DECODERS = ("mbr",)


@dataclass(frozen=True)
class Grammars:
    """Grammars that differ only in their seed."""

    name: str
    settings: dict[str, Any]
    """All but the seed, by name"""
    seeds: tuple[int, ...]

    def with_seed(self, seed: int) -> Settings:
        """The settings of one of them."""
        return load_settings(None, self.settings | {"seed": seed})

    def for_text(self, sentences: int) -> Grammars:
        """With sizes for this number of training sentences, where the settings choose none."""
        sized = load_settings(None, self.settings, sentences=sentences)
        names = sizes_for_text(sized.model, sentences).keys() - ({"batch_size"} if sized.batch_tokens else set())
        settings = self.settings | {name: getattr(sized, name) for name in sorted(names)}
        return replace(self, settings=settings)


@dataclass(frozen=True)
class Recipe:
    """What is trained, stage by stage."""

    teachers: tuple[Grammars, ...]
    student: Grammars
    rounds: int
    """How often students are trained; from the second round on the students of the round before are the teachers"""

    @property
    def runs(self) -> int:
        """How many grammars are trained."""
        return sum(len(each.seeds) for each in self.teachers) + self.rounds * len(self.student.seeds)

    def for_text(self, sentences: int) -> Recipe:
        """With sizes for this number of training sentences, where the recipe chooses none."""
        teachers = tuple(each.for_text(sentences) for each in self.teachers)
        return replace(self, teachers=teachers, student=self.student.for_text(sentences))

    def smaller(self, teachers: int, students: int, rounds: int, epochs: int) -> Recipe:
        """A version with fewer seeds, rounds and epochs; each kind of teacher keeps at least one seed."""

        def cut(grammars: Grammars, seeds: int) -> Grammars:
            chosen = min(epochs, grammars.with_seed(0).epochs)
            return replace(grammars, settings=grammars.settings | {"epochs": chosen}, seeds=grammars.seeds[:seeds])

        kept = tuple(cut(each, max(1, teachers)) for each in self.teachers)
        return replace(self, teachers=kept, student=cut(self.student, students), rounds=min(rounds, self.rounds))

    def described(self) -> str:
        """The recipe in one line."""
        teachers = ", ".join(f"{len(each.seeds)} x {each.name}" for each in self.teachers)
        rounds = "" if self.rounds == 1 else f" in each of {self.rounds} rounds"
        epochs = self.student.with_seed(0).epochs
        most = f"at most {epochs} epoch{'s' * (epochs != 1)} each"
        return f"teachers: {teachers}; students: {len(self.student.seeds)}{rounds}; {most}"

    def as_record(self) -> dict[str, Any]:
        """As JSON values, to be read by `recipe_from`."""
        teachers = {each.name: each.settings | {"seeds": list(each.seeds)} for each in self.teachers}
        student = self.student.settings | {"seeds": list(self.student.seeds)}
        return {"rounds": self.rounds, "teachers": teachers, "student": student}


class RecipeTable(Struct):
    """The whole file."""

    rounds: Annotated[int, Meta(ge=1, le=10)] = 1
    settings: SettingsTable = {}
    teachers: dict[str, Any] = {}
    student: SettingsTable = {}


class GrammarTable(Struct):
    """A table [teachers.NAME] or [student], besides settings."""

    seeds: Seeds = (0,)


def read_recipe(source: str | Path, overrides: Mapping[str, Any]) -> Recipe:
    """From a TOML file, or by the name of a recipe that comes with the package.

    `overrides` are settings for all its grammars.
    """
    path = find_file(str(source), "recipes", "a recipe")
    return recipe_from(read_toml(path), str(path), overrides)


def default_recipe(sentences: int) -> str:
    """The name of the recipe for this many training sentences."""
    return "little-text" if sentences < FEW_SENTENCES else "much-text"


def recipe_from(content: object, where: str, overrides: Mapping[str, Any]) -> Recipe:
    """From the tables of a TOML file."""
    table = check_table(content, RecipeTable, where)
    chosen = {name: value for name, value in overrides.items() if value is not None}
    teachers = tuple(
        _grammars(name, each, f"{where}, [teachers.{name}]", table.settings, chosen)
        for name, each in table.teachers.items()
    )
    if not teachers:
        raise RamifyError(f"{where}: has no teachers; describe one under [teachers.NAME].")
    student = _grammars("student", table.student, f"{where}, [student]", table.settings, chosen)
    if not FAMILIES[student.with_seed(0).model].takes_span_scores:
        raise RamifyError(f"{where}, [student]: {student.with_seed(0).model} cannot be focused; choose another family.")
    return Recipe(teachers, student, table.rounds)


def _grammars(name: str, content: object, where: str, common: dict[str, Any], overrides: dict[str, Any]) -> Grammars:
    check_name(name, where)
    if name.startswith("student") and name != "student":
        raise RamifyError(f"{where}: names that begin with student are reserved; choose another.")
    table, own = split_table(content, GrammarTable, where)
    settings = {key.replace("-", "_"): value for key, value in (common | own).items()} | overrides
    settings.pop("seed", None)
    if name != "student" and "focus" in settings:
        raise RamifyError(f"{where}: focus applies only to the student; move it to [student].")
    grammars = Grammars(name, settings, table.seeds)
    with errors_located(where):
        grammars.with_seed(0)
    return grammars


def data_set(data: Path) -> DataSet:
    """A file of text, trees or CoNLL-U, or a folder with a training file and perhaps dev and test files."""
    files = split_paths(data) if data.is_dir() else {"train": data}
    if "train" not in files:
        raise RamifyError(f"{data}: has no training file; name one train.txt, train.trees or train.conllu.")
    if "test" in files and not begins_like_trees(files["test"]):
        del files["test"]  # nothing to score against
    return DataSet(name_from(data.resolve().stem), {split: path.absolute() for split, path in files.items()})


def plan_of(recipe: Recipe, data: DataSet) -> Plan:
    """The experiment that carries out a recipe."""
    seeds = [(each, seed) for each in recipe.teachers for seed in each.seeds]
    runs = [planned_run(data.name, each.name, each.with_seed(seed), DECODERS) for each, seed in seeds]
    teachers = [run.name for run in runs]
    runs.append(planned_average(data.name, "teachers", teachers))
    runs.append(planned_average(data.name, RESULT, teachers, leave_out_collapsed=True))
    for number in range(1, recipe.rounds + 1):
        settings = [recipe.student.with_seed(seed) for seed in recipe.student.seeds]
        students = [planned_run(data.name, f"student-{number}", each, DECODERS, teachers) for each in settings]
        teachers = [run.name for run in students]
        runs += [*students, planned_average(data.name, f"students-{number}", teachers)]
    every_seed = dict.fromkeys(run.seed for run in runs if run.seed is not None)
    models = tuple(dict.fromkeys(run.model for run in runs))
    group = Group(PLAN_NAME, TITLE, (data.name,), models, tuple(every_seed), tuple(runs))
    return Plan(PLAN_NAME, TITLE, {data.name: data}, (group,), ("left", "right") if data.is_scored else (), threads=1)
