"""Tables of reports on results that a test makes up, as rows to compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ramify.report.contents.section import Section
from ramify.report.reading import read_runs
from ramify.report.results import Runs
from ramify.report.tables import Cell, Table
from tests.report.made_up import put, tiny


def made(folder: Path, *records: dict[str, Any]) -> Runs:
    for record in records:
        put(folder, record)
    return read_runs(folder)


def rows(table: Table) -> list[dict[str, Cell]]:
    heads = [column.head for column in table.columns]
    return [dict(zip(heads, row, strict=True)) for part in table.parts for row in part.rows]


def table_of(section: Section | None, place: int = 0) -> Table:
    assert section is not None
    return [block for block in section.blocks if isinstance(block, Table)][place]


def baseline(data: str, name: str, f1: float, **evaluation: Any) -> dict[str, Any]:
    return tiny(data, name, 0, f1, kind="baseline", evaluation=evaluation)
