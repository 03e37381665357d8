"""The probability of a text under a model, and how much of the text the model's vocabulary covers.

A perplexity depends on the vocabulary: the fewer words are known, the fewer there are to choose from, and the lower it
is. Two other perplexities account for this. The perplexity with spelling includes the probability of each unknown
word's characters under a fixed spelling model, so that the event is the same for every vocabulary. In the perplexity of
known words, any word may take the place of an unknown one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ramify.corpus.vocabulary import NO_WORDS, UnknownCount, Vocabulary
from ramify.evaluation.scores import perplexity_of_total


@dataclass(frozen=True)
class Likelihood:
    """Log-probabilities in nats, of one sentence or summed over several; each sentence has one end."""

    sentences: int = 0
    count: UnknownCount = NO_WORDS
    log_probability: float = 0.0
    known_log_probability: float | None = 0.0
    """Of the known words, with any word at the places of the others; a lower bound for a compound grammar; None if the
    model cannot compute it"""
    spelling_log_probability: float | None = 0.0
    """Of the unknown words, given that they are unknown; None without a spelling model"""

    def __add__(self, other: Likelihood) -> Likelihood:
        return Likelihood(
            self.sentences + other.sentences,
            self.count + other.count,
            self.log_probability + other.log_probability,
            _sum(self.known_log_probability, other.known_log_probability),
            _sum(self.spelling_log_probability, other.spelling_log_probability),
        )

    @property
    def perplexity(self) -> float:
        """Perplexity with every unknown word as `<unk>`."""
        return perplexity_of_total(self.log_probability, self.count.words + self.sentences)

    @property
    def perplexity_with_spelling(self) -> float | None:
        """Perplexity with every unknown word as `<unk>` and its characters."""
        if self.spelling_log_probability is None:
            return None
        total = self.log_probability + self.spelling_log_probability
        return perplexity_of_total(total, self.count.words + self.sentences)

    @property
    def perplexity_of_known_words(self) -> float | None:
        """Perplexity without the unknown words, which are not counted as places either."""
        if self.known_log_probability is None:
            return None
        return perplexity_of_total(self.known_log_probability, self.count.known + self.sentences)


@dataclass(frozen=True)
class Coverage:
    """Figures reported with the perplexity of a text: unknown words, and perplexities that account for them."""

    vocabulary: int
    """Number of words in the vocabulary, including `<unk>`"""
    words: int
    """Number of words of the text"""
    unknown: int
    unknown_rate: float
    """In percent"""
    perplexity_with_spelling: float | None
    """None for a model without a spelling model"""
    perplexity_of_known_words: float | None
    """None if the model cannot compute it"""
    perplexity_signature: str | None
    """Perplexities can be compared if this is the same; None for a mean over different ones"""

    @classmethod
    def of(cls, likelihood: Likelihood, vocabulary: Vocabulary) -> Coverage:
        """The coverage of a text that has this likelihood under a model with this vocabulary."""
        count = likelihood.count
        return cls(
            vocabulary=len(vocabulary),
            words=count.words,
            unknown=count.unknown,
            unknown_rate=count.rate,
            perplexity_with_spelling=likelihood.perplexity_with_spelling,
            perplexity_of_known_words=likelihood.perplexity_of_known_words,
            perplexity_signature=f"vocabulary {len(vocabulary):,} sha256:{vocabulary.set_checksum[:8]} | "
            f"unknown {count.rate:.2f} %",
        )

    def figures(self) -> str:
        """The two other perplexities, in words."""
        named = {"with spelling": self.perplexity_with_spelling, "of known words": self.perplexity_of_known_words}
        return ", ".join(f"{name} {format_perplexity(found)}" for name, found in named.items() if found is not None)


def _sum(first: float | None, second: float | None) -> float | None:
    """The sum; None if a summand is None."""
    return None if first is None or second is None else first + second


NOT_COMPARABLE = (
    "Perplexities of different vocabularies cannot be compared; compare the perplexities with spelling instead."
)


def are_comparable(coverages: Iterable[Coverage | None]) -> bool:
    """Whether perplexities are of the same event: the same words are known, or all words of the text are."""
    events = {coverage and (coverage.perplexity_signature if coverage.unknown else "") for coverage in coverages}
    return len(events) <= 1


def format_perplexity(perplexity: float) -> str:
    """A perplexity in the printed form."""
    return f"{perplexity:,.1f}" if math.isfinite(perplexity) else "inf"
