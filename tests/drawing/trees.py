"""Trees of every shape and with every kind of text, for tests of drawing."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from nltk import Tree

from ramify.corpus.sentence import Sentence
from ramify.corpus.tree import Parse, make_parse
from ramify.drawing.nodes import DrawnTree, tree_of_nltk
from ramify.parser.analysis import Analysis

NASTY = [
    "<script>alert(1)</script>",
    "]]>",
    "a&b",
    '"',
    "'",
    "\x07",
    "\x1b[31m",
    "\ud800",
    "\ufffe",
    "\u202e",
    "&#0;",
    "-->",
]
TEXTS = st.one_of(
    st.text(min_size=1, max_size=12),  # among them control characters
    st.sampled_from([*NASTY, "the", "committee", "iii", "WWW", "犬が", "क्षि", "e\u0301", "שלום", "كتاب", "ภาษา", "🐕"]),
)
TREES = st.recursive(
    TEXTS, lambda inner: st.builds(Tree, TEXTS, st.lists(inner, min_size=1, max_size=4)), max_leaves=25
)


def drawn(tree: Tree | str) -> DrawnTree:
    return tree_of_nltk(tree if isinstance(tree, Tree) else Tree("S", [tree]))


def right_branching(length: int, label: str = "NT") -> Parse:
    words = [f"w{place}" for place in range(length)]
    spans = [(place, length) for place in range(length - 1)]
    return make_parse(words, ["T"] * length, spans, [f"{label}-{place}" for place in range(length - 1)])


def analysis_of(parse: Parse, heads: tuple[int, ...] | None = None) -> Analysis:
    """An analysis whose posteriors are 1 for the longest span and lower for shorter ones."""
    N = len(parse)
    posteriors = np.zeros((N + 1, N + 1), np.float32)
    for start, end in parse.spans:
        posteriors[start, end] = (end - start) / N
    found = posteriors[parse.spans[:, 0], parse.spans[:, 1]]
    tags = np.full(N, 0.5, np.float32)
    return Analysis(Sentence.from_tokens(parse.words), parse, -1.5, posteriors, found / 2, tags, heads=heads)
