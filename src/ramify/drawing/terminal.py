"""Trees drawn with line characters for a terminal, top down."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.cells import cell_len

from ramify.corpus.tree import Parse
from ramify.drawing.nodes import head_word_of

if TYPE_CHECKING:
    from nltk import Tree

MAX_LABEL_WIDTH = 16
"""Columns of a terminal that a label or word takes before it continues on the next line"""
_FIRST_STAND_IN = 0xF0000
_STAND_INS = re.compile("(([\U000f0000-\U0010fffd])\\2*)")


def draw(tree: Tree, with_ascii: bool = False) -> str:
    """A drawing of the tree, measured in terminal columns, of which a letter takes one, two or none.

    NLTK counts letters, so it draws placeholders: private characters, one per column, different for each piece of text.
    """
    from nltk import Tree
    from nltk.tree.prettyprinter import TreePrettyPrinter

    pieces: list[str] = []

    def stand_in(text: str) -> str:
        lines = []
        for piece in _pieces(text):
            lines.append(chr(_FIRST_STAND_IN + len(pieces)) * max(cell_len(piece), 1))
            pieces.append(piece)
        return "\n".join(lines)

    drawn = Tree.convert(tree)  # a copy
    for node in drawn.subtrees():
        node.set_label(stand_in(node.label()))
        node[:] = [child if isinstance(child, Tree) else stand_in(child) for child in node]

    def piece_for(found: re.Match[str]) -> str:
        piece = pieces[ord(found[2]) - _FIRST_STAND_IN]
        return piece + " " * (len(found[1]) - cell_len(piece))

    lines = TreePrettyPrinter(drawn).text(unicodelines=not with_ascii, maxwidth=None)
    return _STAND_INS.sub(piece_for, lines)


def with_head_words(parse: Parse, heads: Sequence[int]) -> Parse:
    """The parse with the head word after the label of every constituent that has one, as in `NT-12[saw]`."""
    labels = []
    for (start, end), label in zip(parse.spans.tolist(), parse.labels, strict=True):
        head = head_word_of(heads, start, end)
        labels.append(label if head is None else f"{label}[{parse.words[head]}]")
    return replace(parse, labels=tuple(labels))


def _pieces(text: str) -> list[str]:
    """Cut into pieces of at most the maximum width; no character is lost, not even a mark without a base letter."""
    pieces, width = [""], 0
    for letter in text:
        width += cell_len(letter)
        if width > MAX_LABEL_WIDTH:
            pieces.append("")
            width = cell_len(letter)
        pieces[-1] += letter
    return pieces
