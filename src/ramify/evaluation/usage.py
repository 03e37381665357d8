"""How many of its symbols a system uses, and how evenly."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

CARRYING_SHARE = 0.9
"""The share of all occurrences that the symbols in `carrying` account for together"""


@dataclass(frozen=True)
class Usage:
    """Of the symbols that occur in predicted trees."""

    items: int
    """Occurrences: constituents of two words or more, or words"""
    used: int
    """Different symbols among them"""
    carrying: int
    """The fewest symbols that account for 90 % of them"""
    entropy: float
    """In bits; log2 k if k symbols are used equally often"""


def usage(symbols: Iterable[str]) -> Usage | None:
    """Of the symbols of all constituents, or of all words; None where there is none."""
    counts = [count for _, count in Counter(symbols).most_common()]
    total = sum(counts)
    if not total:
        return None
    entropy = -sum(count / total * math.log2(count / total) for count in counts)
    seen = carrying = 0
    while seen < CARRYING_SHARE * total - 1e-9 * total:  # nine of ten are 90 %, whatever 0.9 is rounded to
        seen += counts[carrying]
        carrying += 1
    return Usage(total, len(counts), carrying, entropy + 0.0)
