"""The Chinese Treebank 5.1: `.fid` files, SGML around the trees, split by article."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ramify.corpus.cleaning import WordRule
from ramify.corpus.prepare.passages import Passage, margin_slices, number_passages
from ramify.corpus.prepare.source import TRACE_TAG, Source, file_on_disk, find_files
from ramify.errors import RamifyError

WORD_RULE = WordRule(removed=frozenset({"PU", TRACE_TAG}))

_RELEASED = ((1, 325), (400, 454), (500, 554), (590, 596), (600, 885), (900, 931), (1001, 1078), (1100, 1151))
ARTICLES = frozenset(number for first, last in _RELEASED for number in range(first, last + 1))
"""The 890 articles of release 5.1"""

_FILE = re.compile(r"chtb_(?P<article>\d{3,4})\.fid", re.IGNORECASE)
# `<S ID=1>` and `</S>` can be anywhere; every other tag has a separate line.
_MARK_UP = re.compile(rb"<(?P<sentence>/?S)(?:\s[^<>()\n]*)?>|^[ \t]*<[^(\n]*>[ \t\r]*$", re.MULTILINE | re.IGNORECASE)
_HOLDS_TREES = re.compile(rb"^[ \t]*\(", re.MULTILINE)


def split_of_article(number: int) -> str | None:
    """The split of the published results."""
    if 301 <= number <= 325:
        return "dev"
    if 271 <= number <= 300:
        return "test"
    return "train" if 1 <= number <= 270 or 400 <= number <= 1151 else None


def find_ctb(path: Path, out: Path) -> Source:
    """The files `chtb_NNN.fid` below `path`, those in a folder `bracketed` if there is one."""
    found = find_files(path, _FILE, without=out, preferred="bracketed")
    if not found:
        raise RamifyError(f"{path}: contains no files such as chtb_001.fid; give the folder with the .fid files.")
    articles = {file: int(match["article"]) for file, match in found.items()}
    names = {file: str(file.relative_to(path)) for file in found}
    missing = len(ARTICLES.difference(articles.values()))
    return Source(
        [
            replace(file_on_disk(file, names[file], split), encoding=chinese_encoding)
            for file, article in articles.items()
            if (split := split_of_article(article))
        ],
        word_rule=WORD_RULE,
        cut=cut_at_mark_up,
        unused=[names[file] for file, article in articles.items() if not split_of_article(article)],
        warnings=[f"of the {len(ARTICLES)} articles of CTB 5.1, {missing} are missing"] if missing else [],
    )


def chinese_encoding(data: bytes) -> str:
    """UTF-8 if most lines with non-ASCII characters are UTF-8, else GB18030, which includes GB2312."""
    lines = [line for line in data.splitlines() if not line.isascii()]
    return "utf-8" if 2 * sum(map(_is_utf8, lines)) >= len(lines) else "gb18030"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def cut_at_mark_up(data: bytes) -> Iterator[Passage]:
    """A passage for what follows each `<S>`, and for trees outside of them; other text is left out."""
    slices: list[tuple[int, int]] = []
    start, in_sentence = 0, False
    for mark in [*_MARK_UP.finditer(data), None]:
        end = len(data) if mark is None else mark.start()
        if in_sentence:
            slices.append((start, end))
        elif _HOLDS_TREES.search(data, start, end):
            slices += margin_slices(data, start, end)
        if mark is not None:
            start, in_sentence = mark.end(), (mark["sentence"] or b"").upper() == b"S"
    return number_passages(data, slices)
