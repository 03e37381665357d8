"""What went wrong with the sentences of a stream, counted as they pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeVar

from ramify.errors import RamifyError
from ramify.evaluation.failures import MOST_NAMED, failures_told, log_space_told
from ramify.parser.analysis import Analysis, Scored

AnyResult = TypeVar("AnyResult", Analysis, Scored)


class Tally:
    """Counts sentences without a parse, and those that needed log space; if `strict`, stops at the first failure."""

    def __init__(self, strict: bool = False) -> None:
        self._strict = strict
        self.sentences = self.in_log_space = 0
        self.failures = Counter[str]()
        self._named: dict[str, list[str]] = {}

    def watch(self, results: Iterable[AnyResult]) -> Iterator[AnyResult]:
        """The same results, counted."""
        for result in results:
            self.sentences += 1
            self.in_log_space += result.in_log_space
            if result.failure is not None:
                self._add(result.failure, result.sentence.where or f"sentence {self.sentences}")
            yield result

    def _add(self, failure: str, where: str) -> None:
        if self._strict:
            raise RamifyError(f"{where}: has no parse ({failure}); without --strict it gets a flat tree.")
        self.failures[failure] += 1
        named = self._named.setdefault(failure, [])
        if len(named) < MOST_NAMED:
            named.append(where)

    def lines(self) -> Iterator[str]:
        """What there is to report; nothing if all went well."""
        if self.failures:
            yield failures_told(self.failures, self._named, self.sentences)
        if self.in_log_space:
            yield log_space_told(self.in_log_space)
