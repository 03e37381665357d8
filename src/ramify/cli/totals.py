"""What `parse` and `score` report on standard error when all lines are out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ramify.cli.common import notes

if TYPE_CHECKING:
    from ramify.corpus.vocabulary import Vocabulary
    from ramify.evaluation.coverage import Likelihood
    from ramify.parser.analysis import Analysis


class ParseTotals:
    """Counts the unknown words of analyses as they pass."""

    def __init__(self) -> None:
        self.words = self.unknown = 0

    def watch(self, analyses: Iterable[Analysis]) -> Iterator[Analysis]:
        """The same analyses, counted."""
        for analysis in analyses:
            self.words += sum(analysis.sentence.is_word)
            self.unknown += sum(analysis.unknown)
            yield analysis

    def report(self) -> None:
        """Nothing where every word was known."""
        from ramify.corpus.vocabulary import UnknownCount

        if self.unknown:
            _print(f"Unknown: {UnknownCount(self.words, self.unknown)}.")


class ScoreTotals:
    """Adds up the likelihoods of sentences as they pass; a single word has no derivation and is not counted."""

    def __init__(self, done_before: int) -> None:
        from ramify.evaluation.coverage import Likelihood

        self._total = Likelihood()
        self._short = self._impossible = 0
        self._done_before = done_before

    def watch(self, likelihoods: Iterable[Likelihood]) -> Iterator[Likelihood]:
        """The same likelihoods, added up."""
        for each in likelihoods:
            if each.count.words < 2:
                self._short += 1
            else:
                self._total += each
                self._impossible += math.isinf(each.log_probability)
            yield each

    def report(self, vocabulary: Vocabulary) -> None:
        """Sentences, unknown words, log-probability and perplexities."""
        from ramify.evaluation.coverage import Coverage, shown

        total = self._total
        left_out = f"; {self._short:,} of fewer words are not counted" if self._short else ""
        before = f"; the {self._done_before:,} lines done before are not counted" if self._done_before else ""
        _print(f"Sentences of two words or more: {total.sentences:,}{left_out}{before}.")
        if not total.sentences:
            return
        _print(f"Unknown: {total.count}.")
        if self._impossible:
            _print(f"Without a derivation: {self._impossible:,} sentences, so that their probability is 0.")
        coverage = Coverage.of(total, vocabulary)
        _print(f"Log p(w): {total.log_probability:.6f} nats in total.")
        _print(f"Perplexity: {shown(total.perplexity)}, {coverage.figures()} ({coverage.perplexity_signature}).")


def _print(line: str) -> None:
    notes.print(line, highlight=False, markup=False, soft_wrap=True)
