"""Tables of reports on results that a test makes up, as rows to compare."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ramify.lab.report.exhibit import Cell, Exhibit
from ramify.lab.results.collection import Collection, collect_results
from tests.lab.made_results import put, tiny


def made(folder: Path, *records: dict[str, Any]) -> Collection:
    for record in records:
        put(folder, record)
    return collect_results(folder)


def rows(exhibit: Exhibit) -> list[dict[str, Cell]]:
    assert exhibit.table is not None
    return [dict(zip(exhibit.table.heads, row, strict=True)) for row in exhibit.table.rows]


def table_of(section: Iterable[Exhibit], place: int = 0) -> Exhibit:
    return [exhibit for exhibit in section if exhibit.table][place]


def baseline(data: str, name: str, f1: float, **evaluation: Any) -> dict[str, Any]:
    return tiny(data, name, 0, f1, kind="baseline", evaluation=evaluation)
