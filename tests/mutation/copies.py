"""Copies of the package, each with one mutant."""

from __future__ import annotations

import ast
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.mutation.mutants import Place


def copy_with(place: Place, sound: Path, folder: Path) -> Path:
    """A copy of the package `sound` in `folder`, with the file of a mutant changed.

    The other files are hard links: they have the same times, so Python and numba use their cached code. Whatever
    writes to a cache replaces the file and does not change the linked one.
    """
    copy = folder / sound.name
    shutil.copytree(sound, copy, copy_function=os.link)
    file = copy / place.file
    file.unlink()
    file.write_text(place.source, encoding="utf-8")
    # Compiled loops include the loops and constants that they use from other files.
    for changed in importers(place.file, sound):
        for cached in (copy / changed.parent / "__pycache__").glob(f"{changed.stem}.*.nb[ci]"):
            cached.unlink()
    return copy


def importers(file: Path, package: Path) -> set[Path]:
    """A file of the package and all others that import it, directly or through others, when they are imported."""
    found, waiting = set[Path](), [file]
    while waiting:
        if (here := waiting.pop()) not in found:
            found.add(here)
            waiting += [other for other, imported in _imports(package).items() if here in imported]
    return found


@cache
def _imports(package: Path) -> dict[Path, set[Path]]:
    """The files of the package that each of its files imports."""
    files = {path.relative_to(package) for path in package.rglob("*.py")}
    by_name = {_module_name(file, package.name): file for file in files}
    return {
        file: {by_name[name] for name in _imported((package / file).read_text(encoding="utf-8")) if name in by_name}
        for file in files
    }


def _module_name(file: Path, package: str) -> str:
    parts = (package, *file.with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(source: str) -> Iterator[str]:
    """The names of all modules that a module imports, and of what it imports from them."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
