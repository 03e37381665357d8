"""Low-rank grammars: the reference in log space and the paths that are held to it."""

from __future__ import annotations

from torch import Tensor

from ramify.inference.low_rank import compiled, passes, reference, scaled
from ramify.inference.rules import LowRankRules, Marginals
from ramify.inference.threads import torch_on_one_core

ENGINES = ("auto", "compiled", "scaled", "reference")
"""`auto` is the compiled path on a CPU and the scaled one elsewhere."""


def _chosen(rules: LowRankRules, engine: str) -> str:
    if engine not in ENGINES:
        raise ValueError(f"engine {engine!r} is not one of {', '.join(ENGINES)}")
    on_cpu = rules.words.device.type == "cpu"
    if engine == "compiled" and not on_cpu:
        raise ValueError(f"the compiled engine runs on a CPU, and these rules are on {rules.words.device}")
    return engine if engine != "auto" else "compiled" if on_cpu else "scaled"


def _scores(rules: LowRankRules, span_scores: Tensor | None) -> Tensor:
    B, N, _ = rules.words.shape
    if span_scores is None:
        return rules.words.new_zeros(B, N + 1, N + 1)
    if span_scores.shape != (B, N + 1, N + 1):
        raise ValueError(f"span_scores has shape {tuple(span_scores.shape)}, expected {(B, N + 1, N + 1)}")
    return span_scores


def inside(rules: LowRankRules, span_scores: Tensor | None = None, engine: str = "auto") -> Tensor:
    """log p(w) of each sentence (B,), differentiable in every tensor of the rules and in the span scores.

    `span_scores` (B, N+1, N+1) is added to the log-weight of every derivation that has words i..j-1 as a
    constituent, so its gradient is the span posterior, and minus infinity forbids a span.
    """
    scores, chosen = _scores(rules, span_scores), _chosen(rules, engine)
    if chosen == "reference":
        return reference.inside(rules, scores)
    if chosen == "scaled":
        return passes.inside(scaled, rules, scores)
    with torch_on_one_core():
        return passes.inside(compiled, rules, scores)


def marginals(rules: LowRankRules, span_scores: Tensor | None = None, engine: str = "auto") -> Marginals:
    """The posteriors of spans, and the best label of each span and tag of each word."""
    scores, chosen = _scores(rules, span_scores), _chosen(rules, engine)
    if chosen == "reference":
        return reference.marginals(rules, scores)
    if chosen == "scaled":
        return scaled.marginals(rules, scores)
    with torch_on_one_core():
        return compiled.marginals(rules, scores)
