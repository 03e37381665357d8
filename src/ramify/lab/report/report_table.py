"""A table as such, before it is HTML, Markdown, LaTeX or CSV."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ramify.lab.results.collection import Spread


@dataclass(frozen=True)
class Number:
    """A figure as it is shown, with so many digits behind the point, and its standard deviation where there is one."""

    value: float
    std: float | None = None
    digits: int = 1

    @property
    def shown(self) -> str:
        """Without the deviation; thousands are set apart."""
        return f"{self.value:,.{self.digits}f}"

    @property
    def shown_std(self) -> str:
        """Empty where there is none."""
        return "" if self.std is None else f"{self.std:,.{self.digits}f}"


Cell = str | Number | None
"""None is a place where there is nothing to say."""


@dataclass(frozen=True)
class Column:
    """What stands below a head."""

    head: str
    faint: bool = False
    """Not of our own making: shown in grey"""


@dataclass(frozen=True)
class Part:
    """Rows under a heading of their own, or under none."""

    rows: list[tuple[Cell, ...]]
    heading: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns; the notes say how it was counted, with how many seeds, on what machine."""

    name: str
    """Of its files"""
    title: str
    columns: list[Column]
    parts: list[Part]
    notes: list[str] = field(default_factory=list)
    part_head: str = ""
    """What the headings of the parts are; where a table is flat they become its first column"""
    folded: bool = False
    """Shown on the page only when it is opened"""
    in_print: bool = True
    """Whether it is also made for LaTeX; a long flat table is for programs"""

    def __post_init__(self) -> None:
        for part in self.parts:
            for row in part.rows:
                assert len(row) == len(self.columns), (self.name, row)

    def has_std(self, column: int) -> bool:
        """Whether any figure of a column has a deviation."""
        cells = (row[column] for part in self.parts for row in part.rows)
        return any(isinstance(cell, Number) and cell.std is not None for cell in cells)

    def is_numeric(self, column: int) -> bool:
        """Whether a column has no words in it, so that it stands to the right."""
        return all(not isinstance(row[column], str) for part in self.parts for row in part.rows)


def columns(*heads: str) -> list[Column]:
    """Plain ones."""
    return [Column(head) for head in heads]


def mean(found: Spread | None, digits: int = 1) -> Number | None:
    """A spread as a cell: its mean and deviation."""
    return None if found is None else Number(found.mean, found.std, digits)


def best(found: Spread | None, digits: int = 1) -> Number | None:
    """The maximum of a spread, where there are several runs."""
    return None if found is None or found.std is None else Number(found.best, None, digits)


def figure(value: float | None, digits: int = 1) -> Number | None:
    """A single figure as a cell."""
    return None if value is None else Number(value, None, digits)


def without_empty_columns(table_columns: list[Column], rows: Iterable[tuple[Cell, ...]]) -> list[int]:
    """The places of the columns in which something stands."""
    kept = list(rows)
    return [i for i in range(len(table_columns)) if any(row[i] not in (None, "") for row in kept)]
