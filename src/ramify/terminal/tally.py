"""Counts what `parse` and `score` report at the end."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from ramify.corpus.table_rows import RowCount
from ramify.corpus.vocabulary import NO_WORDS, UnknownCount, Vocabulary
from ramify.errors import RamifyError
from ramify.evaluation.agreement import MemberAgreement
from ramify.evaluation.coverage import Coverage, Likelihood, format_perplexity
from ramify.evaluation.failures import MAX_NAMED, describe_failures, describe_log_space
from ramify.parser.analysis import Analysis, Scored
from ramify.parser.ensemble import Ensemble, add_agreement
from ramify.parser.k_best import BestParses
from ramify.parser.tree_parser import TreeParser
from ramify.terminal.tables import collapse_lines

AnyResult = TypeVar("AnyResult", Analysis, Scored, BestParses)


class Tally:
    """Counts sentences without a parse, unknown words, and sentences that needed log space.

    If `strict`, the first sentence without a parse is an error. For an ensemble, it also finds collapsed members.
    """

    def __init__(self, strict: bool = False, parser: TreeParser | None = None) -> None:
        self._strict = strict
        self._agreement = MemberAgreement(parser.names) if isinstance(parser, Ensemble) else None
        self.sentences = self.in_log_space = 0
        self.words = NO_WORDS
        self.failures = Counter[str]()
        self._named: dict[str, list[str]] = {}

    def watch(self, results: Iterable[AnyResult]) -> Iterator[AnyResult]:
        """Yield the same results and count them."""
        for result in results:
            self.sentences += 1
            self.words += result.count
            self.in_log_space += result.in_log_space
            if self._agreement is not None and isinstance(result, Analysis):
                add_agreement(self._agreement, result)
            if result.failure is not None:
                self._add(result.failure, result.sentence.where or f"sentence {self.sentences}")
            yield result

    def _add(self, failure: str, where: str) -> None:
        if self._strict:
            raise RamifyError(
                f"{where}: the sentence has no parse ({failure}); leave out --strict to give it a flat tree."
            )
        self.failures[failure] += 1
        named = self._named.setdefault(failure, [])
        if len(named) < MAX_NAMED:
            named.append(where)

    def as_record(self) -> dict[str, Any]:
        """As JSON values, for `add` in another process."""
        return {
            "sentences": self.sentences,
            "words": self.words.words,
            "unknown": self.words.unknown,
            "in_log_space": self.in_log_space,
            "failures": dict(self.failures),
            "named": self._named,
            "agreement": None if self._agreement is None else self._agreement.sums(),
        }

    def add(self, record: dict[str, Any]) -> None:
        """Add the counts of a later part of the same text."""
        self.sentences += record["sentences"]
        self.words += UnknownCount(record["words"], record["unknown"])
        self.in_log_space += record["in_log_space"]
        self.failures.update(record["failures"])
        for failure, named in record["named"].items():
            self._named[failure] = [*self._named.get(failure, ()), *named][:MAX_NAMED]
        if record["agreement"] is not None:
            if self._agreement is None:
                self._agreement = MemberAgreement(record["agreement"]["names"])
            self._agreement.add_sums(record["agreement"])

    def lines(self) -> Iterator[str]:
        """Lines to report; none if every sentence has a parse and every word is known."""
        if self.words.unknown:
            yield f"Unknown: {self.words}."
        if self.failures:
            yield describe_failures(self.failures, self._named, self.sentences)
        if self.in_log_space:
            yield describe_log_space(self.in_log_space)
        if self._agreement is not None:
            yield from collapse_lines(self._agreement.collapsed())


class ConstraintTally:
    """Counts sentences with constraints, and adds up the log-probabilities of their constraints."""

    def __init__(self) -> None:
        self._sentences = self._constrained = 0
        self._log_probabilities: list[float] = []
        self._counted = 0
        """Number of sentences with a log-probability of their constraints"""

    def watch(self, results: Iterable[Analysis]) -> Iterator[Analysis]:
        """Yield the same results and count them."""
        for result in results:
            self._sentences += 1
            self._constrained += bool(result.sentence.constraints)
            log_p = result.constraint_log_probability
            if log_p is not None and log_p > -math.inf:
                self._log_probabilities.append(log_p)
                self._counted += 1
            yield result

    def as_record(self) -> dict[str, Any]:
        """As JSON values, for `add` in another process."""
        total = math.fsum(self._log_probabilities)
        return {
            "sentences": self._sentences, "constrained": self._constrained, "counted": self._counted, "log_p": total
        }  # fmt: skip

    def add(self, record: dict[str, Any]) -> None:
        """Add the counts of a later part of the same text."""
        self._sentences += record["sentences"]
        self._constrained += record["constrained"]
        self._counted += record["counted"]
        self._log_probabilities.append(record["log_p"])

    def lines(self) -> Iterator[str]:
        """The number of sentences with constraints and their mean probability, if a tree can meet them."""
        if not self._constrained:
            return
        total, count = math.fsum(self._log_probabilities), self._counted
        mean = f"; mean log-probability of constraints {total / count:.4f} nats" if count else ""
        yield f"Sentences with constraints: {self._constrained:,} of {self._sentences:,}{mean}."


class ParseTally:
    """Everything that `parse` reports at the end: parses, constraints, and rows without text."""

    def __init__(self, strict: bool = False, parser: TreeParser | None = None) -> None:
        self.parses, self.constraints, self.rows = Tally(strict, parser), ConstraintTally(), RowCount()

    def watch(self, results: Iterable[Analysis]) -> Iterator[Analysis]:
        """Yield the same results and count them."""
        return self.constraints.watch(self.parses.watch(results))

    def as_record(self) -> dict[str, Any]:
        """As JSON values, for `add` in another process."""
        rows = {"empty": self.rows.empty, "named": self.rows.named}
        return {"parses": self.parses.as_record(), "constraints": self.constraints.as_record(), "rows": rows}

    def add(self, record: dict[str, Any]) -> None:
        """Add the counts of a later part of the same text."""
        self.parses.add(record["parses"])
        self.constraints.add(record["constraints"])
        self.rows.add_all(RowCount(**record["rows"]))

    def lines(self) -> Iterator[str]:
        """Lines to report."""
        yield from self.parses.lines()
        yield from self.constraints.lines()
        yield from self.rows.lines()


class LikelihoodTotals:
    """Adds up the likelihoods of sentences; a single word has no derivation and is not counted."""

    def __init__(self, done_before: int = 0) -> None:
        self.total = Likelihood()
        self._short = 0
        self._done_before = done_before

    def watch(self, results: Iterable[Scored]) -> Iterator[Scored]:
        """Yield the same results and add up their likelihoods."""
        for result in results:
            if result.count.words < 2:
                self._short += 1
            else:
                self.total += result.likelihood
            yield result

    def lines(self, vocabulary: Vocabulary) -> Iterator[str]:
        """Sentences, log-probability and perplexities."""
        left_out = f"; {self._short:,} shorter ones are not counted" if self._short else ""
        before = f"; {self._done_before:,} lines of the earlier run are not counted" if self._done_before else ""
        yield f"Sentences of two words or more: {self.total.sentences:,}{left_out}{before}."
        if not self.total.sentences:
            return
        coverage = Coverage.of(self.total, vocabulary)
        yield f"Log p(w): {self.total.log_probability:.6f} nats in total."
        perplexity = format_perplexity(self.total.perplexity)
        yield f"Perplexity: {perplexity}, {coverage.figures()} ({coverage.perplexity_signature})."
