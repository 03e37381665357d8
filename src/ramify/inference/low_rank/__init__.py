"""Low-rank grammars: the reference in log space and the paths that are held to it."""

from __future__ import annotations

from torch import Tensor

from ramify.inference.low_rank import reference, scaled
from ramify.inference.rules import LowRankRules, Marginals

INSIDE = {"scaled": scaled.inside, "reference": reference.inside}
MARGINALS = {"scaled": scaled.marginals, "reference": reference.marginals}


def _scores(rules: LowRankRules, span_scores: Tensor | None) -> Tensor:
    B, N, _ = rules.words.shape
    if span_scores is None:
        return rules.words.new_zeros(B, N + 1, N + 1)
    if span_scores.shape != (B, N + 1, N + 1):
        raise ValueError(f"span_scores has shape {tuple(span_scores.shape)}, expected {(B, N + 1, N + 1)}")
    return span_scores


def inside(rules: LowRankRules, span_scores: Tensor | None = None, engine: str = "scaled") -> Tensor:
    """log p(w) of each sentence (B,), differentiable in every tensor of the rules and in the span scores.

    `span_scores` (B, N+1, N+1) is added to the log-weight of every derivation that has words i..j-1 as a
    constituent, so its gradient is the span posterior, and minus infinity forbids a span.
    """
    return INSIDE[engine](rules, _scores(rules, span_scores))


def marginals(rules: LowRankRules, span_scores: Tensor | None = None, engine: str = "scaled") -> Marginals:
    """The posteriors of spans, and the best label of each span and tag of each word."""
    return MARGINALS[engine](rules, _scores(rules, span_scores))
