"""Bracketed trees, `(S (NP (DT the) (NN dog)) (VP (VBZ barks)))`, read and written without recursion.

How a bracket is read:

- The first word after `(` is its label. If another bracket follows directly, the label is empty.
- A bracket that contains only one word is a leaf: its label is the tag of the word, and it is not a constituent.
- Every other bracket is a constituent. A word directly in it, as in `(NP the dog)` or `(NP the (NN dog))`,
  has no tag and gets `_`.
- The outermost bracket of a tree is not a constituent if its label is empty, `TOP`, `ROOT` or `VROOT`.

Only ASCII white space separates words, so a no-break space inside a number stays inside its word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np

from ramify.corpus.tree import ROOT, UNTAGGED, Parse
from ramify.errors import RamifyError, shortened

OUTERMOST_LABELS = frozenset({"", ROOT, "ROOT", "VROOT"})

# A whole leaf `(TAG word)` on one line is one token, which halves the time of reading.
_TOKEN = re.compile(r"\(([^\s()]+)[ \t]+([^\s()]+)\)|([()]|[^\s()]+)", re.ASCII)
_UNWRITABLE = re.compile(r"[\s\0]", re.ASCII)
_SPECIAL = re.compile(r"[\s\0()]", re.ASCII)


class _TreeBuilder:
    """The tree being read: its finished leaves, its constituents so far, and the brackets still open."""

    def __init__(self, line_number: int) -> None:
        self.first_line = line_number
        self.words: list[str] = []
        self.tags: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.labels: list[str] = []
        self.open_constituents: list[int] = []
        # The innermost bracket while it may still turn out to be a leaf.
        self.undecided = False
        self.label: str | None = None
        self.word: str | None = None

    def open(self) -> None:
        if self.undecided:
            self.decide_for_constituent()
        self.undecided = True
        self.label = self.word = None

    def decide_for_constituent(self) -> None:
        self.undecided = False
        self.open_constituents.append(len(self.labels))
        self.labels.append(self.label or "")
        self.starts.append(len(self.words))
        self.ends.append(-1)
        if self.word is not None:
            self.add_leaf(UNTAGGED, self.word)

    def add_leaf(self, tag: str, word: str) -> None:
        if self.undecided:
            self.decide_for_constituent()
        self.tags.append(tag)
        self.words.append(word)

    def add_word(self, word: str) -> None:
        if not self.undecided:
            self.add_leaf(UNTAGGED, word)
        elif self.label is None:
            self.label = word
        elif self.word is None:
            self.word = word
        else:
            self.add_leaf(UNTAGGED, word)

    def close(self) -> bool:
        """Close the innermost bracket; returns whether it contained a word."""
        if self.undecided:
            self.undecided = False
            if self.word is None:
                return False
            outermost = not self.open_constituents and self.label in OUTERMOST_LABELS
            self.add_leaf(UNTAGGED if outermost else self.label or "", self.word)
        else:
            self.ends[self.open_constituents.pop()] = len(self.words)
        return True

    def complete(self) -> bool:
        return not self.undecided and not self.open_constituents

    def finish(self) -> Parse:
        spans = np.empty((len(self.labels), 2), dtype=np.int32)
        spans[:, 0] = self.starts
        spans[:, 1] = self.ends
        labels = tuple(self.labels)
        # Constituent 0 is the outermost bracket unless the whole tree is one leaf.
        if labels and labels[0] in OUTERMOST_LABELS:
            spans, labels = spans[1:], labels[1:]
        return Parse(tuple(self.words), tuple(self.tags), spans, labels)


def read_brackets(lines: Iterable[str], source: str, first_line: int = 1) -> Iterator[Parse]:
    """All trees of `lines` in order. A line can have several trees, and a tree several lines.

    Errors (an unbalanced bracket, a bracket without words, a word outside all brackets) name `source` and the line,
    counted from `first_line`.
    """
    tree: _TreeBuilder | None = None
    for line_number, line in enumerate(lines, start=first_line):
        for tag, word, other in _TOKEN.findall(line):
            if tree is None:
                if other == ")":
                    raise RamifyError(f"{source}, line {line_number}: this ')' has no matching '('; remove it.")
                if other and other != "(":
                    raise RamifyError(
                        f"{source}, line {line_number}: {shortened(other)} is outside all brackets; "
                        "put it into a tree, or read the file as text."
                    )
                tree = _TreeBuilder(line_number)
            if not other:
                if tree.undecided or tree.open_constituents:
                    tree.add_leaf(tag, word)
                    continue
                tree.open()
                tree.add_word(tag)
                tree.add_word(word)
                tree.close()
            elif other == "(":
                tree.open()
            elif other != ")":
                tree.add_word(other)
            elif not tree.close():
                label = f"({tree.label or ''})"
                raise RamifyError(
                    f"{source}, line {line_number}: the bracket {shortened(label)} contains no word; "
                    "remove it or give it a word."
                )
            if tree.complete():
                yield tree.finish()
                tree = None
    if tree is not None:
        raise RamifyError(
            f"{source}, line {tree.first_line}: the tree that starts here is not closed; add the missing ')'."
        )


def write_brackets(parse: Parse, root: str = ROOT) -> str:
    """`parse` on one line inside `(TOP ...)`, with parentheses as -LRB- and -RRB-; an empty line if it has no words."""
    if not parse.words:
        return ""
    if _is_plain(parse):
        return _plain_brackets(parse, root)
    pieces = [f"({root}"]
    for step in parse.traverse():
        if step is None:
            pieces.append(")")
            continue
        label, word = step
        if word is None:
            pieces.append(f" ({_escaped(label)}")
        elif word:
            pieces.append(f" ({_escaped(label) or UNTAGGED} {_escaped(word)})")
        else:
            raise RamifyError("An empty word cannot be written into a bracketed tree; leave it out.")
    pieces.append(")")
    return "".join(pieces)


def _is_plain(parse: Parse) -> bool:
    """Whether all words, tags and labels can be written as they are."""
    parts = (*parse.words, *parse.tags, *parse.labels)
    return all(parts) and _SPECIAL.search("".join(parts)) is None


def _plain_brackets(parse: Parse, root: str) -> str:
    """`write_brackets` if words, tags and labels can be written as they are: three times as fast."""
    before, after = [""] * len(parse), [""] * (len(parse) + 1)
    for (start, end), label in zip(parse.spans.tolist(), parse.labels, strict=True):
        before[start] += f" ({label}"
        after[end] += ")"
    leaves = zip(before, parse.tags, parse.words, after[1:], strict=True)
    return f"({root}{''.join([f'{opened} ({tag} {word}){closed}' for opened, tag, word, closed in leaves])})"


def _escaped(text: str) -> str:
    if _UNWRITABLE.search(text):
        raise RamifyError(
            f"{shortened(text)} contains white space or NUL and cannot be written into a bracketed tree; split it."
        )
    return text.replace("(", "-LRB-").replace(")", "-RRB-")
