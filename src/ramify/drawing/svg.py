"""Trees as SVG: text that can be selected and searched, colours by posterior, light, dark and printed.

A picture is self-contained and has no scripts and no ids, so a page can contain any number of them. All text is
escaped, and characters that XML forbids or a page would interpret are replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from ramify.drawing.layout import FONT_SIZE, PADDING, Box, Edge, Layout, Placed, place
from ramify.drawing.measure import runs_right_to_left
from ramify.drawing.nodes import DrawnTree, Node
from ramify.printing import printable

MAX_HORIZONTAL_WORDS = 25
"""Longer sentences are drawn with one word per line unless a layout is chosen"""
STYLE = """\
.ramify { font-family: "Noto Sans", "Helvetica Neue", Arial, "Liberation Sans", system-ui, sans-serif; }
.ramify .paper { fill: #fff; }
.ramify text { fill: #1b1b1b; dominant-baseline: central; }
.ramify .tag { fill: #57606a; }
.ramify .constituent { font-weight: 600; }
.ramify .shade { fill: #0072b2; }
.ramify .known { stroke: #0072b2; stroke-opacity: .55; }
.ramify .edge { fill: none; stroke: #8b949e; stroke-width: 1.2; stroke-linejoin: round; }
.ramify .head { stroke: #1b1b1b; stroke-width: 2.4; }
.ramify .chosen { fill: none; stroke: #1b1b1b; stroke-width: 1.4; }
.ramify .empty { fill: #8b949e; fill-opacity: .12; }
@media (prefers-color-scheme: dark) {
.ramify .paper { fill: #16191d; }
.ramify text { fill: #e8e8e8; }
.ramify .tag { fill: #a6b0ba; }
.ramify .shade { fill: #56b4e9; }
.ramify .known { stroke: #56b4e9; }
.ramify .edge { stroke: #6e7781; }
.ramify .head, .ramify .chosen { stroke: #e8e8e8; }
}
@media print {
.ramify .paper { fill: #fff; }
.ramify text, .ramify .tag { fill: #000; }
.ramify .shade { fill: #444; }
.ramify .known, .ramify .edge { stroke: #666; }
.ramify .head, .ramify .chosen { stroke: #000; }
}
"""
"""The colours of a tree: one hue, stronger the higher the posterior; grey in print"""
_LONGEST_SHOWN = 80
"""Maximum number of characters in the tooltip of a constituent"""


@dataclass(frozen=True)
class Picture:
    """A drawing without its frame."""

    width: float
    height: float
    content: str
    title: str
    """Text alternative for screen readers"""


def layout_for(words: int, layout: Layout | None = None) -> Layout:
    """The chosen layout or, if none was chosen, the one that suits this number of words."""
    return layout or ("vertical" if words > MAX_HORIZONTAL_WORDS else "horizontal")


def picture(tree: DrawnTree, layout: Layout = "horizontal") -> Picture:
    """A tree, drawn."""
    placed = place(tree, layout)
    content = "\n".join((*_lines(placed), *_nodes(placed)))
    return Picture(placed.width, placed.height, content, f"Tree of: {' '.join(tree.words)}")


def document(pictures: Sequence[Picture], title: str = "") -> str:
    """One SVG document with all pictures, one below the other."""
    width = max((each.width for each in pictures), default=0)
    height = sum(each.height for each in pictures)
    title = title or (pictures[0].title if len(pictures) == 1 else f"{len(pictures):,} trees")
    return frame(width, height, title, f"<style>\n{STYLE}</style>\n" + "\n".join(_stacked(pictures)))


def framed(drawn: Picture) -> str:
    """One picture for a page that has `STYLE`."""
    return frame(drawn.width, drawn.height, drawn.title, drawn.content)


def frame(width: float, height: float, title: str, content: str) -> str:
    """An SVG element of this size; its paper makes it readable on a background of any colour.

    Its direction does not follow that of the page, which would swap the ends of a text.
    """
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ramify" {size} direction="ltr" role="img" '
        f'aria-label="{escaped(title)}">\n'
        f'<rect class="paper" width="100%" height="100%"/>\n{content}\n</svg>'
    )


def escaped(text: str) -> str:
    """Text escaped for any place in XML or HTML, including quotes."""
    return escape(printable(text))


def shade(posterior: float) -> str:
    """The opacity of a fill for a probability, low enough for text to be read on it.

    The square separates the constituents of a tree better, because most are nearer to 1 than to 0.
    """
    return f"{0.03 + 0.47 * min(max(posterior, 0.0), 1.0) ** 2:.3f}"


def text_element(x: float, y: float, text: str, css: str, anchor: str, right_to_left: bool, size: float) -> str:
    """A text whose left end, middle or right end (`anchor`) is at x, in its own direction or, without one, as given."""
    attributes = "".join(f' {name}="{value}"' for name, value in direction_of(text, anchor, right_to_left).items())
    return f'<text class="{css}" x="{x:.1f}" y="{y:.1f}" font-size="{size:g}"{attributes}>{escaped(text)}</text>'


def direction_of(text: str, anchor: str, right_to_left: bool) -> dict[str, str]:
    """The attributes `text-anchor` and `direction` of such a text."""
    own = runs_right_to_left(text)
    reversed_ = right_to_left if own is None else own
    # Start and end follow the direction of the text; left and right do not.
    at = {"middle": "middle", "left": "end" if reversed_ else "start", "right": "start" if reversed_ else "end"}[anchor]
    return {"text-anchor": at} | ({"direction": "rtl"} if reversed_ else {})


def abbreviated(words: Sequence[str]) -> str:
    """The words, without those in the middle if they are too long."""
    text = " ".join(words)
    if len(text) <= _LONGEST_SHOWN:
        return text
    half = _LONGEST_SHOWN // 2
    return f"{text[:half].rstrip()} … {text[-half:].lstrip()}"


def _stacked(pictures: Iterable[Picture]) -> Iterator[str]:
    top = 0.0
    for each in pictures:
        yield f'<g transform="translate(0 {top:.0f})">\n{each.content}\n</g>'
        top += round(each.height)


def _drawn_edges(placed: Placed) -> Iterator[tuple[Edge, bool]]:
    """The lines in the order in which they are drawn, and whether each leads to a head."""
    nodes = placed.tree.nodes
    for edge in sorted(placed.edges, key=lambda edge: nodes[edge.child].is_head):  # thick lines over thin ones
        node = nodes[edge.child]
        if nodes[node.parent].kind != "tag":  # a tag is next to its word
            yield edge, node.is_head


def _lines(placed: Placed) -> Iterator[str]:
    for edge, is_head in _drawn_edges(placed):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in edge.points)
        css = "edge head" if is_head else "edge"
        yield f'<polyline class="{css}" points="{points}"/>'


def _nodes(placed: Placed) -> Iterator[str]:
    tree = placed.tree
    for node, box in zip(tree.nodes, placed.boxes, strict=True):
        lines = "\n".join(escaped(line) for line in _about(node, tree.words))
        yield f"<g><title>{lines}</title>{_pill(node, box)}{_text(node, box, placed)}</g>"


def _pill(node: Node, box: Box) -> str:
    if node.posterior is None:
        return ""
    return (
        f'<rect class="shade known" x="{box.x - box.width / 2:.1f}" y="{box.y - box.height / 2:.1f}" '
        f'width="{box.width:.1f}" height="{box.height:.1f}" rx="6" fill-opacity="{shade(node.posterior)}"/>'
    )


def _text(node: Node, box: Box, placed: Placed) -> str:
    x, anchor = _text_place(node, box, placed)
    reads_back = placed.tree.right_to_left and node.kind == "word"
    return text_element(x, box.y, node.text, node.kind, anchor, reads_back, FONT_SIZE[node.kind])


def _text_place(node: Node, box: Box, placed: Placed) -> tuple[float, str]:
    """The anchor point of a node's text, and which end of the text is there."""
    x, anchor = box.x, "middle"
    if placed.layout == "vertical" and node.kind != "constituent":  # words and tags line up where they meet
        anchor = "right" if (node.kind == "word") != placed.tree.right_to_left else "left"
        x += (box.width / 2 - PADDING) * (1 if anchor == "right" else -1)
    return x, anchor


def as_record(placed: Placed) -> dict[str, object]:
    """A placed tree as JSON values, for a page that draws it, with the same numbers as `picture` writes."""
    nodes = []
    for node, box in zip(placed.tree.nodes, placed.boxes, strict=True):
        x, anchor = _text_place(node, box, placed)
        nodes.append(
            {
                "text": printable(node.text),
                "kind": node.kind,
                "parent": node.parent,
                "span": [node.start, node.end],
                "posterior": None if node.posterior is None else round(node.posterior, 6),
                "symbol_posterior": None if node.symbol_posterior is None else round(node.symbol_posterior, 6),
                "shade": None if node.posterior is None else shade(node.posterior),
                "box": [
                    round(each, 1) for each in (box.x - box.width / 2, box.y - box.height / 2, box.width, box.height)
                ],
                "x": round(x, 1),
                "y": round(box.y, 1),
                "font_size": FONT_SIZE[node.kind],
                **direction_of(node.text, anchor, placed.tree.right_to_left and node.kind == "word"),
            }
        )
    return {
        "layout": placed.layout,
        "right_to_left": placed.tree.right_to_left,
        "width": round(placed.width),
        "height": round(placed.height),
        "nodes": nodes,
        "edges": [
            {"child": edge.child, "head": head, "points": [[round(x, 1), round(y, 1)] for x, y in edge.points]}
            for edge, head in _drawn_edges(placed)
        ],
    }


def _about(node: Node, words: Sequence[str]) -> Iterator[str]:
    """The tooltip of a node."""
    if node.kind == "word":
        yield node.text
        return
    yield f"{node.text}: {abbreviated(words[node.start : node.end])}"
    if node.posterior is not None:
        yield f"posterior of the span {node.posterior:.3f}"
    if node.symbol_posterior is not None:
        which = "with this label" if node.kind == "constituent" else "of the tag"
        yield f"posterior {which} {node.symbol_posterior:.3f}"
