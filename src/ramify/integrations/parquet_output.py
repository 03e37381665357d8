"""Analyses as a Parquet file: a row for each sentence, with the columns of the row from which it was read."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, BinaryIO

from ramify.corpus.parquet_rows import ParquetRow, pyarrow
from ramify.corpus.sentence import Sentence
from ramify.errors import RamifyError, shortened
from ramify.parser.analysis import Analysis
from ramify.parser.kept_columns import check_names

ROW_GROUP = 8192
"""Number of sentences that are written together"""
ID = "id"


def write_parquet(
    handle: BinaryIO,
    analyses: Iterable[Analysis],
    about: Mapping[str, str],
    first: int = 1,
    given: GivenColumns | None = None,
) -> None:
    """Write all analyses; `about` becomes the metadata of the file, such as the checksum of the model.

    A table without a column `id` gets one: the number of the sentence, counted from `first`. `given` are the columns of
    the whole table, if the sentences are only a part of it and may not have all of its columns.
    """
    arrow = pyarrow()
    own = _own_schema(arrow)
    numbered = enumerate(((analysis.sentence, _record(analysis)) for analysis in analyses), start=first)
    columns, writer = given, None
    try:
        while True:
            group = list(islice(numbered, ROW_GROUP))
            if writer is not None and not group:
                return
            sentences = [sentence for _, (sentence, _) in group]
            if columns is None or writer is None:
                columns = columns or GivenColumns.of_sentences(sentences)
                schema = arrow.schema([*columns.schema, *own]).with_metadata(
                    {f"ramify.{k}": v for k, v in about.items()}
                )
                writer = _writer(handle, schema)
            ours = arrow.Table.from_pylist([record for _, (_, record) in group], own)
            columns_now = columns.of(sentences, [number for number, _ in group])
            writer.write_table(arrow.table([*columns_now, *ours.columns], schema=schema))
    finally:
        if writer is not None:
            writer.close()


def join_parquet(handle: BinaryIO, parts: Iterable[bytes], renumber: bool) -> None:
    """Join parts of one text that `write_parquet` wrote, as it would have written the whole text.

    With `renumber`, sentences are numbered across all parts.
    """
    arrow = pyarrow()
    number, writer = 1, None
    try:
        for part in parts:
            with arrow.parquet.ParquetFile(arrow.BufferReader(part)) as table:
                if writer is None:
                    # The schema with which the part was written: on reading, items of lists have another name.
                    stored = base64.b64decode(table.metadata.metadata[b"ARROW:schema"])
                    schema = arrow.ipc.read_schema(arrow.py_buffer(stored))
                    writer = _writer(handle, schema)
                for group in range(table.num_row_groups):
                    rows = table.read_row_group(group)
                    if renumber:
                        ids = arrow.array(range(number, number + len(rows)), arrow.int64())
                        rows = rows.set_column(0, ID, ids)
                    number += len(rows)
                    writer.write_table(rows.cast(schema))
    finally:
        if writer is not None:
            writer.close()


def _writer(handle: BinaryIO, schema: Any) -> Any:
    return pyarrow().parquet.ParquetWriter(handle, schema, compression="zstd")


def _own_schema(arrow: Any) -> Any:
    """The columns of a parse; positions are counted in tokens, those of `offsets` in characters."""
    at = [("start", arrow.int32()), ("end", arrow.int32())]
    span = arrow.struct([*at, ("label", arrow.string()), ("posterior", arrow.float32())])
    return arrow.schema(
        [
            ("text", arrow.string()),
            ("tokens", arrow.list_(arrow.string())),
            ("offsets", arrow.list_(arrow.struct(at))),
            ("tags", arrow.list_(arrow.string())),
            ("unknown", arrow.list_(arrow.bool_())),
            ("spans", arrow.list_(span)),
            ("heads", arrow.list_(arrow.int32())),
            ("log_probability", arrow.float64()),
            ("constraint_probability", arrow.float64()),
            ("failure", arrow.string()),
        ]
    )


def _record(analysis: Analysis) -> dict[str, object]:
    """A row; the posterior of a constituent is that of its span with any label."""
    parse, posteriors = analysis.parse, analysis.posteriors
    log_p = analysis.log_probability
    return {
        "text": analysis.sentence.text,
        "tokens": parse.words,
        "offsets": [{"start": start, "end": end} for start, end in analysis.sentence.offsets],
        "tags": parse.tags,
        "unknown": analysis.unknown,
        "spans": [
            {"start": i, "end": j, "label": label, "posterior": float(posteriors[i, j])}
            for (i, j), label in zip(parse.spans.tolist(), parse.labels, strict=True)
        ],
        "heads": analysis.heads,
        "log_probability": log_p if math.isfinite(log_p) else None,
        "constraint_probability": analysis.constraint_probability,
        "failure": analysis.failure,
    }


class GivenColumns:
    """The columns copied from the input; columns of JSON get the types of the first row group."""

    def __init__(self, fields: Any, of_parquet: bool) -> None:
        arrow = self._arrow = pyarrow()
        self._given, self._of_parquet = fields, of_parquet
        self.numbered = ID not in fields.names
        """Whether a column with the number of the sentence is added"""
        self.schema = arrow.schema([(ID, arrow.int64()), *fields]) if self.numbered else fields

    @classmethod
    def of_sentences(cls, sentences: Sequence[Sentence]) -> GivenColumns:
        """The columns with the types of the first sentences."""
        arrow = pyarrow()
        first = sentences[0] if sentences else None
        if first is not None and isinstance(first.row, ParquetRow):
            found = cls(arrow.schema(list(first.row.batch.schema)), of_parquet=True)
        else:
            empty = cls(arrow.schema([]), of_parquet=False)
            names = dict.fromkeys(name for each in sentences if each.row is not None for name in each.row.values())
            found = cls(arrow.schema([empty._inferred(name, sentences) for name in names]), of_parquet=False)
        check_names(found._given.names, _own_schema(arrow).names, first.where if first else "")
        return found

    def to_bytes(self) -> bytes:
        """Bytes for `from_bytes` in another process."""
        return bytes([self._of_parquet]) + bytes(self._given.serialize())

    @classmethod
    def from_bytes(cls, data: bytes) -> GivenColumns:
        """The columns that `to_bytes` wrote."""
        arrow = pyarrow()
        return cls(arrow.ipc.read_schema(arrow.py_buffer(data[1:])), of_parquet=bool(data[0]))

    def of(self, sentences: Sequence[Sentence], numbers: Sequence[int]) -> list[Any]:
        """The columns of the sentences with these numbers."""
        found = self._taken(sentences) if self._of_parquet else self._converted(sentences)
        return [self._arrow.array(numbers, self._arrow.int64()), *found] if self.numbered else found

    def _taken(self, sentences: Sequence[Sentence]) -> list[Any]:
        """Columns from the batches of a Parquet file, with its types."""
        rows = [each.row for each in sentences if isinstance(each.row, ParquetRow)]
        batches = []
        for _, group in groupby(rows, key=lambda row: id(row.batch)):
            same = list(group)
            batches.append(same[0].batch.take(self._arrow.array([row.index for row in same])))
        return list(self._arrow.Table.from_batches(batches, self._given).columns)

    def _converted(self, sentences: Sequence[Sentence]) -> list[Any]:
        known = set(self._given.names)
        for sentence in sentences:
            for name in sentence.row.values() if sentence.row is not None else ():
                if name not in known:
                    raise self._misfit(name, sentence.where, "which no earlier row had")
        return [self._array(each.name, each.type, sentences) for each in self._given]

    def _inferred(self, name: str, sentences: Sequence[Sentence]) -> Any:
        kind = self._array(name, None, sentences).type
        return self._arrow.field(name, self._arrow.string() if self._arrow.types.is_null(kind) else kind)

    def _array(self, name: str, kind: Any, sentences: Sequence[Sentence]) -> Any:
        values = [None if each.row is None else each.row.values().get(name) for each in sentences]
        try:
            return self._arrow.array(values, kind)
        except (self._arrow.ArrowException, TypeError, OverflowError) as error:
            where = next(self._misfits(kind, values, sentences), sentences[0].where)
            raise self._misfit(name, where, "whose type differs from that of the earlier rows") from error

    def _misfits(self, kind: Any, values: Sequence[Any], sentences: Sequence[Sentence]) -> Iterator[str]:
        """The place of the rows that do not fit, or up to which no type can be determined."""
        for place, sentence in enumerate(sentences):
            try:
                self._arrow.array(values[place : place + 1] if kind is not None else values[: place + 1], kind)
            except (self._arrow.ArrowException, TypeError, OverflowError):
                yield sentence.where

    def _misfit(self, name: str, where: str, reason: str) -> RamifyError:
        return RamifyError(
            f"{where}: has a column {shortened(name)} {reason}; Parquet needs the same columns and types in every row, "
            "so name those to keep with --keep."
        )
