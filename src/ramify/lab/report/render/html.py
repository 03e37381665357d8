"""Tables for the page."""

from __future__ import annotations

from html import escape

from ramify.lab.report.report_table import Cell, Number, Table


def table_html(table: Table) -> str:
    """Title, table and notes; every text in it is escaped."""
    kinds = [_classes(table, place) for place in range(len(table.columns))]
    heads = "".join(
        f'<th scope="col"{kind}>{_head(column.head)}</th>'
        for column, kind in zip(table.columns, kinds, strict=True)
    )  # fmt: skip
    rows = []
    for part in table.parts:
        if part.heading:
            rows.append(f'<tr class="part"><th colspan="{len(table.columns)}">{escape(part.heading)}</th></tr>')
        rows += [
            "<tr>" + "".join(f"<td{kind}>{_cell(c)}</td>" for c, kind in zip(row, kinds, strict=True)) + "</tr>"
            for row in part.rows
        ]
    body = (
        f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
        f'<p class="notes">{escape(" ".join(table.notes))}</p>'
    )
    title = escape(table.title)
    if table.folded:
        return f"<details><summary>{title}</summary>{body}</details>"
    return f'<section class="table"><h3>{title}</h3>{body}</section>'


def _head(text: str) -> str:
    """Broken between words alone, not at the hyphens of a name."""
    return " ".join(f"<span>{escape(word)}</span>" for word in text.split())


def _classes(table: Table, place: int) -> str:
    names = ["number"] if table.is_numeric(place) else []
    names += ["faint"] if table.columns[place].faint else []
    return f' class="{" ".join(names)}"' if names else ""


def _cell(cell: Cell) -> str:
    if isinstance(cell, Number):
        return cell.shown + (f'<span class="std"> ±{cell.shown_std}</span>' if cell.std is not None else "")
    return escape(cell or "")
