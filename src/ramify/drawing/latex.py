"""Trees as LaTeX source, for the packages `forest` and `tikz-qtree` (or `qtree`).

Any LaTeX compiles both; words in scripts that its fonts lack need XeLaTeX or LuaLaTeX and a font that has them. The
children of right-to-left sentences are written in reverse, because both packages draw from left to right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ramify.drawing.nodes import DrawnTree, Node
from ramify.printing import printable

_SPECIAL = {
    "\\": "\\textbackslash{}",
    "^": "\\textasciicircum{}",
    "~": "\\textasciitilde{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    '"': "\\symbol{34}",  # babel makes commands of the character itself
    "[": "{[}",
    "]": "{]}",
    **{character: "\\" + character for character in "{}%#&_$"},
}
_STEP = "  "


def latex_text(text: str) -> str:
    """Text for a node, in which characters with a meaning in LaTeX or in the packages are escaped."""
    return "".join(_SPECIAL.get(character, character) for character in printable(text, "?"))


def forest(tree: DrawnTree) -> str:
    """For the package `forest`: words on one line, edges to heads thick."""

    def opened(node: Node) -> str:
        options = ", tier=word" if node.kind == "word" else ""
        return f"[{{{latex_text(node.text)}}}{options}" + (", edge=very thick" if node.is_head else "")

    return "\n".join(("\\begin{forest}", *_lines(tree, opened, lambda node: f"{opened(node)}]"), "\\end{forest}", ""))


def qtree(tree: DrawnTree) -> str:
    """For the packages `tikz-qtree` and `qtree`."""

    def opened(node: Node) -> str:
        return f"[.{{{latex_text(node.text)}}}"

    return "\n".join(("\\Tree", *_lines(tree, opened, lambda node: f"{{{latex_text(node.text)}}}"), ""))


def _lines(tree: DrawnTree, opened: Callable[[Node], str], leaf: Callable[[Node], str]) -> Iterator[str]:
    """One node per line, tags with their words, indented by depth; not recursive, so trees can have any depth."""
    pending: list[int | None] = [0]
    depth = 0
    while pending:
        number = pending.pop()
        if number is None:
            depth -= 1
            yield f"{_STEP * depth}]"
            continue
        node, children = tree.nodes[number], tree.children[number]
        if node.parent < 0 and not children:
            yield f"{opened(node)} ]"
        elif not children:
            yield _STEP * depth + leaf(node)
        elif len(children) == 1 and not tree.children[children[0]]:
            yield f"{_STEP * depth}{opened(node)} {leaf(tree.nodes[children[0]])} ]"
        else:
            yield _STEP * depth + opened(node)
            depth += 1
            pending.append(None)
            pending.extend(children if tree.right_to_left else reversed(children))
