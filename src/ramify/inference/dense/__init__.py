"""Grammars with their rule tensor written out: the reference in log space and the path that is held to it."""

from __future__ import annotations

from torch import Tensor

from ramify.inference.dense import passes, reference
from ramify.inference.rules import DenseRules, Marginals

ENGINES = ("auto", "scaled", "reference")
"""`auto` is the scaled path."""


def _is_reference(engine: str) -> bool:
    if engine not in ENGINES:
        raise ValueError(f"engine {engine!r} is not one of {', '.join(ENGINES)}")
    return engine == "reference"


def _scores(rules: DenseRules, span_scores: Tensor | None) -> Tensor:
    B, N, _ = rules.words.shape
    if span_scores is None:
        return rules.words.new_zeros(B, N + 1, N + 1)
    if span_scores.shape != (B, N + 1, N + 1):
        raise ValueError(f"span_scores has shape {tuple(span_scores.shape)}, expected {(B, N + 1, N + 1)}")
    return span_scores


def inside(rules: DenseRules, span_scores: Tensor | None = None, engine: str = "auto") -> Tensor:
    """log p(w) of each sentence (B,), differentiable in every tensor of the rules and in the span scores.

    `span_scores` (B, N+1, N+1) is added to the log-weight of every derivation that has words i..j-1 as a
    constituent, so its gradient is the span posterior, and minus infinity forbids a span.
    """
    scores = _scores(rules, span_scores)
    return reference.inside(rules, scores) if _is_reference(engine) else passes.inside(rules, scores)


def marginals(rules: DenseRules, span_scores: Tensor | None = None, engine: str = "auto") -> Marginals:
    """The posteriors of spans, and the best label of each span and tag of each word."""
    scores = _scores(rules, span_scores)
    return reference.marginals(rules, scores) if _is_reference(engine) else passes.marginals(rules, scores)
