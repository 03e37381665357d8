"""Results with the columns of the table from which their sentences were read."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from ramify.corpus.sentence import Sentence
from ramify.errors import RamifyError, shortened


def with_columns(record: dict[str, object], sentence: Sentence) -> dict[str, object]:
    """A record that begins with the columns of the sentence's row, as JSON values."""
    if sentence.row is None:
        return record
    columns = sentence.row.values()
    check_names(columns, record, sentence.where)
    return {name: _plain(value, name, sentence.where) for name, value in columns.items()} | record


def check_names(columns: Iterable[str], own: Container[str], where: str) -> None:
    """Refuse columns that the result would replace."""
    for name in columns:
        if name in own:
            raise RamifyError(
                f"{where}: the column {shortened(name)} has the name of a column of the result; give the columns to "
                "keep, such as --keep id, or --keep none."
            )


def _plain(value: Any, name: str, where: str) -> object:
    """A value as JSON, which has no dates, no decimals and no NaN."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [_plain(each, name, where) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each, name, where) for key, each in value.items()}
    if isinstance(value, date | time | timedelta | Decimal | UUID):
        return str(value)
    raise RamifyError(
        f"{where}: the column {shortened(name)} contains {type(value).__name__}, which JSON cannot represent; name the "
        "columns to keep with --keep, or write --format parquet."
    )
