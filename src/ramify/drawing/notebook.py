"""Trees of NLTK that a notebook shows as a picture."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ramify.corpus.tree import Parse
from ramify.drawing.nodes import tree_of_nltk
from ramify.drawing.svg import document, layout_for, picture

if TYPE_CHECKING:
    from nltk import Tree


def notebook_tree(parse: Parse) -> Tree:
    """The parse as a tree of NLTK. Notebooks draw it and its subtrees, including later changes.

    They are ordinary trees of NLTK, because NLTK compares classes: trees of a subclass would not equal other trees.
    """
    from nltk import Tree

    tree = parse.to_nltk()
    pending = [tree]  # NLTK's own iterator is recursive, and a tree may be deeper than Python allows
    while pending:
        node = pending.pop()
        node._repr_svg_ = partial(tree_svg, node)  # NLTK's own picture needs a package that may be missing
        pending.extend(child for child in node if isinstance(child, Tree))
    return tree


def tree_svg(tree: Tree) -> str:
    """Any tree of NLTK as an SVG document; long sentences with one word per line."""
    drawn = tree_of_nltk(tree)
    return document([picture(drawn, layout_for(len(drawn.words)))])


class Svg(str):
    """An SVG document, which a notebook shows as a picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)
