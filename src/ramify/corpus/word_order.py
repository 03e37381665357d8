"""The side to which the trees of a language branch, from the order of its frequent words.

Where heads come before their complements, as in English, frequent words such as articles and prepositions mostly stand
at the beginning of phrases, and trees branch to the right. Where heads come last, as in Japanese, particles and
auxiliaries stand at the end, and trees branch to the left. Infants seem to use this cue (Gervain, Nespor, Mazuka, Horie
and Mehler 2008). It needs no trees: the first and the last word of every sentence are enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

BRANCHING_BONUS = 0.3
"""In posteriors; chosen on the dev sets of fr-sequoia and en-craft (docs/better-trees-results.md)"""
CLEAR_SHARE = 2 / 3
"""The side is clear if the more frequent word is at one end at least twice as often as at the other end."""
FEWEST_SENTENCES = 100
"""With fewer sentences, it is not clear which words are frequent."""


def branching_side(sentences: Sequence[Sequence[str]]) -> Literal[-1, 0, 1]:
    """1 if trees branch to the right, -1 if they branch to the left, 0 if the words of the sentences do not show it."""
    counts = Counter(word.lower() for words in sentences for word in words)
    ends = [(counts[words[0].lower()], counts[words[-1].lower()]) for words in sentences if len(words) > 2]
    right, left = sum(first > last for first, last in ends), sum(first < last for first, last in ends)
    if right + left < FEWEST_SENTENCES or max(right, left) < CLEAR_SHARE * (right + left):
        return 0
    return 1 if right > left else -1
