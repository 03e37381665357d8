"""Trees, CoNLL-U, tables or text, guessed from how a file or a line begins."""

from __future__ import annotations

import json
import re
import warnings
from typing import Literal

from ramify.errors import RamifyWarning

Kind = Literal["auto", "text", "brackets", "conllu", "jsonl", "parquet"]
KnownKind = Literal["text", "brackets", "conllu", "jsonl", "parquet"]

HEAD = 1 << 16
"""Bytes of a file that are enough to guess its kind"""

# Trees of a single leaf, then `(S (NP the` up to the first `)`. Labels touch their bracket, unlike words of
# tokenised text such as `( see ( smith 2010 ) )`; outer ones are empty or begin with a letter or digit.
_LOOKS_LIKE_TREES = re.compile(
    r"\s*+(?:\([^\s()]++[ \t]++[^\s()]++\)\s*+)*+"
    r"(?P<tree>(?:\((?:\w[^\s()]*+)?+\s*+(?=\())++\([^\s()]++\s++[^()]*+\))"
)
# A truncated tree followed by one of these looks like a whole tree: it may be cut before, in or after a label, in a
# word, or in or after a tree of a single leaf.
_RESTS_OF_TREES = ("((A a)", "(A a)", " a)", ")", ")((A a)", " a)((A a)", "a)((A a)")

# Comments at the beginning of a file, and those that treebanks in CoNLL-U have.
_COMMENTS = re.compile(r"(?:[ \r\n]*+#[^\r\n]*+[\r\n]++)*+[ \r\n]*+")
_COMMENT_OF_CONLLU = re.compile(r"^#\s*(?:sent_id|text|newdoc|newpar|global\.columns)\b", re.MULTILINE)
_NUMBERED = re.compile(r"[0-9]+(?:[-.][0-9]+)?\s")
_UPOS = re.compile(r"_|[A-Z]+")
_HEAD_COLUMN = re.compile(r"_|[0-9]+")

_PARQUET = b"PAR1"
_BEGINS_AN_OBJECT = re.compile(r"\s*+\{")
_FIRST_COLUMN = re.compile(r'\s*+\{\s*+"(?:[^"\\]|\\.)*+"\s*+:')


def guess_kind(data: bytes) -> KnownKind:
    """`brackets` if the file begins like a tree and no word follows the end of that tree, `conllu` if its first line
    after comments begins like a word of CoNLL-U, even a damaged one, `jsonl` if its first line is a JSON object.
    """
    if data.startswith(_PARQUET):
        return "parquet"
    head = _head(data)
    if _looks_like_json(head):
        return "jsonl"
    match = _LOOKS_LIKE_TREES.match(head)
    if match is None:
        return "conllu" if _looks_like_conllu(head) else "text"
    rest = _after_tree(head[match.start("tree") :])
    return "brackets" if rest is None or rest.lstrip()[:1] in ("", "(", ")") else "text"


def is_undecided(data: bytes) -> bool:
    """Whether `data` is too short to guess the kind of a file, because it ends in the first tree or line."""
    head = _head(data)
    if _BEGINS_AN_OBJECT.match(head):
        return "\n" not in head.lstrip()
    match = _LOOKS_LIKE_TREES.match(head)
    if match is None:
        return _first_word_is_cut(head) or any(_LOOKS_LIKE_TREES.match(head + rest) for rest in _RESTS_OF_TREES)
    after = _after_tree(head[match.start("tree") :])
    # The rest of the tree's last line distinguishes trees from text.
    return after is None or not (after.strip() or "\n" in after)


def _looks_like_json(head: str) -> bool:
    """Whether the first line is an object; if the line is longer than `data`, only its first column is checked."""
    if not _FIRST_COLUMN.match(head):
        return False
    line, ended, _ = head.lstrip().partition("\n")
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return not ended


def _looks_like_conllu(head: str) -> bool:
    comments, rest = _after_comments(head)
    line = re.split("[\r\n]", rest, maxsplit=1)[0]
    columns, fields = line.split("\t"), line.split()
    if not _NUMBERED.match(line):
        return len(columns) == 10
    if len(columns) > 6 or _COMMENT_OF_CONLLU.search(comments):
        return True
    # Tabs may have been replaced by spaces.
    return len(fields) == 10 and bool(_UPOS.fullmatch(fields[3]) and _HEAD_COLUMN.fullmatch(fields[6]))


def _first_word_is_cut(head: str) -> bool:
    """Whether the incomplete line after all comments may be the beginning of a word of CoNLL-U."""
    comments, rest = _after_comments(head)
    if "\n" in rest or "\r" in rest:
        return False
    return rest[:1].isdigit() or rest.startswith("#") or "\t" in rest or bool(comments and not rest)


def _after_comments(head: str) -> tuple[str, str]:
    found = _COMMENTS.match(head)
    end = found.end() if found else 0
    return head[:end], head[end:]


def _head(data: bytes) -> str:
    return data[:HEAD].decode("utf-8-sig", errors="replace")


def _after_tree(text: str) -> str | None:
    """The text after the tree with which `text` begins; None if the tree is not closed."""
    depth = 0
    for bracket in re.finditer(r"[()]", text):
        depth += 1 if bracket.group() == "(" else -1
        if depth == 0:
            return text[bracket.end() :]
    return None


def warn_about_tree(line: str, where: str) -> bool:
    """Warn if a line of text is a whole bracketed tree; returns whether it is one."""
    text = line.strip()
    found = text.startswith("(") and guess_kind(text.encode()) == "brackets" and _after_tree(text) == ""
    if found:
        warnings.warn(
            f"{where}: this looks like a bracketed tree in a text file, and its brackets and labels are read as words; "
            "remove it or, if the file contains only trees, add --input brackets.",
            RamifyWarning,
            stacklevel=2,
        )
    return found
