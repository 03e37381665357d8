"""Names of models and other systems. Does not import torch, so that a wrong name is reported without delay."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Literal

from ramify.errors import RamifyError, RamifyWarning

CONFIG = "config.json"
"""The file that every model folder has"""
BUNDLED = Path(__file__).parent / "bundled"
"""Contains the folders of the bundled models"""
HUB = "hf:"
SystemKind = Literal["model", "predicted", "baseline", "average"]


def bundled_models() -> list[str]:
    """The names of the bundled models."""
    return sorted(path.parent.name for path in BUNDLED.glob(f"*/{CONFIG}"))


def resolve(model: str | Path) -> Path:
    """The path of a model by its name: a model folder or a file, a bundled model, or `hf:owner/name@revision`.

    The first of these that exists is returned; any other name is returned unchanged.
    """
    path, text = Path(model), str(model)
    is_bundled = text in bundled_models()
    if path.is_file() or (path / CONFIG).exists():
        if is_bundled:
            _note_hidden(path.absolute(), text)
        return path
    if is_bundled:
        return BUNDLED / text
    if text.startswith(HUB) and not path.exists():
        from ramify.hub import download

        return download(text.removeprefix(HUB))
    return path


@cache
def _note_hidden(path: Path, name: str) -> None:
    """Warn once for each name."""
    warnings.warn(
        f"{name}: the model in {path} is used instead of the bundled model of the same name.",
        RamifyWarning,
        stacklevel=3,
    )


def split_name(text: str) -> tuple[str, Path]:
    """The two parts of `NAME=PATH`; without `=`, or if the whole text is an existing path, the name is empty.

    If the path is the name of a model, the path of this model is returned.
    """
    name, _, rest = text.partition("=")
    if name and rest and not Path(text).exists():
        return name, resolve(rest)
    return "", resolve(text)


def system_kind(text: str) -> SystemKind:
    """A folder or a file of rules (`.pcfg`) is a model, any other file contains trees, and the rest are baselines."""
    from ramify.evaluation.baselines import BASELINES  # few commands need it

    path = split_name(text)[1]
    if path.exists():
        return "model" if path.is_dir() or path.suffix == ".pcfg" else "predicted"
    if str(path) in BASELINES:
        return "baseline"
    raise RamifyError(
        f"{text}: is not a model folder, a file of trees or a baseline; "
        f"check the name (baselines are {', '.join(BASELINES)}{_bundled(', bundled models ')})."
    )


def _bundled(before: str) -> str:
    """The names of the bundled models for an error, if there are any."""
    names = bundled_models()
    return f"{before}{', '.join(names)}" if names else ""


def check_model(path: Path) -> None:
    """Refuse a path that is neither a model folder nor a file, which may contain rules."""
    if path.is_file() or (path / CONFIG).exists():
        return
    if not path.exists():
        raise RamifyError(
            f"{path}: this model folder does not exist; check the name{_bundled(', or use a bundled model: ')}."
        )
    raise RamifyError(
        f"{path}: this is not a model folder, because it has no {CONFIG}; give a folder written by ramify train."
    )
