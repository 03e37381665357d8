"""Reading after a corrupt tree: a file is cut into passages where trees may begin, which are read separately."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ramify.corpus.brackets import read_brackets
from ramify.corpus.lines import decode_lines
from ramify.corpus.tree import Parse
from ramify.errors import RamifyError

Passage = tuple[int, bytes]
"""The number of the first line, and the text from this line on"""
Cut = Callable[[bytes], Iterator[Passage]]

_BRACKET_AT_MARGIN = re.compile(rb"^\(", re.MULTILINE)
_BRACKET = re.compile(rb"[()]")


@dataclass(frozen=True)
class Corrupt:
    """A passage that cannot be read."""

    error: RamifyError
    trees: int
    """Number of trees that begin in it, at least one; all are lost"""


def cut_at_margin(data: bytes) -> Iterator[Passage]:
    """A passage from each line that begins with `(` to the next such line."""
    return number_passages(data, margin_slices(data, 0, len(data)))


def margin_slices(data: bytes, start: int, end: int) -> list[tuple[int, int]]:
    """The passages of `data[start:end]`; text before the first `(` is a passage unless it is blank."""
    starts = [match.start() for match in _BRACKET_AT_MARGIN.finditer(data, start, end)]
    if data[start : starts[0] if starts else end].strip():
        starts = [start, *starts]
    return list(zip(starts, [*starts[1:], end], strict=True)) if starts else []


def number_passages(data: bytes, slices: Iterable[tuple[int, int]]) -> Iterator[Passage]:
    """The passages at `slices`, which are in ascending order."""
    line, counted = 1, 0
    for start, end in slices:
        line += data.count(b"\n", counted, start)
        counted = start
        yield line, data[start:end]


def read_passages(
    data: bytes, name: str, cut: Cut, encoding: str, line_filter: Callable[[str], str] | None
) -> Iterator[Parse | Corrupt]:
    """The trees of a file in order, mixed with the passages that cannot be read."""
    for first_line, passage in cut(data):
        lines = decode_lines(io.BytesIO(passage), name, first_line, encoding)
        try:
            trees = list(read_brackets(map(line_filter, lines) if line_filter else lines, name, first_line))
        except RamifyError as error:
            yield Corrupt(error, max(1, count_tree_starts(passage)))
        else:
            yield from trees


def whole_file(data: bytes) -> Iterator[Passage]:
    """The whole file as one passage."""
    yield 1, data


def count_tree_starts(passage: bytes) -> int:
    """The number of brackets that open outside all others; a `)` that closes none is ignored."""
    depth = starts = 0
    for match in _BRACKET.finditer(passage):
        if match.group() == b"(":
            starts += depth == 0
            depth += 1
        else:
            depth = max(0, depth - 1)
    return starts
