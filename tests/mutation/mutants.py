"""Mutants, and how to find the code that they change, whichever file it is in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path


class TableError(Exception):
    """A mutant that no longer matches the code: update the table."""


@dataclass(frozen=True)
class Mutant:
    """A small change of one function, class or constant."""

    symbol: str
    """Its qualified name, such as `Residual.forward`; if ambiguous, with the module: `low_rank.kernels:_normalise`"""
    before: str
    """Must occur exactly once in the source of all symbols with this name"""
    after: str
    equivalent: str = ""
    """The reason why no result changes; such a mutant is not tested"""

    def __str__(self) -> str:
        return f"{self.symbol}: {_shown(self.before)} -> {_shown(self.after)}"


@dataclass(frozen=True)
class Group:
    """Mutants that the same tests must detect."""

    name: str
    tests: tuple[str, ...]
    """Files or folders below `tests`, beginning with those that detect mutants fastest"""
    mutants: tuple[Mutant, ...]
    slow: bool = False
    """Whether only tests that are marked as slow detect them"""


@dataclass(frozen=True)
class Place:
    """A mutant applied to a package."""

    file: Path
    """Relative to the folder of the package"""
    source: str
    """The whole mutated file"""


def find(mutant: Mutant, package: Path) -> Place:
    """Find the symbol of a mutant in the package, and apply the change."""
    hint, _, name = mutant.symbol.rpartition(":")
    found = [
        (file, source.splitlines(keepends=True), begin, end)
        for file, source in _sources(package)
        if set(hint.split(".")) <= {"", *file.with_suffix("").parts} and name.rpartition(".")[2] in source
        for qualified, begin, end in _symbols(source)
        if qualified == name
    ]
    if not found:
        raise TableError(f"{mutant}: no such symbol; update the table")
    places = [
        (file, lines, begin, end)
        for file, lines, begin, end in found
        for _ in range("".join(lines[begin:end]).count(mutant.before))
    ]
    if len(places) != 1:
        where = ", ".join(str(file) for file, *_ in found)
        raise TableError(f"{mutant}: occurs {len(places)} times instead of once in the symbols of this name ({where})")
    [(file, lines, begin, end)] = places
    own = "".join(lines[begin:end])
    changed = "".join([*lines[:begin], own.replace(mutant.before, mutant.after), *lines[end:]])
    try:
        ast.parse(changed)
    except SyntaxError as error:
        raise TableError(f"{mutant}: the changed code is not valid Python") from error
    return Place(file, changed)


@cache
def _sources(package: Path) -> list[tuple[Path, str]]:
    """Every file of a package, relative to its folder, with its source."""
    files = sorted(package.rglob("*.py"))
    return [(file.relative_to(package), file.read_text(encoding="utf-8")) for file in files]


@cache
def _symbols(source: str) -> list[tuple[str, int, int]]:
    """The qualified name of every function, class and constant of a file, and its lines."""
    return list(_walk(source))


def _walk(source: str) -> Iterator[tuple[str, int, int]]:
    waiting: list[tuple[str, ast.AST]] = [("", ast.parse(source))]
    while waiting:
        prefix, parent = waiting.pop()
        for node in ast.iter_child_nodes(parent):
            names: list[str] = []
            begin = getattr(node, "lineno", 0)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names = [node.name]
                begin = min([begin, *(decorator.lineno for decorator in node.decorator_list)])
                waiting.append((f"{prefix}{node.name}.", node))
            elif isinstance(node, ast.Assign):
                targets = [each for target in node.targets for each in ast.walk(target)]
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names = [node.target.id]
            elif isinstance(node, ast.If | ast.With | ast.For | ast.While | ast.Try):
                waiting.append((prefix, node))
            if not isinstance(parent, ast.FunctionDef) or isinstance(
                node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
            ):
                yield from ((f"{prefix}{name}", begin - 1, node.end_lineno or begin) for name in names)


def _shown(code: str) -> str:
    return " ".join(code.split()) or "nothing"
