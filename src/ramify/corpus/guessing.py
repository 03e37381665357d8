"""Trees or text, guessed from how a file or a line begins."""

from __future__ import annotations

import re
import warnings
from typing import Literal

from ramify.errors import RamifyWarning

Kind = Literal["auto", "text", "brackets"]

HEAD = 1 << 16
"""Bytes of a file that are enough to tell its kind"""

# Trees of a single leaf, then `(S (NP the` up to the first `)`. Labels touch their bracket, unlike words of
# tokenised text such as `( see ( smith 2010 ) )`; outer ones are empty or begin with a letter or digit.
_LOOKS_LIKE_TREES = re.compile(
    r"\s*+(?:\([^\s()]++[ \t]++[^\s()]++\)\s*+)*+"
    r"(?P<tree>(?:\((?:\w[^\s()]*+)?+\s*+(?=\())++\([^\s()]++\s++[^()]*+\))"
)
# What begins like a tree looks like one with some of these behind it: it may end before or in a label, behind it, in
# a word, or in or behind a tree of a single leaf.
_RESTS_OF_TREES = ("((A a)", "(A a)", " a)", ")", ")((A a)", " a)((A a)", "a)((A a)")


def guess_kind(data: bytes) -> Literal["text", "brackets"]:
    """`brackets` if the file begins like a tree and no word follows the end of that tree."""
    head = _head(data)
    match = _LOOKS_LIKE_TREES.match(head)
    if match is None:
        return "text"
    behind = _behind_tree(head[match.start("tree") :])
    return "brackets" if behind is None or behind.lstrip()[:1] in ("", "(", ")") else "text"


def is_undecided(data: bytes) -> bool:
    """Whether the kind of a file that goes on behind `data` cannot be guessed yet: its first tree is not whole."""
    head = _head(data)
    match = _LOOKS_LIKE_TREES.match(head)
    if match is None:
        return any(_LOOKS_LIKE_TREES.match(head + rest) for rest in _RESTS_OF_TREES)
    behind = _behind_tree(head[match.start("tree") :])
    # What follows on the line of the tree's end tells trees from text.
    return behind is None or not (behind.strip() or "\n" in behind)


def _head(data: bytes) -> str:
    return data[:HEAD].decode("utf-8-sig", errors="replace")


def _behind_tree(text: str) -> str | None:
    """What follows the tree that `text` begins with; None if that is not closed."""
    depth = 0
    for bracket in re.finditer(r"[()]", text):
        depth += 1 if bracket.group() == "(" else -1
        if depth == 0:
            return text[bracket.end() :]
    return None


def warn_of_tree(line: str, where: str) -> bool:
    """Warn if a line of text is a whole bracketed tree; whether it is one."""
    text = line.strip()
    found = text.startswith("(") and guess_kind(text.encode()) == "brackets" and _behind_tree(text) == ""
    if found:
        warnings.warn(
            f"{where}: this is a bracketed tree among lines of text, so its brackets and labels are read as words; "
            "remove it or, if all the others are trees too, add --input brackets.",
            RamifyWarning,
            stacklevel=2,
        )
    return found
