"""Files that are written completely or not at all."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ramify.errors import RamifyError
from ramify.storage.locks import LOCK, locked_file

_UNFINISHED = re.compile(r"\.(?P<name>.+?)(?:\.[0-9a-f]{8})?\.partial", re.DOTALL)
_MAX_TRIES = 100


def partial_path(out: Path) -> Path:
    """The file next to `out` that is locked while `out` is being written, and to which `parse` writes its lines."""
    return out.with_name(f"{out.name}.partial")


def is_unfinished(path: Path, names: Container[str]) -> bool:
    """Whether `path` is an unfinished file with one of these names, left by a process that was killed."""
    found = _UNFINISHED.fullmatch(path.name)
    return found is not None and found["name"] in names


def folder_contents(folder: Path, names: Container[str]) -> set[str]:
    """The content of a folder, except its lock and unfinished files of killed processes with these names."""
    if not folder.is_dir():
        return set()
    return {path.name for path in folder.iterdir() if path.name != LOCK and not is_unfinished(path, names)}


def remove_unfinished(folder: Path, names: Container[str]) -> None:
    """Remove unfinished files of killed processes with these names; only for the process that holds the lock."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if is_unfinished(path, names) and path.is_file() and not path.is_symlink():
            path.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Refuse a file that cannot be written to its folder, before the work begins."""
    if not path.parent.is_dir():
        raise RamifyError(f"{path}: the folder {path.parent} does not exist; create it first.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise RamifyError(f"{path}: {path.parent} is not writable; check its permissions.")


def output_path(out: Path, overwrite: bool) -> Path:
    """The file to write for `out`, checked before the work begins: a link stays, and its target is written.

    A path that cannot be written is refused, and so is an existing file unless `overwrite`.
    """
    if out == Path("-"):
        raise RamifyError("-: --out needs the name of a file; to print to standard output, leave out --out.")
    if out.exists() and not out.is_file():
        raise RamifyError(
            f"{out}: this is {'a folder' if out.is_dir() else 'not a regular file'}; give the name of a file."
        )
    place = Path(os.path.realpath(out)) if out.is_symlink() else out
    if place.is_symlink():
        raise RamifyError(f"{out}: this link points to itself; give the name of a file.")
    check_writable(place)
    if place.exists() and not overwrite:
        raise RamifyError(f"{out}: this file already exists; give another name, or --overwrite to replace it.")
    return place


@contextmanager
def locked_output(out: Path, overwrite: bool) -> Iterator[Path]:
    """`output_path` under a lock that keeps other processes from writing the same file."""
    place = output_path(out, overwrite)
    with locked_file(partial_path(place), out):
        yield output_path(out, overwrite)  # once more, because another process may have finished it meanwhile


def write_atomically(path: Path, data: bytes) -> None:
    """Write the file; if anything fails or the machine stops, its earlier content stays."""
    with atomic_file(path) as handle:
        handle.write(data)


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A temporary file that becomes `path` when this context ends, and is removed if anything fails."""
    temporary = None
    try:
        temporary, descriptor = _new_file_beside(path)
        with os.fdopen(descriptor, "wb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    except BaseException as error:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise RamifyError(f"{path}: cannot be written ({error.strerror}); check disk space and permissions.") from error


def _new_file_beside(path: Path) -> tuple[Path, int]:
    """A new file next to `path`: an existing file or link is neither followed nor changed."""
    for tries_left in reversed(range(_MAX_TRIES)):
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
        try:
            # Unlike tempfile.mkstemp, with the usual permissions of a new file.
            return temporary, os.open(
                temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666
            )
        except FileExistsError:
            if not tries_left:
                raise
    raise AssertionError


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Readable JSON, atomically."""
    write_atomically(
        path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
    )
