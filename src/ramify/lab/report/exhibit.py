"""The exhibits of a report: tables, figures or both, in no particular format."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ramify.lab.results.schema import Spread


@dataclass(frozen=True)
class Number:
    """A figure as it is shown, with this many digits after the point, and its standard deviation where it has one."""

    value: float
    std: float | None = None
    digits: int = 1

    @property
    def shown(self) -> str:
        """Without the deviation, with separators for thousands."""
        return f"{self.value:,.{self.digits}f}"

    @property
    def shown_std(self) -> str:
        """Empty where there is none."""
        return "" if self.std is None else f"{self.std:,.{self.digits}f}"

    def __str__(self) -> str:
        return f"{self.shown} ±{self.shown_std}" if self.shown_std else self.shown


Cell = str | Number | None
"""None is an empty cell."""
Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """Rows of cells below the heads of their columns, in one part or in several with names, one for each treebank."""

    heads: Sequence[str]
    parts: dict[str, list[Row]]
    published: int = 0
    """How many of the last columns have figures of other authors, which are shown in grey"""

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.heads) for row in self.rows), self.heads

    @property
    def rows(self) -> list[Row]:
        """Those of all parts."""
        return [row for part in self.parts.values() for row in part]

    @property
    def has_parts(self) -> bool:
        """Whether the names of the parts are shown."""
        return len(self.parts) > 1

    def is_faint(self, column: int) -> bool:
        """Whether a column has figures of other authors."""
        return column >= len(self.heads) - self.published

    def is_numeric(self, column: int) -> bool:
        """Whether a column has no words in it, so that it is aligned right."""
        return not any(isinstance(row[column], str) for row in self.rows)

    def without_empty_columns(self) -> Table:
        """Only the columns with content."""
        kept = [i for i in range(len(self.heads)) if any(row[i] not in (None, "") for row in self.rows)]
        parts = {name: [tuple(row[i] for i in kept) for row in rows] for name, rows in self.parts.items()}
        return Table([self.heads[i] for i in kept], parts, sum(map(self.is_faint, kept)))

    def as_csv(self) -> str:
        """A line of heads and a line per row, figures in full; deviations have separate columns."""
        columns = [["data", *(name for name, rows in self.parts.items() for _ in rows)]] if self.has_parts else []
        for place, head in enumerate(self.heads):
            cells = [row[place] for row in self.rows]
            columns.append([head, *map(_value, cells)])
            if any(map(_std, cells)):
                columns.append([f"{head} std", *map(_std, cells)])
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(zip(*columns, strict=True))
        return out.getvalue()


def _value(cell: Cell) -> str:
    if isinstance(cell, Number):
        return f"{cell.value:.0f}" if cell.value == int(cell.value) else f"{cell.value:.6g}"
    return cell or ""


def _std(cell: Cell) -> str:
    return f"{cell.std:.6g}" if isinstance(cell, Number) and cell.std is not None else ""


def mean(found: Spread | None, digits: int = 1) -> Number | None:
    """A spread as a cell: its mean and deviation."""
    return None if found is None else Number(found.mean, found.std, digits)


def best(found: Spread | None) -> Number | None:
    """The maximum of a spread, where there are several runs."""
    return None if found is None or found.std is None else Number(found.best)


def number(value: float | None, digits: int = 1) -> Number | None:
    """A single figure as a cell."""
    return None if value is None else Number(value, None, digits)


@dataclass(frozen=True)
class Exhibit:
    """A table, a figure or both, with one title and one set of notes."""

    kind: str
    """By which `texts.toml` has the caption of the figure"""
    of: tuple[str, ...]
    """Names that make up, with the kind, the name of its files"""
    title: str
    notes: list[str]
    """How it was counted, with how many seeds, on what machine"""
    table: Table | None = None
    draw: Callable[[], Any] | None = None
    """Gives a matplotlib Figure"""
    folded: bool = False
    """Shown on the page only when it is opened"""
    in_print: bool = True
    """Whether the table is also made for LaTeX; a long flat one is for programs"""
    name: str = ""
    """Of its files"""


def file_name(*parts: str) -> str:
    """A file name from names in any script."""
    name = "-".join(filter(None, (re.sub(r"[\W_]+", "-", part.lower()).strip("-") for part in parts)))
    return name.encode("utf-8", "ignore")[:200].decode("utf-8", "ignore")


def title_for(title: str, parts: dict[str, list[Row]]) -> str:
    """A title that names the treebank where there is only one."""
    return title if len(parts) > 1 else f"{title}: {next(iter(parts))}"
