"""The Wall Street Journal part of the Penn Treebank: `.mrg` files, split by section."""

from __future__ import annotations

import re
from pathlib import Path

from ramify.corpus.cleaning import PTB_WORDS
from ramify.corpus.prepare.source import Source, file_on_disk, find_files
from ramify.errors import RamifyError

SECTIONS = {**{f"{section:02}": "train" for section in range(2, 22)}, "22": "dev", "23": "test"}

_FILE = re.compile(r"wsj_(?P<section>\d\d)\d\d\.mrg", re.IGNORECASE)


def find_wsj(path: Path, out: Path) -> Source:
    """The files `wsj_SSNN.mrg` below `path`: one folder per section, as LDC ships them, or all in one folder."""
    found = find_files(path, _FILE, without=out)
    if not found:
        raise RamifyError(f"{path}: contains no files such as wsj_0200.mrg; give the folder with the .mrg files.")
    sections = {match["section"] for match in found.values()}
    missing = [section for section in SECTIONS if section not in sections]
    return Source(
        [
            file_on_disk(file, str(file.relative_to(path)), SECTIONS[match["section"]])
            for file, match in found.items()
            if match["section"] in SECTIONS
        ],
        word_rule=PTB_WORDS,
        unused=[str(file.relative_to(path)) for file, match in found.items() if match["section"] not in SECTIONS],
        warnings=[f"sections missing: {' '.join(missing)}"] if missing else [],
    )
