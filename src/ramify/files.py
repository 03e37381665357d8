"""Files that are written whole or not at all."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from ramify.errors import RamifyError


def partial_name(path: Path) -> Path:
    """Where the content of `path` is while it is being written; nothing else has such a name."""
    return path.with_name(f".{path.name}.partial")


def check_place(path: Path) -> None:
    """Refuse, before the work is done, a file that could not be written into its folder."""
    if not path.parent.is_dir():
        raise RamifyError(f"{path}: there is no folder {path.parent}; make it first.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise RamifyError(f"{path}: nothing can be written into {path.parent}; check its permissions.")


def place_for(out: Path, overwrite: bool) -> Path:
    """Where to write what the user wants in `out`, told before the work: a link stays, and its target is written.

    Refused is what could not be written or, without `overwrite`, would replace something.
    """
    if out == Path("-"):
        raise RamifyError("-: --out takes the name of a file; commands that can print do so without --out.")
    if out.exists() and not out.is_file():
        raise RamifyError(f"{out}: is {'a folder' if out.is_dir() else 'no plain file'}; give the name of a file.")
    place = Path(os.path.realpath(out)) if out.is_symlink() else out
    if place.is_symlink():
        raise RamifyError(f"{out}: is a link that leads back to itself; give the name of a file.")
    check_place(place)
    if place.exists() and not overwrite:
        raise RamifyError(f"{out}: is there already; give another name, or --overwrite to replace it.")
    return place


def write_atomically(path: Path, data: bytes) -> None:
    """The whole new content or, if anything fails or the machine stops, what was there before."""
    temporary = partial_name(path)
    try:
        with temporary.open("wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise RamifyError(f"{path}: cannot be written ({error.strerror}); check space and permissions.") from error


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Readable JSON, atomically."""
    write_atomically(
        path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
    )
