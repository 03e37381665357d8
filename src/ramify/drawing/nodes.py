"""The nodes of a tree to draw, with their texts, positions and probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from ramify.corpus.tree import ROOT, UNTAGGED, Parse
from ramify.drawing.measure import is_right_to_left

if TYPE_CHECKING:
    from nltk import Tree

Kind = Literal["constituent", "tag", "word"]


@dataclass(frozen=True)
class Node:
    """A constituent, a tag or a word; it covers the words from `start` up to `end`."""

    text: str
    kind: Kind
    parent: int
    """Number of the parent among the nodes of the tree; -1 for the root"""
    start: int
    end: int
    posterior: float | None = None
    """For a constituent, the probability of its span with any label"""
    symbol_posterior: float | None = None
    """Probability of a constituent with its label, or of a tag"""
    is_head: bool = False
    """Whether the head word of its parent is among its words"""


@dataclass(frozen=True)
class DrawnTree:
    """The nodes of one tree in preorder: a parent before its children, left before right. Leaves are words."""

    nodes: tuple[Node, ...]

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of each node, from left to right."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for number, node in enumerate(self.nodes):
            if node.parent >= 0:
                found[node.parent].append(number)
        return tuple(map(tuple, found))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The sentence."""
        return tuple(node.text for node in self.nodes if node.kind == "word")

    @cached_property
    def right_to_left(self) -> bool:
        """Whether the sentence runs from right to left."""
        return is_right_to_left(self.words)


def tree_of_parse(
    parse: Parse,
    posteriors: Sequence[float] | None = None,
    label_posteriors: Sequence[float] | None = None,
    tag_posteriors: Sequence[float] | None = None,
    heads: Sequence[int] | None = None,
    with_tags: bool = True,
) -> DrawnTree:
    """The nodes of a parse: `posteriors` and `label_posteriors` of its constituents and `tag_posteriors` of its words.

    `heads` has for each word 0 for the root or the place of its head counted from 1. Constituents that do not form one
    tree get a root, `TOP`. Unknown tags are left out.
    """
    steps = list(parse.traverse())
    nodes: list[Node] = []
    open_nodes: list[int] = []
    head_words: list[int | None] = []

    def add(node: Node, head_word: int | None) -> None:
        nodes.append(node)
        head_words.append(head_word)

    def head_of(start: int, end: int) -> int | None:
        return None if heads is None else head_word_of(heads, start, end)

    def is_head(start: int, end: int) -> bool:
        head = head_words[open_nodes[-1]] if open_nodes else None
        return head is not None and start <= head < end

    if _count_top_nodes(steps) > 1:
        add(Node(ROOT, "constituent", -1, 0, len(parse)), head_of(0, len(parse)))
        open_nodes.append(0)
    constituent = word = 0
    for step in steps:
        if step is None:
            open_nodes.pop()
            continue
        parent = open_nodes[-1] if open_nodes else -1
        symbol, text = step
        if text is None:
            start, end = parse.spans[constituent].tolist()
            span, label = _at(posteriors, constituent), _at(label_posteriors, constituent)
            add(
                Node(symbol, "constituent", parent, start, end, span, label, is_head(start, end)),
                head_of(start, end),
            )
            open_nodes.append(len(nodes) - 1)
            constituent += 1
            continue
        of_parent = is_head(word, word + 1)
        if with_tags and symbol != UNTAGGED:
            sure = _at(tag_posteriors, word)
            add(Node(symbol, "tag", parent, word, word + 1, None, sure, of_parent), word)
            parent, of_parent = len(nodes) - 1, False
        add(Node(text, "word", parent, word, word + 1, is_head=of_parent), word)
        word += 1
    return DrawnTree(tuple(nodes))


def tree_of_nltk(tree: Tree) -> DrawnTree:
    """The nodes of any tree of NLTK, unchanged; a node without children is drawn as a word."""
    from nltk import Tree

    nodes: list[Node] = []
    ends: dict[int, int] = {}
    pending: list[tuple[object, int]] = [(tree, -1)]
    words = 0
    while pending:
        item, parent = pending.pop()
        if isinstance(item, Tree) and len(item):
            is_tag = len(item) == 1 and not isinstance(item[0], Tree)
            nodes.append(Node(str(item.label()), "tag" if is_tag else "constituent", parent, words, words))
            pending.extend((child, len(nodes) - 1) for child in reversed(item))
            continue
        text = str(item.label() if isinstance(item, Tree) else item)
        nodes.append(Node(text, "word", parent, words, words + 1))
        words += 1
        while parent >= 0:
            ends[parent] = words
            parent = nodes[parent].parent
    return DrawnTree(
        tuple(
            Node(node.text, node.kind, node.parent, node.start, ends.get(number, node.end))
            for number, node in enumerate(nodes)
        )
    )


def head_word_of(heads: Sequence[int], start: int, end: int) -> int | None:
    """The only word from `start` up to `end` whose head is outside this span; None if there are several."""
    tops = [place for place in range(start, end) if not start < heads[place] <= end]
    return tops[0] if len(tops) == 1 else None


def _at(values: Sequence[float] | None, place: int) -> float | None:
    return None if values is None else float(values[place])


def _count_top_nodes(steps: Sequence[tuple[str, str | None] | None]) -> int:
    return sum(1 for depth, step in _with_depth(steps) if depth == 0 and step is not None)


def _with_depth(
    steps: Sequence[tuple[str, str | None] | None],
) -> Iterator[tuple[int, tuple[str, str | None] | None]]:
    depth = 0
    for step in steps:
        depth -= step is None
        yield depth, step
        depth += step is not None and step[1] is None
