"""The tables of mutants match the code. `make mutants` tests the mutants, which takes far longer."""

from __future__ import annotations

from pathlib import Path

import pytest

import ramify
from tests.mutation.copies import copy_with, importers
from tests.mutation.forks import PROJECT
from tests.mutation.mutants import Mutant, TableError, find
from tests.mutation.tables import GROUPS

PACKAGE = Path(ramify.__file__).parent


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_every_mutant_has_its_place_and_its_tests(group) -> None:
    assert all((PROJECT / "tests" / name).exists() for name in group.tests)
    wrong = []
    for mutant in group.mutants:
        try:
            place = find(mutant, PACKAGE)
            assert place.source != (PACKAGE / place.file).read_text(encoding="utf-8")
        except TableError as error:
            wrong.append(str(error))
    assert not wrong, "update the tables in tests/mutation/tables"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "one.py").write_text("def f():\n    return 1 + 1\n\n\nclass A:\n    def f(self):\n        return 2\n")
    (tmp_path / "two.py").write_text("SIZE = 2\n\n\ndef f():\n    def g():\n        return 2\n\n    return 2 + g()\n")
    return tmp_path


def test_a_mutant_changes_only_its_symbol(package: Path) -> None:
    assert find(Mutant("A.f", "2", "3"), package).source.count("return 1 + 1") == 1
    assert find(Mutant("two:f", "2 + g", "3 + g"), package).source.startswith("SIZE = 2\n")
    assert "SIZE = 3" in find(Mutant("SIZE", "2", "3"), package).source
    assert find(Mutant("f.g", "2", "3"), package).source.count("3") == 1


@pytest.mark.parametrize(
    ("mutant", "reason"),
    [
        (Mutant("f", "return", "return 1 +"), "3 times.*one.py, two.py"),
        (Mutant("h", "1", "2"), "no such symbol"),
        (Mutant("one:f", "1", "2"), "2 times"),
        (Mutant("one:f", "3", "2"), "0 times"),
        (Mutant("A.f", "return", "return return"), "not valid Python"),
    ],
)
def test_a_mutant_without_a_place_is_an_error_of_the_table(package: Path, mutant: Mutant, reason: str) -> None:
    with pytest.raises(TableError, match=reason):
        find(mutant, package)


@pytest.fixture
def loops(tmp_path: Path) -> Path:
    """A package whose files have cached loops: `top` uses `middle`, which uses `base`; `aside` uses none of them."""
    package = tmp_path / "loops"
    (package / "part" / "__pycache__").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "part" / "__init__.py").touch()
    for name, line in {
        "base": "SIZE = 2",
        "middle": "from loops.part import base",
        "top": "from loops.part.middle import base",
        "aside": "import os",
    }.items():
        (package / "part" / f"{name}.py").write_text(f"{line}\n")
        (package / "part" / "__pycache__" / f"{name}.f-1.nbi").touch()
    return package


def test_all_that_import_a_file_are_found(loops: Path) -> None:
    assert {file.stem for file in importers(Path("part/base.py"), loops)} == {"base", "middle", "top"}
    assert {file.stem for file in importers(Path("part/top.py"), loops)} == {"top"}


def test_in_a_copy_only_the_mutant_is_changed_and_only_its_loops_are_compiled_again(loops: Path) -> None:
    copy = copy_with(find(Mutant("SIZE", "2", "3"), loops), loops, loops.parent / "copy")
    assert (copy / "part" / "base.py").read_text() == "SIZE = 3\n"
    assert (loops / "part" / "base.py").read_text() == "SIZE = 2\n"
    assert (copy / "part" / "middle.py").samefile(loops / "part" / "middle.py")
    assert [file.name for file in (copy / "part" / "__pycache__").iterdir()] == ["aside.f-1.nbi"]
    assert len(list((loops / "part" / "__pycache__").iterdir())) == 4
