"""Parsing a file in blocks: starts, completes and joins the parts, whichever engine parses them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ramify.cluster.block_parser import block_reader, text_rules
from ramify.cluster.job import ParseJob
from ramify.cluster.parts import BAD_ROWS, MANIFEST, Parts
from ramify.corpus.blocks import Block, CutFile, check_columns, cut
from ramify.corpus.streaming import WINDOW
from ramify.corpus.table_rows import Columns
from ramify.corpus.text import TextRules
from ramify.errors import RamifyError, RamifyWarning, Stopped
from ramify.parser.ensemble import load_several
from ramify.storage.files import atomic_file, locked_output, output_path
from ramify.storage.locks import locked_folder
from ramify.terminal.tally import ParseTally

BLOCK = 8 * WINDOW
"""Rows per block. Batches and row groups of Parquet do not cross its end, so the result is that of the whole file."""

Engine = Callable[[ParseJob, Parts, Sequence[Block], Callable[[int], None]], None]
"""Parses blocks and writes their parts; calls back with the number of rows of each"""
Progress = Callable[[int], Any]
"""A context manager with a progress bar of the given size; it yields a function that advances the bar"""


@dataclass(frozen=True)
class Place:
    """The place of a result."""

    out: Path
    folder: Path
    """Folder of the parts"""
    is_folder: bool
    """Whether the parts are kept and are the result"""
    overwrite: bool

    @property
    def bad_rows(self) -> Path:
        """The file that lists the rows that could not be read."""
        return self.folder / BAD_ROWS if self.is_folder else self.out.with_name(f"{self.out.name}.{BAD_ROWS}")


@contextmanager
def locked(out: Path, as_parts: bool, overwrite: bool) -> Iterator[Place]:
    """Keep other processes that would write the same result away."""
    if as_parts:
        if out.exists() and not out.is_dir():
            raise RamifyError(f"{out}: this is a file, but --parts writes a folder; give another name.")
        with locked_folder(out):
            yield Place(out, out.absolute(), True, overwrite)
        return
    with locked_output(out, overwrite) as file:
        folder = file.with_name(f"{file.name}.parts").absolute()
        with locked_folder(folder):
            place = Place(file, folder, False, overwrite)
            if not (folder / MANIFEST).exists():  # otherwise the resumed run may have written it
                output_path(place.bad_rows, overwrite)
            yield place
        with suppress(OSError):  # an unfinished result is kept
            folder.rmdir()


def parse_blocks(
    job: ParseJob, place: Place, size: int, made_with: Mapping[str, Any], engine: Engine, progress: Progress
) -> list[str]:
    """Parse the blocks that no earlier run has parsed, and finish the result; returns lines to report."""
    rules = text_rules(job, _checked_rules(job))
    splits_prose = rules.splitter is not None and job.split_sentences is not False
    file = Path(job.file)
    with progress(file.stat().st_size) as on_bytes:
        found = cut(file, job.input, size, splits_prose, on_bytes)
    job, renumber = _completed(replace(job, kind=found.kind), found, rules, splits_prose, place)
    facts = {**made_with, "block-size": size, "input-file": found.checksum}
    parts = Parts.of_run(place.folder, job.suffix, len(found.blocks), facts)
    parts.begin(facts, place.overwrite)
    missing = [found.blocks[number] for number in parts.missing()]
    try:
        with progress(sum(block.rows for block in found.blocks)) as on_rows:
            on_rows(sum(block.rows for block in found.blocks) - sum(block.rows for block in missing))
            if missing:
                engine(job, parts, missing, on_rows)
        report = _report(parts, place)
        _finish(parts, place, job, renumber)
    except Stopped as stop:
        done = parts.count - len(parts.missing())
        raise Stopped(
            stop.signal, f"Stopped; {done:,} of {parts.count:,} blocks are done, and the same command resumes."
        ) from None
    return report


def _checked_rules(job: ParseJob) -> TextRules:
    """The text rules of the model; checks the model and its capabilities before a cluster is started."""
    parser = load_several(job.models, "cpu")
    parser.analyse_many([], job.decoder, 0, job.max_length, job.branching, job.heads)
    return parser.text_rules


def _completed(
    job: ParseJob, file: CutFile, rules: TextRules, splits_prose: bool, place: Place
) -> tuple[ParseJob, bool]:
    """The job with the columns that all parts of a Parquet file must have, and whether sentences are numbered later."""
    reader = block_reader(job, rules, lambda *_: None)
    check_columns(Path(job.file), job.kind, job.columns or Columns())
    if job.format != "parquet":
        return job, False
    from ramify.integrations.parquet_output import ROW_GROUP, GivenColumns

    given = GivenColumns.of_sentences(list(islice(reader.read(file.blocks[0]), ROW_GROUP)))
    if given.numbered and splits_prose and place.is_folder:
        raise RamifyError(
            f"{job.file}: the numbers of sentences are known only when all parts are joined; leave out --parts, give "
            "a table with a column id, or leave prose unsplit with --no-split-sentences."
        )
    job = replace(job, given_columns=given.to_bytes()) if job.kind == "jsonl" else job
    return job, given.numbered and splits_prose


def _report(parts: Parts, place: Place) -> list[str]:
    tally = ParseTally()
    notes: list[str] = []
    for record in parts.records():
        tally.add(record["tally"])
        notes = notes or record["notes"]  # the same is true of later blocks
    for note in notes:
        warnings.warn(note, RamifyWarning, stacklevel=2)
    lines = list(tally.lines())
    bad = parts.write_bad_rows(place.bad_rows)
    if bad:
        lines.append(f"Rows that could not be read and have no tree: {bad:,}; they are listed in {place.bad_rows}.")
    return lines


def _finish(parts: Parts, place: Place, job: ParseJob, renumber: bool) -> None:
    parts.remove_unfinished()
    if place.is_folder:
        parts.complete()
        return
    with atomic_file(place.out) as handle:
        if job.format == "parquet":
            from ramify.integrations.parquet_output import join_parquet

            join_parquet(handle, parts.checked(), renumber)
        else:
            handle.writelines(parts.checked())
    parts.remove()
