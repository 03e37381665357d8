"""Where the data of an experiment is."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ramify.corpus.reading import kind_of, split_paths
from ramify.errors import RamifyError, RamifyWarning
from ramify.lab.plan.experiment import BUILT_IN, SPLITS, looks_like_trees
from ramify.lab.plan.toml_tables import Table, check_name, unknown

Files = dict[str, Path] | None


def data_sets(
    content: dict[str, Any], where: str, base: Path, places: Mapping[str, str], root: Path | None
) -> tuple[dict[str, Files], dict[str, dict[str, Any]]]:
    """The files of every data set by its name, and the settings told with it.

    `content` is the table [data] of an experiment; where it is empty, the data sets are those of `places` and, without
    any, all treebanks in the folder `root`. Relative folders are looked for in `root` or, without one, in `base`; the
    word `built-in` stands for the built-in corpus, `./built-in` for a folder.
    """
    if root is not None and not root.is_dir():
        raise RamifyError(f"{root}: there is no such folder; check --data-root.")
    for name in places if content else ():
        if name not in content:
            raise RamifyError(f"{where}, [data]: {unknown(name, content)}")
    if not content:
        content = dict(places or _treebanks_in(root))
    if not content:
        raise RamifyError(
            f"{where}: names no data; give --data NAME=FOLDER, --data-root with a folder of treebanks, or describe it "
            "under [data]."
        )
    files, settings = {}, {}
    for name, value in content.items():
        check_name(name, f"{where}, [data]")
        place = f"{where}, [data.{name}]"
        table = Table(place, {"folder": value} if isinstance(value, str) else value)
        told = table.text("folder", name)
        settings[name] = table.rest()
        folder = (base if root is None else root) / told if name not in places else Path(places[name])
        files[name] = None if places.get(name, told) == BUILT_IN else _files(folder, place)
    return files, settings


def _treebanks_in(root: Path | None) -> dict[str, str]:
    """Every folder with all three splits in it; what may be meant as one and cannot be is told."""
    found: dict[str, str] = {}
    refused: list[RamifyError] = []
    for folder in sorted(root.iterdir()) if root is not None else ():
        try:
            if folder.is_dir() and _splits(folder):
                check_name(folder.name, str(folder))
                _files(folder, "--data-root")
                found[folder.name] = str(folder.absolute())
        except RamifyError as error:
            refused.append(error)
    if refused and not found:
        raise refused[0]
    for reason in refused:
        warnings.warn(f"left out: {reason}", RamifyWarning, stacklevel=2)
    return found


def _splits(folder: Path) -> dict[str, Path]:
    try:
        return split_paths(folder)
    except OSError as error:
        raise RamifyError(f"{folder}: cannot be looked into ({error.strerror}); check its permissions.") from error


def _files(folder: Path, where: str) -> dict[str, Path]:
    try:
        found = _splits(folder)
    except RamifyError as error:
        raise RamifyError(f"{where}: {error} Say where it is with --data or --data-root.") from error
    for split in SPLITS:
        if split not in found:
            raise RamifyError(f"{where}: {folder} has no {split} file; name one {split}.trees.")
        if not looks_like_trees(found[split]) and kind_of(found[split]) != "conllu":
            raise RamifyError(f"{where}: {found[split]} holds neither trees nor CoNLL-U; experiments do not read text.")
    return {split: found[split].absolute() for split in SPLITS}
