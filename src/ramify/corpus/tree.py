"""A parse as arrays of spans and labels, which is converted to an `nltk.Tree` only for users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import nltk

ROOT = "TOP"
UNTAGGED = "_"
"""The tag of a word whose part of speech is not known, as in plain text."""


@dataclass(frozen=True, eq=False)
class Parse:
    """One sentence with its constituents.

    `spans[c] = (i, j)` says that constituent `c`, labelled `labels[c]`, covers `words[i:j]`. Constituents are in
    preorder: a parent before its children, left before right, so of two equal spans (a unary chain) the upper one
    comes first. Preterminals are not constituents: word `i` has tag `tags[i]`. The treebank's outermost bracket is not
    a constituent either, so the constituents may form a forest.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    spans: NDArray[np.int32]
    """(constituents, 2)"""
    labels: tuple[str, ...]
    breaks: tuple[int, ...] = ()
    """Places between words where punctuation was removed, each as the number of words before it (breaks.py)"""

    def __len__(self) -> int:
        return len(self.words)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Parse):
            return NotImplemented
        same_text = (self.words, self.tags, self.labels) == (other.words, other.tags, other.labels)
        return same_text and np.array_equal(self.spans, other.spans)

    def __hash__(self) -> int:
        return hash((self.words, self.tags, self.labels))

    def traverse(self) -> Iterator[tuple[str, str | None] | None]:
        """The tree from left to right.

        `(label, None)` opens a constituent, `None` closes the innermost open one, `(tag, word)` is a leaf.
        """
        upcoming = zip(self.spans.tolist(), self.labels, strict=True)
        (start, end), label = next(upcoming, ((-1, -1), ""))
        open_ends: list[int] = []
        for position, leaf in enumerate(zip(self.tags, self.words, strict=True)):
            while open_ends and open_ends[-1] <= position:
                open_ends.pop()
                yield None
            while start == position:
                yield label, None
                open_ends.append(end)
                (start, end), label = next(upcoming, ((-1, -1), ""))
            yield leaf
        yield from [None] * len(open_ends)

    def to_nltk(self) -> nltk.Tree:
        """The tree; its root is always `TOP`, as in bracketed output."""
        open_nodes = [_node(ROOT, [])]
        for step in self.traverse():
            if step is None:
                open_nodes.pop()
                continue
            label, word = step
            node = _node(label, [] if word is None else [word])
            open_nodes[-1].append(node)
            if word is None:
                open_nodes.append(node)
        return open_nodes[0]


def _node(label: str, children: list[str]) -> nltk.Tree:
    import nltk  # takes a fifth of the time that torch takes, and few commands make such trees

    node = nltk.Tree(label, children)
    node._repr_svg_ = None  # notebooks show text: NLTK's own picture needs a package that may be missing
    return node


def make_parse(
    words: Sequence[str], tags: Sequence[str], spans: Sequence[tuple[int, int]], labels: Sequence[str]
) -> Parse:
    """A `Parse` from plain sequences, constituents in any order; of equal spans the first is the upper."""
    order = sorted(range(len(spans)), key=lambda c: (spans[c][0], -spans[c][1]))
    ordered = np.array([spans[c] for c in order], dtype=np.int32).reshape(-1, 2)
    return Parse(tuple(words), tuple(tags), ordered, tuple(labels[c] for c in order))


def parse_of_words(words: Sequence[str]) -> Parse:
    """A sentence of which only the words are known."""
    return Parse(tuple(words), (UNTAGGED,) * len(words), np.empty((0, 2), dtype=np.int32), ())
