"""The positions of the nodes of a tree: words in their order on one line, every parent centred over its children.

A layout has two axes. Along the words, each subtree has a separate interval, so subtrees do not overlap and lines do
not cross. The other axis has levels: words on level 0, tags on 1, every other node one level above its highest child.
The horizontal layout has the words from left to right and the levels going up; the vertical one has a word per line and
the levels going right. Right-to-left sentences are mirrored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ramify.drawing.measure import text_width
from ramify.drawing.nodes import DrawnTree, Kind

Layout = Literal["horizontal", "vertical"]
Point = tuple[float, float]

FONT_SIZE: dict[Kind, float] = {"constituent": 13, "tag": 11, "word": 15}
_LINE = 22.0
"""Height of a node"""
PADDING = 7.0
"""At either end of a text"""
_APART = 5.0
"""Between neighbours"""
_MARGIN = 10.0
_BETWEEN_ROWS = 20.0
_BETWEEN_COLUMNS = 20.0


@dataclass(frozen=True)
class Box:
    """The centre and size of a node."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Edge:
    """The line from a node's parent to the node.

    In the horizontal layout it slants to the next level and then goes straight to the node; in the vertical one it has
    right angles.
    """

    child: int
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Placed:
    """A tree with a place for everything, inside a picture of this width and height."""

    tree: DrawnTree
    layout: Layout
    width: float
    height: float
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]


def place(tree: DrawnTree, layout: Layout = "horizontal") -> Placed:
    """Lay out a tree in time linear in its nodes, however deep it is."""
    horizontal = layout == "horizontal"
    has_tags = any(node.kind == "tag" for node in tree.nodes)
    levels = _levels(tree, has_tags)
    widths = [text_width(node.text) * FONT_SIZE[node.kind] + 2 * PADDING for node in tree.nodes]
    centres, length = _along(tree, widths if horizontal else [_LINE] * len(widths))
    thickness = [_LINE] * (max(levels, default=-1) + 1)
    if not horizontal:
        for level, width in zip(levels, widths, strict=True):
            thickness[level] = max(thickness[level], width)
    starts, depth = _away(thickness, has_tags, _BETWEEN_ROWS if horizontal else _BETWEEN_COLUMNS)

    def turned(along: float, away: float) -> Point:
        """From the two axes of the layout to x and y."""
        if horizontal:
            x, y = _MARGIN + along, _MARGIN + depth - away
        else:
            x, y = _MARGIN + away, _MARGIN + along
        return (width - x if tree.right_to_left else x), y

    width, height = (each + 2 * _MARGIN for each in ((length, depth) if horizontal else (depth, length)))
    boxes: list[Box] = []
    edges: list[Edge] = []
    for number, node in enumerate(tree.nodes):
        level, centre = levels[number], centres[number]
        near, far = starts[level], starts[level] + thickness[level]
        if not horizontal:  # text is aligned to the near side of its column, words to the far side
            near, far = (far - widths[number], far) if node.kind == "word" else (near, near + widths[number])
        boxes.append(Box(*turned(centre, (near + far) / 2), widths[number], _LINE))
        if node.parent >= 0:
            upper, from_parent = levels[node.parent], centres[node.parent]
            start, bend = starts[upper], starts[upper - 1] + thickness[upper - 1]
            turns = [(centre, bend)]
            if not horizontal:
                turns = [(from_parent, (start + bend) / 2), (centre, (start + bend) / 2)]
            edges.append(Edge(number, tuple(turned(*at) for at in ((from_parent, start), *turns, (centre, far)))))
    return Placed(tree, layout, width, height, tuple(boxes), tuple(edges))


def _levels(tree: DrawnTree, has_tags: bool) -> list[int]:
    """The level of each node; if there are tags, only they are on level 1."""
    levels = [2 if has_tags and node.kind == "constituent" else 0 for node in tree.nodes]
    for number in reversed(range(len(tree.nodes))):
        parent = tree.nodes[number].parent
        if parent >= 0:
            levels[parent] = max(levels[parent], levels[number] + 1)
    return levels


def _along(tree: DrawnTree, sizes: list[float]) -> tuple[list[float], float]:
    """The centre of each node along the words, and the length of the whole."""
    count = len(sizes)
    before, after, offset = [0.0] * count, [0.0] * count, [0.0] * count
    for number in reversed(range(count)):
        half, children = sizes[number] / 2, tree.children[number]
        at = []
        end = -_APART
        for child in children:
            at.append(end + _APART + before[child])
            end = at[-1] + after[child]
        middle = (at[0] + at[-1]) / 2 if at else 0.0
        for child, centre in zip(children, at, strict=True):
            offset[child] = centre - middle
        # Extent of the subtree before and after the centre of its root.
        before[number], after[number] = (max(half, middle), max(half, end - middle)) if at else (half, half)
    centres = [0.0] * count
    for number, node in enumerate(tree.nodes):
        centres[number] = offset[number] + (centres[node.parent] if node.parent >= 0 else before[number])
    return centres, before[0] + after[0] if count else 0.0


def _away(thickness: list[float], has_tags: bool, gap: float) -> tuple[list[float], float]:
    """The start of each level, and the end of the last one; tags are close to their words."""
    starts: list[float] = []
    end = 0.0
    for level, each in enumerate(thickness):
        starts.append(end + (0 if level == 0 or (level == 1 and has_tags) else gap))
        end = starts[-1] + each
    return starts, end
