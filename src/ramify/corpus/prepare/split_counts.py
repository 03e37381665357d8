"""Counts the trees that were read: each is written, or dropped for a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ramify.corpus.cleaning import WordRule, remove_non_words
from ramify.corpus.prepare.passages import Corrupt
from ramify.corpus.prepare.source import TRACE_TAG
from ramify.corpus.tree import Parse

CORRUPT = "corrupt"
ONLY_TRACES = "nothing but traces"

_TRACES = WordRule(removed=frozenset({TRACE_TAG}))


@dataclass
class SplitCounts:
    """The trees of one split that are kept, and the number of dropped trees by reason."""

    kept: list[Parse] = field(default_factory=list)
    trees_in: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    """Trees by reason"""
    removed: Counter[str] = field(default_factory=Counter)
    """Leaves and constituents removed from trees that are kept"""

    def add(self, item: Parse | Corrupt) -> None:
        """Count a tree, and keep it without its traces if anything is left."""
        if isinstance(item, Corrupt):
            self.trees_in += item.trees
            self.dropped[CORRUPT] += item.trees
            return
        self.trees_in += 1
        parse = remove_non_words(item, _TRACES)
        if not parse.words:
            self.dropped[ONLY_TRACES] += 1
            return
        self.kept.append(parse)
        if parse is not item:
            self.removed["traces"] += len(item) - len(parse)
            self.removed["constituents of traces alone"] += len(item.labels) - len(parse.labels)

    def account(self) -> dict[str, object]:
        """All counts; every tree is in one of them."""
        assert self.trees_in == len(self.kept) + self.dropped.total(), "trees were lost"
        return {
            "trees_in": self.trees_in,
            "trees_out": len(self.kept),
            "dropped": dict(self.dropped),
            "removed_from_trees": dict(self.removed),
        }


def count_splits(splits: Iterable[str], items: Iterable[tuple[str, Parse | Corrupt]]) -> dict[str, SplitCounts]:
    """Every tree in its split."""
    counts = {name: SplitCounts() for name in splits}
    for name, item in items:
        counts[name].add(item)
    return counts
