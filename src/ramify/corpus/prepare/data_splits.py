"""Divides a treebank without a standard split into train, dev and test."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from math import gcd

from ramify.corpus.reading import SPLITS
from ramify.errors import RamifyError

DEFAULT_SPLIT = "80/10/10"
BLOCK = 50
"""Neighbouring trees that stay together, because neighbours in a text are similar; fewer if the treebank is small"""

_SHARES = re.compile(r"(\d{1,4})/(\d{1,4})/(\d{1,4})")
_HOW = "give --split percentages such as 80/10/10, or file names such as 'train=a.mrg,b.mrg dev=c.mrg test=d.mrg'"


def read_shares(text: str) -> tuple[int, int, int] | None:
    """`80/10/10` in lowest terms, (8, 1, 1); None if `text` gives file names."""
    match = _SHARES.fullmatch(text.strip())
    if match is None:
        return None
    train, dev, test = (int(share) for share in match.groups())
    if 0 in (train, dev, test):
        raise RamifyError(f"The split {text} leaves one of {', '.join(SPLITS)} empty; {_HOW}.")
    common = gcd(train, dev, test)
    return train // common, dev // common, test // common


def block_splits(trees: int, shares: tuple[int, int, int]) -> list[str]:
    """The split of each tree: in every `sum(shares)` blocks, the first are train, followed by dev and test."""
    blocks = [split for split, share in zip(SPLITS, shares, strict=True) for _ in range(share)]
    if trees < len(blocks):
        raise RamifyError(f"{trees} trees are too few for a split of {'/'.join(map(str, shares))}; {_HOW}.")
    size = min(BLOCK, trees // len(blocks))
    return [blocks[tree // size % len(blocks)] for tree in range(trees)]


def split_files(names: Iterable[str], text: str) -> dict[str, str]:
    """The split of each file that `text` names, such as `train=0*.mrg,1*.mrg dev=22.mrg test=23.mrg`."""
    patterns: dict[str, list[str]] = {}
    for part in text.split():
        split, equals, globs = part.partition("=")
        if split not in SPLITS or not equals or not globs or split in patterns:
            raise RamifyError(f"The split {text!r} is invalid at {part!r}; {_HOW}.")
        patterns[split] = globs.split(",")
    chosen: dict[str, str] = {}
    names = list(names)
    for split, globs_of_split in patterns.items():
        for pattern in globs_of_split:
            matched = [name for name in names if fnmatchcase(name, pattern)]
            if not matched:
                raise RamifyError(f"The split {text!r} names {pattern!r} for {split}, but no such file exists; {_HOW}.")
            for name in matched:
                if chosen.setdefault(name, split) != split:
                    raise RamifyError(
                        f"The split {text!r} puts {name} into {chosen[name]} and {split}; keep one of the two."
                    )
    return chosen
