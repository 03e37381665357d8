"""A large file in blocks of rows, each of which can be read without the others."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ramify.corpus.constraints import forbidden_spans
from ramify.corpus.guessing import Kind, KnownKind
from ramify.corpus.lines import STANDARD_INPUT, LineReader, decode_lines, open_input, read_text_lines
from ramify.corpus.parquet_rows import number_of_rows, parquet_cells
from ramify.corpus.reading import CONTENTS
from ramify.corpus.sentence import Sentence
from ramify.corpus.streaming import SentenceStream
from ramify.corpus.table_rows import TABLES, Cell, Columns, PlainRow, RowCount, json_cells, sentences_from_cells
from ramify.corpus.text import TextRules
from ramify.errors import RamifyError


@dataclass(frozen=True)
class Block:
    """Consecutive rows of a file: lines of text, lines of JSON, or rows of Parquet."""

    number: int
    """Counted from 0"""
    first_row: int
    """Number of the first row, counted from 1"""
    rows: int
    sentences_before: int
    """Number of sentences in the earlier blocks, if every row is one sentence"""
    begin: int = 0
    """Offset of its first line in the file, in bytes"""
    end: int = 0
    sha256: str = ""
    """Checksum of its lines or, for Parquet, of the whole file"""


@dataclass(frozen=True)
class CutFile:
    """A file and its blocks, whose ends depend only on the file and the block size."""

    kind: KnownKind
    blocks: list[Block]

    @property
    def checksum(self) -> str:
        """Checksum of the whole input."""
        return hashlib.sha256("".join(block.sha256 for block in self.blocks).encode()).hexdigest()


def cut(file: Path, kind: Kind, size: int, splits_prose: bool, on_bytes: Callable[[int], None]) -> CutFile:
    """Cut a file into blocks of `size` rows; the last one may be shorter, and there is at least one.

    Blank lines of JSON are not counted. Prose that is split into sentences is cut only at blank lines, so no sentence
    is divided.
    """
    if file == STANDARD_INPUT or not file.is_file():
        raise RamifyError(f"{file}: cannot be read in blocks; give a regular file, or use the local engine.")
    with open_input(file) as raw:
        reader = LineReader(raw, str(file), on_bytes)
        known = reader.guessed_kind() if kind == "auto" else kind
        if known not in ("text", *TABLES):
            raise RamifyError(
                f"{file}: contains {CONTENTS[known]}, which cannot be read in blocks; use the local engine, or give "
                "text, JSON lines or Parquet."
            )
        if known == "parquet":
            return CutFile(known, list(_cut_rows(file, size, _checksum(file, on_bytes))))
        if reader.is_compressed:
            raise RamifyError(
                f"{file}: is compressed and cannot be read in blocks; decompress it, or use the local engine."
            )
        return CutFile(known, list(_cut_lines(reader, size, known == "jsonl", splits_prose and known == "text")))


def _cut_lines(lines: Iterable[bytes], size: int, skips_blank: bool, in_paragraphs: bool) -> Iterator[Block]:
    block, counted, digest = Block(0, 1, 0, 0), 0, hashlib.sha256()
    rows, end = 0, 0
    for line in lines:
        digest.update(line)
        rows += 1
        end += len(line)
        counted += not (skips_blank and _is_blank(line))
        if counted >= size and (not in_paragraphs or _is_blank(line)):
            yield replace(block, rows=rows, end=end, sha256=digest.hexdigest())
            before = block.sentences_before + counted
            block = Block(block.number + 1, block.first_row + rows, 0, before, end, end)
            rows = counted = 0
            digest = hashlib.sha256()
    if counted or not block.number:
        yield replace(block, rows=rows, end=end, sha256=digest.hexdigest())


def _is_blank(line: bytes) -> bool:
    """Whether a line is blank, including white space that is not ASCII."""
    return not line.strip() or not (line.isascii() or line.decode(errors="replace").strip())


def _cut_rows(file: Path, size: int, checksum: str) -> Iterator[Block]:
    total = number_of_rows(file, str(file))
    for number, first in enumerate(range(0, max(total, 1), size)):
        yield Block(number, first + 1, min(size, total - first), first, sha256=checksum)


def _checksum(file: Path, on_bytes: Callable[[int], None]) -> str:
    with file.open("rb") as handle:
        found = hashlib.file_digest(handle, "sha256").hexdigest()
        on_bytes(handle.tell())
    return found


def check_columns(file: Path, kind: KnownKind, columns: Columns) -> None:
    """Refuse a table without these columns, judged by the first readable row."""
    if kind == "parquet":
        next(parquet_cells(file, str(file), columns), None)
    if kind != "jsonl":
        return
    with open_input(file) as raw:
        for number, line in enumerate(LineReader(raw, str(file)), start=1):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                columns.check(f"{file}, line {number}", list(record))
                return


BadRow = Callable[[int, RamifyError], None]
"""Called with the number of a row that cannot be read, and why"""


class BlockReader(SentenceStream):
    """The sentences of one block at a time, the same as those of the whole file.

    A row that cannot be read is reported to `on_bad_row` and read as a row without text.
    """

    def __init__(
        self,
        file: Path,
        kind: Kind,
        known: KnownKind,
        text_rules: TextRules,
        split_sentences: bool | None,
        columns: Columns | None,
        on_bad_row: BadRow,
    ) -> None:
        super().__init__(file, kind, text_rules, None, split_sentences, columns=columns)
        self.kind = known
        self._check_columns(known)
        if split_sentences and text_rules.splitter is None:
            raise RamifyError(
                f"{file}: this model has not learnt to split prose, and blocks are too short to learn from; leave out "
                "--split-sentences."
            )
        self._known, self._on_bad_row = known, on_bad_row
        self._read_columns = columns or Columns()
        self._splits_prose = text_rules.splitter is not None and split_sentences is not False

    def read(self, block: Block) -> Iterator[Sentence]:
        """The sentences of a block; rows without text are counted in `rows`."""
        if self._known == "parquet":
            rows = range(block.first_row, block.first_row + block.rows)
            return self._tolerant(
                list(parquet_cells(self._file, self.source, self._read_columns, rows=rows)), rows.start
            )
        lines = self._lines(block)
        if self._known == "text" and self._splits_prose:
            return self._of_text(self._readable(lines, block.first_row), block.first_row)
        return self._tolerant(lines, block.first_row)

    def _lines(self, block: Block) -> list[bytes]:
        with open_input(self._file) as raw:
            raw.seek(block.begin)
            data = b""
            while more := raw.read(block.end - block.begin - len(data)):
                data += more
        if hashlib.sha256(data).hexdigest() != block.sha256:
            raise RamifyError(
                f"{self.source}: lines {block.first_row:,} to {block.first_row + block.rows - 1:,} have changed, or "
                "differ on this machine; give a file that all machines share and nobody writes to."
            )
        return io.BytesIO(data).readlines()

    def _tolerant(self, rows: Sequence[bytes] | Sequence[Cell], first_row: int) -> Iterator[Sentence]:
        """The sentences of some rows; if one of the rows is bad, each half is read separately."""
        before, self.rows = self.rows, RowCount()
        try:
            found = list(map(_with_valid_constraints, self._of_block(rows, first_row)))
        except RamifyError as error:
            self.rows = before
            if half := len(rows) // 2:
                yield from self._tolerant(rows[:half], first_row)
                yield from self._tolerant(rows[half:], first_row + half)
                return
            self._on_bad_row(first_row, error)
            found = [self._without_text(rows[0], first_row)]
        else:
            before.add_all(self.rows)
            self.rows = before
        yield from found

    def _of_block(self, rows: Sequence[Any], first_row: int) -> Iterator[Sentence]:
        if self._known == "text":
            return self._of_text(read_text_lines(rows, self.source, first_row), first_row)
        return self._of_rows(iter(rows) if self._known == "parquet" else self._json_cells(rows, first_row))

    def _json_cells(self, lines: Sequence[bytes], first_row: int) -> Iterator[Cell]:
        texts = read_text_lines(lines, self.source, first_row)
        return json_cells(texts, self.source, self._read_columns, first_row, is_first=False)

    def _without_text(self, row: bytes | Cell, number: int) -> Sentence:
        """The substitute for a bad row: an empty sentence with the other columns, if they can be read."""
        where = f"{self.source}, line {number}"
        if isinstance(row, bytes) and self._known == "text":
            return Sentence("", (), (), where)
        try:
            [cell] = [row] if isinstance(row, Cell) else self._json_cells([row], number)
        except RamifyError:
            cell = Cell(None, PlainRow({}), where)
        [sentence] = sentences_from_cells([replace(cell, content=None)], self._text_rules, RowCount())
        return sentence

    def _readable(self, lines: list[bytes], first_row: int) -> Iterator[str]:
        """The lines of prose, blank where they cannot be read."""
        for number, line in enumerate(lines, start=first_row):
            try:
                yield from decode_lines([line], self.source, number)
            except RamifyError as error:
                self._on_bad_row(number, error)
                yield "\n"


def _with_valid_constraints(sentence: Sentence) -> Sentence:
    forbidden_spans(sentence)
    return sentence
