"""The prepared folder: written under a temporary name, then moved into place as a whole."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ramify.corpus.prepare.manifest import MANIFEST, read_manifest
from ramify.errors import RamifyError
from ramify.storage.files import folder_contents, partial_path
from ramify.storage.locks import locked_file, locked_folder


def check_out(out: Path, source: Path | None, overwrite: bool) -> None:
    """Refuse a folder that is not empty, unless `ramify prepare` wrote it and it may be replaced."""
    if source is not None and out.resolve() == source.resolve():
        raise RamifyError(f"{out}: this is the treebank itself; give another folder.")
    if out.exists() and not out.is_dir():
        raise RamifyError(f"{out}: this is a file; give the name of a folder.")
    if not folder_contents(out, ()):
        return
    if not overwrite:
        raise RamifyError(f"{out}: this folder is not empty; give another one, or --overwrite to prepare it again.")
    if read_manifest(out) is None:
        raise RamifyError(
            f"{out}: this folder was not made by ramify prepare and is not overwritten; give another one."
        )


def write_folder(out: Path, files: Mapping[str, bytes]) -> None:
    """Write all of `files` to `out`, or none: a new folder appears as a whole, and files of an old one are replaced.

    Other files in `out` are left alone.
    """
    name = f".{out.name}.{os.getpid()}"
    try:
        if not out.is_dir():
            out.parent.mkdir(parents=True, exist_ok=True)
        with locked_folder(out) if out.is_dir() else locked_file(partial_path(out), out):
            # An existing folder may be a link to another disk, or the current folder.
            aside = out / name if out.is_dir() else out.with_name(name)
            aside.mkdir()
            try:
                for name, content in files.items():
                    (aside / name).write_bytes(content)
                _move_into_place(aside, out, files)
            finally:
                if aside.exists():
                    for name in files:
                        (aside / name).unlink(missing_ok=True)
                    aside.rmdir()
    except OSError as error:
        raise RamifyError(f"{out}: cannot be written ({error.strerror}); check the path and the disk.") from error


def _move_into_place(aside: Path, out: Path, files: Mapping[str, bytes]) -> None:
    if out.is_dir():
        # The manifest goes last: until then its checksums show that the folder is being replaced.
        for name in sorted(files, key=lambda name: name == MANIFEST):
            (aside / name).replace(out / name)
        return
    aside.rename(out)
