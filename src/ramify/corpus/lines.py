"""The lines of a file or a pipe, compressed or not, as text."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import select
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from io import FileIO
from pathlib import Path
from typing import IO, cast

from ramify.corpus.guessing import HEAD, KnownKind, guess_kind, is_undecided
from ramify.errors import RamifyError

STANDARD_INPUT = Path("-")
LONGEST_LINE = 1 << 28
_GZIP = b"\x1f\x8b"


class LineReader:
    """The lines of a file or a pipe, decompressed if it is gzip, and whether the next one has arrived."""

    def __init__(self, raw: FileIO, source: str, on_bytes: Callable[[int], None] = lambda _: None) -> None:
        self._raw, self._source, self._on_bytes = raw, source, on_bytes
        self._gzip: gzip.GzipFile | None = None
        self._lines_ready = 0
        # On other systems, select works only for sockets.
        self._may_block = os.name == "posix" and not stat.S_ISREG(os.fstat(raw.fileno()).st_mode)
        self.head = self._read_raw(HEAD)
        """Bytes that were read to guess the kind, before any line is returned"""
        if self.head == _GZIP[:1]:
            self.head += self._read_raw(HEAD)
        if self.head.startswith(_GZIP):
            self._gzip = gzip.GzipFile(fileobj=cast("IO[bytes]", _HeadAndRest(self.head, self._read_raw)), mode="rb")
            self._may_block = False
            self.head = self._read(HEAD)

    @property
    def is_compressed(self) -> bool:
        """Whether the file is compressed."""
        return self._gzip is not None

    def guessed_kind(self) -> KnownKind:
        """Trees, CoNLL-U or text; reads on if a pipe has delivered only a part of the first tree or line."""
        while len(self.head) < HEAD and is_undecided(self.head):
            more = self._read(HEAD - len(self.head))
            if not more:
                break
            self.head += more
        return guess_kind(self.head)

    def _read(self, size: int) -> bytes:
        if self._gzip is None:
            return self._read_raw(size)
        try:
            return self._gzip.read1(size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise RamifyError(
                f"{self._source}: the gzip data is damaged or truncated; download or compress the file again."
            ) from error

    def _read_raw(self, size: int) -> bytes:
        try:
            found = self._raw.read(size) or b""
        except OSError as error:
            raise RamifyError(f"{self._source}: cannot be read ({error.strerror}); check the file.") from error
        self._on_bytes(len(found))
        return found

    def __iter__(self) -> Iterator[bytes]:
        pieces: list[bytes] = []
        chunk, size = self.head, 0
        while chunk:
            *ended, rest = chunk.split(b"\n")
            if ended:
                ended[0] = b"".join([*pieces, ended[0]])
                pieces, size = [], 0
            self._lines_ready = len(ended)
            for line in ended:
                self._lines_ready -= 1
                yield line + b"\n"
            pieces.append(rest)
            size += len(rest)
            if size > LONGEST_LINE:
                raise RamifyError(
                    f"{self._source}: a line is longer than {LONGEST_LINE >> 20} MB; give text with one sentence "
                    "per line."
                )
            chunk = self._read(HEAD)
        if size:
            yield b"".join(pieces)

    def would_block(self) -> bool:
        """Whether the next read would wait for more data from the pipe."""
        return self._may_block and not self._lines_ready and not select.select([self._raw], [], [], 0)[0]


class _HeadAndRest:
    """A stream of the bytes that were already read from a file, and then the rest of the file."""

    def __init__(self, head: bytes, read_rest: Callable[[int], bytes]) -> None:
        self._head, self._read_rest = head, read_rest

    def read(self, size: int) -> bytes:
        found, self._head = self._head[:size], self._head[size:]
        return found or self._read_rest(size)


def open_input(file: Path) -> FileIO:
    """A file or, for `-`, standard input, unbuffered."""
    if file == STANDARD_INPUT and sys.stdin is None:
        raise RamifyError("standard input is closed; give the name of a file.")
    try:
        # The process's own standard input stays open when this reader is closed.
        return FileIO(sys.stdin.fileno(), closefd=False) if file == STANDARD_INPUT else FileIO(file)
    except OSError as error:
        raise RamifyError(f"{file}: cannot be read ({error.strerror}); check its name and permissions.") from error


def read_beginning(file: Path) -> bytes:
    """The first bytes of a file, after decompression."""
    with open_input(file) as raw:
        return LineReader(raw, str(file)).head


def read_text_lines(handle: Iterable[bytes], source: str, first_line: int = 1) -> Iterator[str]:
    """The lines of a UTF-8 file, or those from `first_line` on.

    A file without line feeds ends its lines with carriage returns, as on old Macs.
    """
    lines = decode_lines(handle, source, first_line)
    for first in lines:
        yield from [first] if first.endswith("\n") or first_line > 1 else io.StringIO(first, newline=None)
        break
    yield from lines


def decode_lines(handle: Iterable[bytes], source: str, first_line: int = 1, encoding: str = "utf-8") -> Iterator[str]:
    """Lines of text, without a byte order mark; an error names a line that is not in the encoding."""
    for number, line in enumerate(handle, start=first_line):
        try:
            text = line.decode(encoding)
        except UnicodeDecodeError as error:
            other = "utf-16" if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "latin1"
            raise RamifyError(
                f"{source}, line {number}: this is not {encoding.upper()}; convert the file, "
                f"for example with iconv -f {other} -t utf-8."
            ) from error
        if "\0" in text:
            raise RamifyError(
                f"{source}, line {number}: contains a NUL character, so it is not {encoding.upper()} text; convert the "
                "file, or remove the character."
            )
        yield text.removeprefix("\ufeff") if number == 1 else text
