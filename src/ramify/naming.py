"""Models and other systems as a person names them; without torch, so that a wrong name is refused at once."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ramify.errors import RamifyError

CONFIG = "config.json"
"""What every model folder has"""
SystemKind = Literal["model", "predicted", "baseline", "average"]


def split_name(text: str) -> tuple[str, Path]:
    """The two parts of `NAME=PATH`; the name is empty if there is none, and what exists as a whole is a path."""
    name, _, rest = text.partition("=")
    return (name, Path(rest)) if name and rest and not Path(text).exists() else ("", Path(text))


def kind_of(text: str) -> SystemKind:
    """A folder or a file of rules (`.pcfg`) is a model, another file holds trees, else it is a baseline's name."""
    from ramify.evaluation.baselines import BASELINES  # which few commands need

    path = split_name(text)[1]
    if path.exists():
        return "model" if path.is_dir() or path.suffix == ".pcfg" else "predicted"
    if str(path) in BASELINES:
        return "baseline"
    raise RamifyError(
        f"{text}: is not a model folder, a file of trees or a baseline; "
        f"check the name (baselines are {', '.join(BASELINES)})."
    )


def check_model(path: Path) -> None:
    """Refuse what is neither a model folder nor a file, which may hold rules."""
    if path.is_file() or (path / CONFIG).exists():
        return
    if not path.exists():
        raise RamifyError(f"{path}: this model folder does not exist; check the name.")
    raise RamifyError(f"{path}: this is not a model folder, because it has no {CONFIG}; check the name.")
