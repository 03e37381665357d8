"""Lines as bytes and as gzip, with a member for each group, after which an unfinished file can be resumed."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import BinaryIO

from ramify.corpus.streaming import WINDOW

_CHUNK = 1 << 20
_WITH_GZIP_HEADER = 31
"""`wbits` of zlib: the largest window, and the header and trailer of gzip"""


def encoded_line(line: str) -> bytes:
    """A line with its line end in UTF-8; file names that are not UTF-8 are escaped."""
    return line.encode("utf-8", "backslashreplace") + b"\n"


class GzipGroups:
    """Writes each group of `size` lines as one member of a gzip file, without time stamps."""

    def __init__(self, handle: BinaryIO, size: int = WINDOW) -> None:
        self._handle, self._size = handle, size
        self._lines = 0
        self._group = io.BytesIO()

    def write(self, line: bytes) -> None:
        """One line with its line end, or several that belong together."""
        self._group.write(line)
        self._lines += 1
        if self._lines == self._size:
            self.flush()

    def flush(self) -> None:
        """End the group; a file has at least one member, because an empty file is not valid gzip."""
        if self._lines or not self._handle.tell():
            self._handle.write(gzip.compress(self._group.getvalue(), mtime=0))
        self._lines, self._group = 0, io.BytesIO()


def whole_members(handle: BinaryIO, size: int) -> tuple[int, int]:
    """The lines of the complete members of `size` lines at the beginning of a file, and where they end."""
    lines = end = 0
    pending = b""
    while True:
        member, found, used = zlib.decompressobj(_WITH_GZIP_HEADER), 0, 0
        while not member.eof:
            chunk = pending or handle.read(_CHUNK)
            pending = b""
            if not chunk:
                return lines, end
            try:
                found += member.decompress(chunk).count(b"\n")
            except zlib.error:
                return lines, end
            used += len(chunk)
        pending = member.unused_data
        used -= len(pending)
        if found != size:
            return lines, end
        lines, end = lines + size, end + used
