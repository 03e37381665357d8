"""Tables for Markdown, as GitHub reads it."""

from __future__ import annotations

import re

from ramify.lab.report.report_table import Cell, Number, Table

_SIGNS = re.compile(r"([\\`*_{}\[\]()#|~!$])")


def table_markdown(table: Table) -> str:
    """Title, table and notes; the headings of parts are a first column."""
    with_parts = any(part.heading for part in table.parts)
    heads = [escape(column.head) for column in table.columns]
    rules = ["--:" if table.is_numeric(place) else "---" for place in range(len(table.columns))]
    rows = [
        ([escape(part.heading if number == 0 else "")] if with_parts else []) + [_cell(cell) for cell in row]
        for part in table.parts
        for number, row in enumerate(part.rows)
    ]
    if with_parts:
        heads, rules = [escape(table.part_head), *heads], ["---", *rules]
    lines = ["| " + " | ".join(row) + " |" for row in (heads, rules, *rows)]
    return "\n".join([f"### {escape(table.title)}", "", *lines, "", escape(" ".join(table.notes)), ""])


def escape(line: str) -> str:
    """`line` as it is, whatever signs are in it."""
    return _SIGNS.sub(r"\\\1", line).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cell(cell: Cell) -> str:
    if isinstance(cell, Number):
        return cell.shown + (f" ±{cell.shown_std}" if cell.std is not None else "")
    return escape(cell or "")
