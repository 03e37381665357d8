"""Trees of any parser, found by the words of a sentence, so that the file can be in any order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from ramify.corpus.cleaning import has_no_letters, keep_leaves
from ramify.corpus.tree import Parse
from ramify.errors import RamifyError
from ramify.evaluation.alignment import ReadTree, align_tokens, comparison_form, possible_readings
from ramify.evaluation.spans import Spans

Key = tuple[str, ...]
_SHOWN_WORDS = 8


class TreeLookup:
    """The trees of a file by their words, ignoring punctuation.

    A sentence that occurs several times gets its trees in the order of the file, and then repeatedly the last one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ways: list[dict[Key, list[Parse]]] = []
        """The trees read with and without labels; the first sentence found decides which is right"""
        problems = []
        for trees in possible_readings(path):
            try:
                self._ways.append(_by_words(trees))
            except RamifyError as problem:
                problems.append(problem)
        if not self._ways:
            raise problems[0]
        self._used: defaultdict[Key, int] = defaultdict(int)

    def spans_of(self, words: Sequence[str], where: str = "") -> Spans:
        """The spans of a sentence's tree over these words; `where` names the sentence in errors."""
        key = _key(words)
        shown = " ".join(words[:_SHOWN_WORDS]) + (" ..." if len(words) > _SHOWN_WORDS else "")
        sentence = f"{where} ({shown})" if where else f"the sentence {shown!r}"
        self._ways = [trees for trees in self._ways if key in trees] or self._ways
        trees = self._ways[0].get(key)
        if trees is None:
            raise RamifyError(f"{self._path}: contains no tree for {sentence}; give one for each sentence.")
        tree = trees[min(self._used[key], len(trees) - 1)]
        self._used[key] += 1
        try:
            keep, _ = align_tokens(tree.words, words, [True] * len(words))
        except ValueError as error:
            raise RamifyError(f"{self._path}: the tree for {sentence} does not match its words: {error}.") from error
        return keep_leaves(tree, keep).spans


def _by_words(trees: Iterable[ReadTree]) -> dict[Key, list[Parse]]:
    found: dict[Key, list[Parse]] = {}
    for tree in trees:
        found.setdefault(_key(tree.parse.words), []).append(tree.parse)
    return found


def _key(words: Iterable[str]) -> Key:
    return tuple(word for word in map(comparison_form, words) if not has_no_letters(word))
