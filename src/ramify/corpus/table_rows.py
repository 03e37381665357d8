"""Sentences from the rows of a table: one column contains text or lists of tokens, the others are copied."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ramify.corpus.sentence import Sentence
from ramify.corpus.text import TextRules, split_prose
from ramify.corpus.tokenising import WHITE_SPACE, warn_about_prose, warn_about_script
from ramify.errors import RamifyError, shortened

TABLES = ("jsonl", "parquet")
"""Kinds of input that have columns"""
TEXT = "text"
"""The default column"""
MAX_NAMED = 5
"""Maximum number of rows or columns that a message names"""


@dataclass(frozen=True)
class Columns:
    """The columns of a table to read."""

    text: str = TEXT
    """Contains the text of each row, or a list of its tokens"""
    keep: tuple[str, ...] | None = None
    """Columns that are copied to the result; None for all others"""

    def kept(self, names: Iterable[str]) -> list[str]:
        """The columns of a table to copy; the text itself is part of every result."""
        chosen = None if self.keep is None else set(self.keep)
        return [name for name in names if name != self.text and (chosen is None or name in chosen)]

    def check(self, where: str, names: Sequence[str]) -> None:
        """Refuse a table without these columns, given the names of all its columns."""
        shown = ", ".join(map(shortened, names[:MAX_NAMED])) + (", ..." if names[MAX_NAMED:] else "")
        if self.text not in names:
            raise RamifyError(
                f"{where}: has no column {shortened(self.text)}, only {shown or 'none at all'}; name the column "
                "that contains the text with --column."
            )
        for name in self.keep or ():
            if name not in names:
                raise RamifyError(f"{where}: has no column {shortened(name)} to keep, only {shown}; correct --keep.")


class Row(ABC):
    """The columns of a row that are copied to the results of its sentences."""

    @abstractmethod
    def values(self) -> Mapping[str, Any]:
        """By name, in terms of Python."""


@dataclass(frozen=True)
class PlainRow(Row):
    """A row whose values are already in memory."""

    columns: Mapping[str, Any]

    def values(self) -> Mapping[str, Any]:
        """By name, in terms of Python."""
        return self.columns


@dataclass(frozen=True)
class Cell:
    """The content of one row in the column of the text, and its other columns."""

    content: Any
    row: Row
    where: str


@dataclass
class RowCount:
    """Rows without text, which are read like blank lines: as a sentence without tokens."""

    empty: int = 0
    named: list[str] = field(default_factory=list)

    def add(self, where: str) -> None:
        """Count one row without text."""
        self.empty += 1
        if len(self.named) < MAX_NAMED:
            self.named.append(where)

    def add_all(self, other: RowCount) -> None:
        """Add the counts of the next part of the same table."""
        self.empty += other.empty
        self.named = [*self.named, *other.named][:MAX_NAMED]

    def lines(self) -> Iterator[str]:
        """Lines to report."""
        if self.empty:
            more = "; ..." if self.empty > len(self.named) else ""
            yield f"Rows without text: {self.empty:,} ({'; '.join(self.named)}{more})."


def sentences_from_cells(cells: Iterable[Cell], rules: TextRules, count: RowCount) -> Iterator[Sentence]:
    """At least one sentence per row: several if the rules split prose, one without tokens if there is no text."""
    warned = False
    for cell in cells:
        if cell.content is None:
            count.add(cell.where)
        for sentence in _sentences(cell, rules):
            if isinstance(cell.content, str):
                warned = warned or warn_about_script(sentence.text, cell.where)
                warned = warned or (rules.tokenise == WHITE_SPACE and warn_about_prose(sentence.tokens, cell.where))
            yield replace(sentence, row=cell.row)


def _sentences(cell: Cell, rules: TextRules) -> Iterator[Sentence]:
    content = cell.content
    if isinstance(content, list) and all(isinstance(token, str) and token.strip() for token in content):
        yield rules.sentence_of(content, cell.where)
    elif content is None or isinstance(content, str):
        texts = [content or ""]
        if rules.splitter is not None:
            texts = [text for text, _ in split_prose(texts[0].splitlines(keepends=True), rules.splitter)] or [""]
        for text in texts:
            yield rules.sentence(text, cell.where)
    else:
        raise RamifyError(
            f"{cell.where}: contains {shortened(json.dumps(content, default=str))} where a text or a list of tokens "
            "should be; correct the row, or name another column with --column."
        )


def json_cells(
    lines: Iterable[str], source: str, columns: Columns, first_line: int = 1, is_first: bool = True
) -> Iterator[Cell]:
    """The rows of a file with a JSON object on each line; blank lines are skipped.

    The lines may begin within the file, at `first_line`. With `is_first` the first row must have all columns.
    """
    for number, line in enumerate(lines, start=first_line):
        if not line.strip():
            continue
        where = f"{source}, line {number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise RamifyError(f'{where}: is not JSON; give an object such as {{"text": "..."}} per line.') from error
        if not isinstance(record, dict):
            raise RamifyError(f'{where}: is not an object with columns; give {{"text": "..."}} per line.')
        # A wrong name is already missing in the first row; later rows may lack columns that are null in them.
        if is_first:
            columns.check(where, list(record))
        is_first = False
        kept = {name: record[name] for name in columns.kept(record)}
        yield Cell(record.get(columns.text), PlainRow(kept), where)
