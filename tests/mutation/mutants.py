"""What a mutant is, and how its place is found, wherever the file with it may be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path


class TableError(Exception):
    """A mutant that does not fit the package any more: the table has to be changed with the code."""


@dataclass(frozen=True)
class Mutant:
    """One small change of one function, class or constant."""

    symbol: str
    """Its qualified name, as in `Residual.forward`; where that is not enough, `low_rank.kernels:_normalise`"""
    before: str
    """Stands exactly once in the source of all symbols of that name"""
    after: str
    equivalent: str = ""
    """Why no test can tell the difference; such a mutant is not tried"""

    def __str__(self) -> str:
        return f"{self.symbol}: {_shown(self.before)} -> {_shown(self.after)}"


@dataclass(frozen=True)
class Group:
    """Mutants that the same tests must notice."""

    name: str
    tests: tuple[str, ...]
    """Files or folders below `tests`, the quickest to notice first"""
    mutants: tuple[Mutant, ...]
    slow: bool = False
    """Whether it takes tests that are marked as slow to notice them"""


@dataclass(frozen=True)
class Place:
    """A mutant in a package."""

    file: Path
    """Relative to the package's folder"""
    source: str
    """Of the whole file, mutated"""


def find(mutant: Mutant, package: Path) -> Place:
    """Where a mutant's symbol is in the package, and the file with the change made."""
    hint, _, name = mutant.symbol.rpartition(":")
    found = [
        (file, source.splitlines(keepends=True), begin, end)
        for file, source in _sources(package)
        if set(hint.split(".")) <= {"", *file.with_suffix("").parts} and name.rpartition(".")[2] in source
        for qualified, begin, end in _symbols(source)
        if qualified == name
    ]
    if not found:
        raise TableError(f"{mutant}: there is no such symbol")
    places = [
        (file, lines, begin, end)
        for file, lines, begin, end in found
        for _ in range("".join(lines[begin:end]).count(mutant.before))
    ]
    if len(places) != 1:
        where = ", ".join(str(file) for file, *_ in found)
        raise TableError(f"{mutant}: stands {len(places)} times, not once, in the symbols of that name ({where})")
    [(file, lines, begin, end)] = places
    own = "".join(lines[begin:end])
    changed = "".join([*lines[:begin], own.replace(mutant.before, mutant.after), *lines[end:]])
    try:
        ast.parse(changed)
    except SyntaxError as error:
        raise TableError(f"{mutant}: is no Python any more") from error
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
