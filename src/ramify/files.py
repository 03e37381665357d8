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
    """Refuse, before the work is done, a file that could not be written for want of its folder."""
    if not path.parent.is_dir():
        raise RamifyError(f"{path}: there is no folder {path.parent}; make it first.")


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
