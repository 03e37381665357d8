"""Agreement between several parsers, and which of them collapsed; needs no gold trees."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.evaluation.baselines import left_branching, right_branching
from ramify.evaluation.spans import Spans

SHORTEST = 3
"""A sentence of two words has only one tree."""
MIN_SENTENCES = 20
"""With fewer sentences, collapse is not judged."""
COLLAPSED_F1 = 90.0
"""A parser has collapsed if its S-F1 against left or right branching is at least this high."""
LOW_AGREEMENT = 0.6
"""Among three or more parsers, one has collapsed if its agreement with the others is below this share of the median."""
BRANCHING = ("left", "right")


class MemberAgreement:
    """S-F1 between the trees of all pairs of parsers, their average, and left and right branching, in percent."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.columns = (*self.names, "average", *BRANCHING)
        self._sums = np.zeros((len(self.columns), len(self.columns)))
        self.sentences = 0

    def add(self, members: Sequence[Spans], average: Spans, length: int) -> None:
        """Add the trees of one sentence."""
        if length < SHORTEST:
            return
        trees = (*members, average, left_branching(length), right_branching(length))
        keys = [_inner_spans(spans, length) for spans in trees]
        self._sums += [[_f1(one, other) for other in keys] for one in keys]
        self.sentences += 1

    def sums(self) -> dict[str, Any]:
        """As JSON values, to be added by `add_sums` in another process."""
        return {"names": list(self.names), "sums": self._sums.tolist(), "sentences": self.sentences}

    def add_sums(self, record: dict[str, Any]) -> None:
        """Add the sums of other sentences."""
        self._sums += np.asarray(record["sums"])
        self.sentences += record["sentences"]

    @property
    def table(self) -> NDArray[np.float64]:
        """(members + 3, members + 3) mean S-F1 in the order of `columns`."""
        return 100 * self._sums / max(self.sentences, 1)

    def with_others(self) -> list[float]:
        """The mean S-F1 of each parser with the others."""
        table, count = self.table, len(self.names)
        return [float(np.delete(table[row, :count], row).mean()) if count > 1 else 100.0 for row in range(count)]

    def collapsed(self) -> dict[str, str]:
        """The parsers that should not vote, by name, with the reason."""
        if self.sentences < MIN_SENTENCES:
            return {}
        found, table = {}, self.table
        with_others = self.with_others()
        typical = median(with_others)
        for row, name in enumerate(self.names):
            for column, branching in enumerate(BRANCHING, start=len(self.names) + 1):
                if table[row, column] >= COLLAPSED_F1:
                    found[name] = f"its trees are nearly {branching} branching (S-F1 {table[row, column]:.1f})"
            if with_others[row] < LOW_AGREEMENT * typical:  # never of two, who agree equally with each other
                found.setdefault(
                    name,
                    f"its agreement with the others is low (S-F1 {with_others[row]:.1f}, usual {typical:.1f})",
                )
        return found

    def as_record(self) -> dict[str, object]:
        """As JSON values."""
        rows = ([round(float(value), 2) for value in row] for row in self.table)
        return {
            "columns": list(self.columns),
            "sentence_f1": dict(zip(self.columns, rows, strict=True)),
            "sentences": self.sentences,
            "collapsed": self.collapsed(),
        }


def _inner_spans(spans: Spans, length: int) -> set[int]:
    """Each span of two words or more as a number, without the whole sentence."""
    wide = spans[(spans[:, 1] - spans[:, 0] > 1) & (spans[:, 1] - spans[:, 0] < length)]
    return set((wide[:, 0].astype(np.int64) * (length + 1) + wide[:, 1]).tolist())


def _f1(one: set[int], other: set[int]) -> float:
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 1.0
