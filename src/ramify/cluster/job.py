"""The description of a job for its workers: plain values, sent to other machines as JSON."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ramify.corpus.guessing import Kind, KnownKind
from ramify.corpus.table_rows import Columns
from ramify.decoding.heads import HeadDecoder

SUFFIXES = {
    "brackets": ".txt", "json": ".jsonl", "pretty": ".txt", "spans": ".txt", "conllu": ".conllu", "forest": ".tex",
    "qtree": ".tex", "parquet": ".parquet",
}  # fmt: skip
"""File name extensions of parts, by format; other formats cannot be written in parts"""


class ParseJob(Struct, frozen=True):
    """One file, parsed by one model in one way. All paths are absolute."""

    models: tuple[str, ...]
    """If there are several, their average parses"""
    file: str
    input: Kind
    kind: KnownKind
    """Kind of file, given by `input` or guessed"""
    format: str
    posteriors: bool = False
    decoder: str = "mbr"
    best: int | None = None
    branching: float | None = None
    heads: HeadDecoder = "projective"
    constraints: str | None = None
    """`inline` or `punctuation`"""
    columns: Columns | None = None
    tokenise: str | None = None
    split_sentences: bool | None = None
    max_length: int | None = None
    strict: bool = False
    compressed: bool = False
    device: str = "auto"
    threads: int = 1
    metadata: dict[str, str] = {}
    """For Parquet: model and options of the result"""
    given_columns: bytes | None = None
    """For Parquet from JSON lines: all columns, with the types of the first rows"""

    @property
    def suffix(self) -> str:
        """The file name extension of the parts."""
        return SUFFIXES[self.format] + (".gz" if self.compressed else "")

    def as_json(self) -> str:
        """A string for `from_json` in another process."""
        return msgspec.json.encode(self).decode()

    @staticmethod
    def from_json(text: str) -> ParseJob:
        """The job that `as_json` wrote."""
        return msgspec.json.decode(text, type=ParseJob)
