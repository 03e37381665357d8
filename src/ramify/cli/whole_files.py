"""Output files that appear only when they are complete: Parquet, and brat's two files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ramify.errors import RamifyError, Stopped
from ramify.storage.files import atomic_file, locked_output

if TYPE_CHECKING:
    from ramify.parser.analysis import Analysis

WHOLE_FILES = ("parquet", "brat")
"""Formats that need --out and cannot be resumed"""


class WholeFiles:
    """Analyses to the file `out` in one of these formats; for brat, the text is written next to it.

    Replaces `LineOutput`: use it in a `with` block, within which no other process writes to `out`.
    """

    lines_done = 0
    allows_progress_bar = True

    def __init__(
        self,
        format: str,
        out: Path | None,
        resume: bool,
        overwrite: bool,
        made_with: Callable[[], dict[str, Any]],
        with_posteriors: bool,
    ) -> None:
        named = {"parquet": "Parquet", "brat": "brat's format"}[format]
        if out is None:
            raise RamifyError(f"{named} is written to a file; give its name with --out.")
        if resume:
            raise RamifyError(
                f"{named} cannot be resumed; start again with --overwrite, or write --format json, which can be."
            )
        if format == "brat" and out.suffix != ".ann":
            raise RamifyError(f"{out}: brat needs a name that ends in .ann; give --out NAME.ann.")
        if out.suffix == ".gz":
            raise RamifyError(f"{out}: Parquet is compressed already; give a name without .gz.")
        if format == "parquet":
            from ramify.corpus.parquet_rows import pyarrow

            pyarrow()  # refused before anything is parsed
        self.out = out
        self._format, self._overwrite, self._find_made_with = format, overwrite, made_with
        self._with_posteriors = with_posteriors
        self._open = ExitStack()

    def __enter__(self) -> WholeFiles:
        with ExitStack() as stack:
            self._place = stack.enter_context(locked_output(self.out, self._overwrite))
            if self._format == "brat":
                text = self._place.with_suffix(".txt")
                self._text_place = stack.enter_context(locked_output(text, self._overwrite))
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def write(self, analyses: Iterable[Analysis]) -> None:
        """Write all analyses; the files appear when everything is written."""
        try:
            self._write_parquet(analyses) if self._format == "parquet" else self._write_brat(analyses)
        except Stopped as stop:
            raise Stopped(stop.signal, "Stopped; nothing was written.") from None

    def _write_parquet(self, analyses: Iterable[Analysis]) -> None:
        from ramify.integrations.parquet_output import write_parquet

        about = {name: str(value) for name, value in self._find_made_with().items() if value is not None}
        with atomic_file(self._place) as handle:
            write_parquet(handle, analyses, about)

    def _write_brat(self, analyses: Iterable[Analysis]) -> None:
        from ramify.integrations.brat import standoff

        with atomic_file(self._place) as annotations, atomic_file(self._text_place) as texts:
            for text, lines in standoff(analyses, self._with_posteriors):
                texts.write(text.encode())
                annotations.write(lines.encode())
