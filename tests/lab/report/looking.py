"""Tables of reports on results that a test makes up, as rows to compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ramify.lab.report.report_table import Cell, Table
from ramify.lab.report.sections.section import Section
from ramify.lab.results.collection import Runs
from ramify.lab.results.find_results import read_runs
from tests.lab.report.made_up import put, tiny


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
