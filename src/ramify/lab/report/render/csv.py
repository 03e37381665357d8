"""Tables for other programs."""

from __future__ import annotations

import csv
import io

from ramify.lab.report.report_table import Cell, Number, Table


def table_csv(table: Table) -> str:
    """A line of heads and a line a row, figures in full; deviations are columns of their own."""
    with_parts = any(part.heading for part in table.parts)
    has_std = [table.has_std(place) for place in range(len(table.columns))]
    heads = [table.part_head or "part"] if with_parts else []
    for column, split in zip(table.columns, has_std, strict=True):
        heads += [column.head, f"{column.head} std"] if split else [column.head]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(heads)
    for part in table.parts:
        for row in part.rows:
            line = [part.heading] if with_parts else []
            for cell, split in zip(row, has_std, strict=True):
                line += [_value(cell), _std(cell)] if split else [_value(cell)]
            writer.writerow(line)
    return out.getvalue()


def _value(cell: Cell) -> str:
    if isinstance(cell, Number):
        return f"{cell.value:.0f}" if cell.value == int(cell.value) else f"{cell.value:.6g}"
    return cell or ""


def _std(cell: Cell) -> str:
    return f"{cell.std:.6g}" if isinstance(cell, Number) and cell.std is not None else ""
