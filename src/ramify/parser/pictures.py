"""Analyses as pictures: trees as SVG, a page, LaTeX, and the chart of span posteriors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from ramify.corpus.brackets import write_brackets
from ramify.drawing.html import Entry, page
from ramify.drawing.latex import forest, qtree
from ramify.drawing.layout import Layout
from ramify.drawing.nodes import DrawnTree, tree_of_parse
from ramify.drawing.posterior_chart import chart_picture
from ramify.drawing.svg import Picture, document, layout_for, picture

if TYPE_CHECKING:
    from ramify.parser.analysis import Analysis


def drawn_tree(analysis: Analysis, with_posteriors: bool = False, with_tags: bool = True) -> DrawnTree:
    """The nodes to draw; with posteriors a label reads `NT-12:0.87`."""
    parse = analysis.parse_with_posteriors if with_posteriors else analysis.parse
    starts, ends = parse.spans.T
    return tree_of_parse(
        parse,
        analysis.posteriors[starts, ends].tolist(),
        analysis.label_posteriors.tolist(),
        None if analysis.failure else analysis.tag_posteriors.tolist(),
        analysis.heads,
        with_tags,
    )


def chart_of(analysis: Analysis) -> Picture:
    """The posteriors of all spans, with frames around the constituents of the tree."""
    spans = {(start, end) for start, end in analysis.parse.spans.tolist()}
    return chart_picture(analysis.parse.words, analysis.posteriors, spans)


def forest_source(analysis: Analysis, with_posteriors: bool = False) -> str:
    """LaTeX for the package `forest`, and a blank line; with posteriors a label reads `NT-12:0.87`."""
    return forest(drawn_tree(analysis, with_posteriors)) if len(analysis.parse) else ""


def qtree_source(analysis: Analysis, with_posteriors: bool = False) -> str:
    """LaTeX for the packages `tikz-qtree` and `qtree`, and a blank line; with posteriors a label reads `NT-12:0.87`."""
    return qtree(drawn_tree(analysis, with_posteriors)) if len(analysis.parse) else ""


def svg_document(
    analyses: Iterable[Analysis], with_posteriors: bool = False, layout: Layout | None = None
) -> Iterator[str]:
    """One SVG with all trees, one below the other; sentences without tokens have none."""
    trees = (drawn_tree(analysis, with_posteriors) for analysis in analyses if len(analysis.parse))
    yield document([picture(tree, layout or "horizontal") for tree in trees])


def html_document(
    analyses: Iterable[Analysis], with_posteriors: bool = False, layout: Layout | None = None
) -> Iterator[str]:
    """A page with the trees and charts of all sentences, long ones with one word per line unless a layout is chosen."""
    return page(_entry(analysis, with_posteriors, layout) for analysis in analyses)


DOCUMENTS: dict[str, Callable[[Iterable[Analysis], bool, Layout | None], Iterator[str]]] = {
    "svg": svg_document,
    "html": html_document,
}
"""Formats that show all sentences in one document."""


def _entry(analysis: Analysis, with_posteriors: bool, layout: Layout | None) -> Entry:
    parse = analysis.parse
    has_spans = analysis.failure is None and len(parse) > 1
    return Entry(
        words=parse.words,
        text=analysis.sentence.text,
        remarks=list(_remarks(analysis)),
        brackets=write_brackets(parse),
        tree=picture(drawn_tree(analysis, with_posteriors), layout_for(len(parse), layout)) if len(parse) else None,
        chart=chart_of(analysis) if has_spans else None,
    )


def _remarks(analysis: Analysis) -> Iterator[str]:
    if analysis.failure is not None:
        yield f"This sentence has no parse ({analysis.failure}); its tree is flat."
    if math.isfinite(analysis.log_probability):
        yield f"log p(sentence) = {analysis.log_probability:.2f} nats"
    if analysis.constraint_probability is not None:
        yield f"p(constraints | sentence) = {analysis.constraint_probability:.4g}"
