"""Several ways to the same numbers, chosen by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

from torch import Tensor

from ramify.inference.rules import Marginals, Rules

AnyRules = TypeVar("AnyRules", bound=Rules)


class Engine(NamedTuple, Generic[AnyRules]):
    """One way: both functions take the rules and span scores (B, N+1, N+1)."""

    inside: Callable[[AnyRules, Tensor], Tensor]
    marginals: Callable[[AnyRules, Tensor], Marginals]


class Engines(Generic[AnyRules]):
    """The ways that rules of one shape know; `auto` names the one to take for given rules if none is asked for."""

    def __init__(self, engines: Mapping[str, Engine[AnyRules]], auto: Callable[[AnyRules], str]) -> None:
        self._engines, self._auto = engines, auto

    def _chosen(self, rules: AnyRules, engine: str) -> Engine[AnyRules]:
        if engine == "auto":
            return self._engines[self._auto(rules)]
        if engine not in self._engines:
            raise ValueError(f"engine {engine!r} is not one of {', '.join(('auto', *self._engines))}")
        return self._engines[engine]

    def inside(self, rules: AnyRules, span_scores: Tensor | None = None, engine: str = "auto") -> Tensor:
        """log p(w) of each sentence (B,), differentiable in every tensor of the rules and in the span scores.

        `span_scores` (B, N+1, N+1) is added to the log-weight of every derivation that has words i..j-1 as a
        constituent, so its gradient is the span posterior, and minus infinity forbids a span.
        """
        return self._chosen(rules, engine).inside(rules, _filled_in(rules, span_scores))

    def marginals(self, rules: AnyRules, span_scores: Tensor | None = None, engine: str = "auto") -> Marginals:
        """The posteriors of spans, and the best label of each span and tag of each word."""
        return self._chosen(rules, engine).marginals(rules, _filled_in(rules, span_scores))


def _filled_in(rules: Rules, span_scores: Tensor | None) -> Tensor:
    B, N, _ = rules.words.shape
    if span_scores is None:
        return rules.words.new_zeros(B, N + 1, N + 1)
    if span_scores.shape != (B, N + 1, N + 1):
        raise ValueError(f"span_scores has shape {tuple(span_scores.shape)}, expected {(B, N + 1, N + 1)}")
    return span_scores
