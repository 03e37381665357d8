"""The rows of a Parquet file, by pyarrow, which is imported when a file is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ramify.corpus.table_rows import Cell, Columns, Row
from ramify.errors import RamifyError

ROWS_AT_ONCE = 1024


def pyarrow() -> Any:
    """The library."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise RamifyError("Parquet needs pyarrow; install it with: pip install 'ramify[parquet]'.") from error
    return pyarrow


@dataclass(frozen=True)
class ParquetRow(Row):
    """A row of a batch; its values keep the types of the file until they are used."""

    batch: Any
    """pyarrow.RecordBatch with the columns that are copied to the result"""
    index: int

    def values(self) -> Mapping[str, Any]:
        """By name, in terms of Python."""
        found: list[dict[str, Any]] = self.batch.slice(self.index, 1).to_pylist()
        return found[0] if found else {}


def parquet_cells(
    file: Path,
    source: str,
    columns: Columns,
    on_bytes: Callable[[int], None] = lambda _: None,
    rows: range | None = None,
) -> Iterator[Cell]:
    """The rows of a file, read in pieces. `rows` are the numbers of the rows to read, counted from 1 (None: all)."""
    arrow = pyarrow()
    if not file.is_file():
        raise RamifyError(f"{source}: Parquet is read from its end, so it cannot come from a pipe; give a file.")
    try:
        with arrow.parquet.ParquetFile(file) as table:
            schema = table.schema_arrow
            _check(arrow, schema, columns, source)
            kept = columns.kept(schema.names)
            share = file.stat().st_size / max(table.metadata.num_rows, 1)
            wanted = range(1, table.metadata.num_rows + 1) if rows is None else rows
            groups, number = _row_groups(table.metadata, wanted)
            for batch in table.iter_batches(ROWS_AT_ONCE, groups, columns=[columns.text, *kept]):
                texts, others = batch.column(columns.text).to_pylist(), batch.select(kept)
                for index, content in enumerate(texts):
                    number += 1
                    if number in wanted:
                        yield Cell(content, ParquetRow(others, index), f"{source}, row {number}")
                on_bytes(int(share * len(texts)))
                if number >= wanted.stop - 1:
                    break
    except (arrow.ArrowException, OSError, ValueError, KeyError) as error:
        raise _unreadable(source, error) from error


def _row_groups(metadata: Any, wanted: range) -> tuple[list[int], int]:
    """The row groups that contain these rows, and the number of rows before the first of these groups."""
    groups, before, number = [], 0, 0
    for group in range(metadata.num_row_groups):
        count = metadata.row_group(group).num_rows
        if number + count < wanted.start:
            before += count
        elif number + 1 < wanted.stop:
            groups.append(group)
        number += count
    return groups, before


def number_of_rows(file: Path, source: str) -> int:
    """The metadata at the end of the file."""
    arrow = pyarrow()
    try:
        return int(arrow.parquet.read_metadata(file).num_rows)
    except (arrow.ArrowException, OSError) as error:
        raise _unreadable(source, error) from error


def _unreadable(source: str, error: Exception) -> RamifyError:
    reason = str(error).partition("\n")[0][:120]
    return RamifyError(f"{source}: cannot be read as Parquet ({reason}); get a complete copy of the file.")


def _check(arrow: Any, schema: Any, columns: Columns, source: str) -> None:
    """Refuse, before anything is parsed, a table without a column of text or of tokens."""
    columns.check(source, schema.names)
    kind, types = schema.field(columns.text).type, arrow.types

    def is_text(each: Any) -> bool:
        if types.is_dictionary(each):
            each = each.value_type
        return bool(types.is_string(each) or types.is_large_string(each) or types.is_string_view(each))

    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if not (is_text(kind) or types.is_null(kind) or (is_list and is_text(kind.value_type))):
        raise RamifyError(
            f"{source}: the column {columns.text!r} contains {kind}, not text or lists of tokens; name another column "
            "with --column."
        )
