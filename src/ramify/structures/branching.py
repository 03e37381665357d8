"""A bonus for the spans at one end of the sentence, and the side to which trees branch.

Grammars learnt from raw text attach phrases too high: "(the man saw) (a dog)". A bonus for the spans that end where the
sentence ends corrects this in languages that branch to the right, and one for the spans that begin where it begins in
languages that branch to the left. The parsers' own posteriors decide which side it is, so no knowledge of the language
is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

Side = Literal["left", "right"]

CLEAR_RATIO = 1.25
"""Trees branch to one side if the scores of the spans at that end of the sentences are this many times as high."""


@dataclass(frozen=True)
class Branching:
    """A bonus for every span at one end of the sentence."""

    side: Side
    bonus: float

    def __str__(self) -> str:
        return f"branching bonus {self.bonus:g} {self.side}"

    def add_to(self, scores: Any) -> None:
        """Add the bonus to the scores (N+1, N+1) of the spans of two words or more, an array or a tensor."""
        if self.side == "right":
            scores[:-2, -1] += self.bonus
        else:
            scores[0, 2:] += self.bonus


def side_of(tables: Iterable[NDArray[Any]]) -> Side | None:
    """The side to which most trees branch, from the span scores (N+1, N+1) of each sentence; None if it is not clear.

    Every sentence counts the same, because otherwise the few long ones would decide. The whole sentence, which is at
    both ends, does not count.
    """
    left, right = 0.0, 0.0
    for scores in tables:
        if len(scores) > 3:
            left += float(scores[0, 2:-1].mean())
            right += float(scores[1:-2, -1].mean())
    if max(left, right) < CLEAR_RATIO * min(left, right) or left == right:
        return None
    return "right" if right > left else "left"
