"""Which first words distinguish the nonterminals that share one gold label.

The measure is the log-odds ratio with an informative Dirichlet prior, in standard deviations (Monroe, Colaresi and
Quinn 2008). It compares the odds of a word as the first word of a nonterminal's constituents with its odds in the
label's other constituents; both are smoothed towards the label's distribution of first words. Rare words, and words
that are frequent everywhere, have low values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import log, sqrt

PRIOR_COUNT = 10.0
"""Number of pseudo-constituents, with the label's distribution of first words, added to both sides."""
MIN_COUNT, MIN_SHARE = 5, 0.02
"""A nonterminal with fewer correctly predicted constituents of a label, or a smaller share, is not a subtype of it."""
MIN_WORD_COUNT = 2
MIN_DEVIATIONS = 1.645
"""Threshold in standard deviations, which chance exceeds once in twenty times."""


@dataclass(frozen=True)
class Subtype:
    """One of the nonterminals that divide a gold label."""

    nonterminal: str
    count: int
    """Number of correctly predicted constituents of the label"""
    share: float
    """Share of all of them, from 0 to 1"""
    first_words: tuple[tuple[str, int], ...]
    """The words that distinguish it from the others, the most significant first, with counts; may be empty"""

    def as_record(self) -> dict[str, object]:
        """As JSON values."""
        return asdict(self) | {"first_words": [list(pair) for pair in self.first_words]}


def subtypes_of(first_words: Mapping[str, Counter[str]], words: int = 5) -> list[Subtype]:
    """The nonterminals that make up a relevant part of one label, the most frequent first.

    The argument has the first words of the label's correctly predicted constituents by nonterminal.
    """
    everything: Counter[str] = sum(first_words.values(), Counter())
    total = everything.total()
    large_enough = [
        nonterminal
        for nonterminal, found in first_words.items()
        if found.total() >= MIN_COUNT and found.total() >= MIN_SHARE * total
    ]
    large_enough.sort(key=lambda nonterminal: (-first_words[nonterminal].total(), nonterminal))
    return [
        Subtype(
            nonterminal,
            first_words[nonterminal].total(),
            first_words[nonterminal].total() / total,
            tuple(distinctive_words(first_words[nonterminal], everything)[:words]),
        )
        for nonterminal in large_enough
    ]


def distinctive_words(found: Counter[str], everything: Counter[str]) -> list[tuple[str, int]]:
    """The words significantly more frequent in `found` than in the rest of `everything`, the clearest first."""
    scores = {word: log_odds(word, found, everything) for word, count in found.items() if count >= MIN_WORD_COUNT}
    significant = [word for word, score in scores.items() if score > MIN_DEVIATIONS]
    return [(word, found[word]) for word in sorted(significant, key=lambda word: (-scores[word], word))]


def log_odds(word: str, found: Counter[str], everything: Counter[str]) -> float:
    """The smoothed log-odds ratio of a word in `found` against the rest of `everything`, in standard deviations."""
    total = everything.total()
    if everything[word] == total:  # the only word carries no information
        return 0.0
    prior = PRIOR_COUNT * everything[word] / total
    here = found[word] + prior
    elsewhere = everything[word] - found[word] + prior
    odds_here = here / (found.total() + PRIOR_COUNT - here)
    odds_elsewhere = elsewhere / (total - found.total() + PRIOR_COUNT - elsewhere)
    return log(odds_here / odds_elsewhere) / sqrt(1 / here + 1 / elsewhere)
