"""The number of symbols that a system uses, and how evenly it uses them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

CARRYING_SHARE = 0.9
"""The share of all occurrences that the symbols counted by `carrying` account for"""


@dataclass(frozen=True)
class Usage:
    """The use of the symbols in predicted trees."""

    items: int
    """Number of occurrences: constituents of two words or more, or words"""
    used: int
    """Number of different symbols among them"""
    carrying: int
    """The fewest symbols that account for 90 % of them"""
    entropy: float
    """Entropy in bits; log2 k if k symbols are used equally often"""


def usage(symbols: Iterable[str]) -> Usage | None:
    """The use of the symbols of all constituents, or of all words; None if there are none."""
    counts = [count for _, count in Counter(symbols).most_common()]
    total = sum(counts)
    if not total:
        return None
    entropy = -sum(count / total * math.log2(count / total) for count in counts)
    seen = carrying = 0
    while seen < CARRYING_SHARE * total - 1e-9 * total:  # nine of ten are 90 %, although 0.9 is rounded
        seen += counts[carrying]
        carrying += 1
    return Usage(total, len(counts), carrying, entropy + 0.0)
