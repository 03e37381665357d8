"""A record of the model and the options of an unfinished result, saved next to it, so that only they can resume it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ramify.errors import RamifyError


def read_made_with(about: Path, unfinished: Path) -> dict[str, Any]:
    """The content of the file `about`, which belongs to the `unfinished` result."""
    try:
        found = json.loads(about.read_bytes())
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RamifyError(f"{unfinished}: {about.name} is missing or invalid; start again with --overwrite.")
    return found


def check_made_with(then: Mapping[str, Any], now: Mapping[str, Any], unfinished: Path) -> None:
    """Refuse to resume with another model or other options."""
    for name, value in now.items():
        if then.get(name) != value:
            raise RamifyError(
                f"{unfinished}: the earlier run had another {name} ({str(then.get(name))[:20]}, not "
                f"{str(value)[:20]}); give the same one, or start again with --overwrite."
            )
