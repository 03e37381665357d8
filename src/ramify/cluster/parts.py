"""A result in parts, one for each block of the input, in a folder that many workers write to.

A part is finished when its record exists, which is written after it. Both are written completely or not at all, so a
worker can be killed at any time. A record names its run, so parts of another model, other settings or another input
are never mistaken for parts of this run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ramify.errors import RamifyError
from ramify.storage.files import atomic_file, folder_contents, remove_unfinished, write_atomically, write_json
from ramify.storage.made_with import check_made_with, read_made_with

MANIFEST, BAD_ROWS = "manifest.json", "bad-rows.jsonl"
FORMAT = 1
_OURS = re.compile(r"part-[0-9]{5,}\.[a-z]+(\.gz)?|manifest\.json|bad-rows\.jsonl")


class Parts:
    """The parts of one result."""

    def __init__(self, folder: Path, suffix: str, count: int, run: str) -> None:
        self.folder, self.suffix, self.count = folder, suffix, count
        self.run = run
        """Checksum of everything that the result depends on"""

    @classmethod
    def of_run(cls, folder: Path, suffix: str, count: int, made_with: dict[str, Any]) -> Parts:
        """The parts of a run with this model, input and options."""
        return cls(folder, suffix, count, hashlib.sha256(json.dumps([count, made_with]).encode()).hexdigest())

    def begin(self, made_with: dict[str, Any], overwrite: bool) -> None:
        """Claim the folder, or resume what an earlier run left there; only for the process that holds its lock."""
        inside = folder_contents(self.folder, (MANIFEST,))
        if inside and MANIFEST not in inside:
            raise RamifyError(
                f"{self.folder}: this folder is not empty and does not contain parts of a result; give another --out."
            )
        if overwrite:
            self.remove()
        elif inside:
            then = read_made_with(self.folder / MANIFEST, self.folder).get("made_with")
            check_made_with(then if isinstance(then, dict) else {}, made_with, self.folder)
        manifest = {"format": FORMAT, "complete": False, "blocks": self.count, "made_with": made_with}
        write_json(self.folder / MANIFEST, manifest)
        for tries in self.folder.glob("part-*.tries"):  # left by workers that were stopped
            tries.unlink(missing_ok=True)

    def complete(self) -> None:
        """Record that all parts exist, if they are kept as they are."""
        manifest = read_made_with(self.folder / MANIFEST, self.folder)
        write_json(self.folder / MANIFEST, {**manifest, "complete": True})

    def part(self, number: int) -> Path:
        """The path of a part, which may not exist yet."""
        return self.folder / f"part-{number:05}{self.suffix}"

    def _record_file(self, number: int) -> Path:
        return self.folder / f"part-{number:05}.done"

    def _tries_file(self, number: int) -> Path:
        return self.folder / f"part-{number:05}.tries"

    def write(self, number: int, data: bytes, facts: dict[str, Any]) -> dict[str, Any]:
        """Write a part, and its record with these facts."""
        write_atomically(self.part(number), data)
        record = {"run": self.run, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), **facts}
        write_json(self._record_file(number), record)
        self._tries_file(number).unlink(missing_ok=True)
        return record

    def count_try(self, number: int) -> int:
        """Record that a worker begins a part; returns how many have begun it in this run without finishing it."""
        try:
            before = int(self._tries_file(number).read_bytes())
        except (OSError, ValueError):
            before = 0
        write_atomically(self._tries_file(number), str(before + 1).encode())
        return before

    def record(self, number: int) -> dict[str, Any] | None:
        """The record of a finished part; None if it is not finished."""
        try:
            found = json.loads(self._record_file(number).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) and found.get("run") == self.run else None

    def missing(self) -> list[int]:
        """The parts that are not finished."""
        return [number for number in range(self.count) if self.record(number) is None]

    def records(self) -> Iterator[dict[str, Any]]:
        """The records of all parts, in order."""
        for number in range(self.count):
            record = self.record(number)
            if record is None:
                raise self._damaged(number)
            yield record

    def checked(self) -> Iterator[bytes]:
        """The contents of all parts in order; the record of a damaged part is removed, so it will be parsed again."""
        for number, record in enumerate(self.records()):
            try:
                data = self.part(number).read_bytes()
            except OSError:
                data = b""
            if hashlib.sha256(data).hexdigest() != record["sha256"]:
                self._record_file(number).unlink(missing_ok=True)
                raise self._damaged(number)
            yield data

    def write_bad_rows(self, path: Path) -> int:
        """Write a line of JSON for each row that could not be read; returns their number.

        If there are none, no file is created, and the file of an earlier run is emptied.
        """
        found = [row for record in self.records() for row in record["bad_rows"]]
        if found or path.exists():
            with atomic_file(path) as handle:
                for row in found:
                    handle.write(json.dumps(row, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")
        return len(found)

    def remove(self) -> None:
        """Remove the files that this run or an earlier one wrote, and no others."""
        ours = {path.name for path in self.folder.iterdir() if _OURS.fullmatch(path.name)}
        self.remove_unfinished()
        for name in ours:
            path = self.folder / name
            if path.is_file() and not path.is_symlink():
                path.unlink(missing_ok=True)

    def remove_unfinished(self) -> None:
        """Remove the files that killed workers left."""
        remove_unfinished(self.folder, _OurNames())

    def _damaged(self, number: int) -> RamifyError:
        return RamifyError(f"{self.part(number)}: is missing or damaged; run the same command again to create it.")


class _OurNames:
    """The names of all files that are written here."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and _OURS.fullmatch(name) is not None
