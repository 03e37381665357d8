"""Inside and outside for rules of any shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from ramify.inference import dense, low_rank
from ramify.inference.rules import DenseRules, LowRankRules, Marginals, Rules

Result = TypeVar("Result")


def inside(rules: Rules, span_scores: Tensor | None = None, engine: str = "auto") -> Tensor:
    """log p(w) of each sentence (B,), differentiable in every tensor of the rules and in the span scores.

    `span_scores` (B, N+1, N+1) is added to the log-weight of every derivation that has words i..j-1 as a
    constituent. The engines are those of `dense` and `low_rank`; both know `auto`, `compiled`, `scaled` and
    `reference`.
    """
    if isinstance(rules, DenseRules):
        return dense.inside(rules, span_scores, engine)
    if not rules.per_sentence:
        return low_rank.inside(rules, span_scores, engine)
    return torch.cat(_one_by_one(lambda one, scores: low_rank.inside(one, scores, engine), rules, span_scores))


def marginals(rules: Rules, span_scores: Tensor | None = None, engine: str = "auto") -> Marginals:
    """The posteriors of spans, and the best label of each span and tag of each word."""
    if isinstance(rules, DenseRules):
        return dense.marginals(rules, span_scores, engine)
    if not rules.per_sentence:
        return low_rank.marginals(rules, span_scores, engine)
    found = _one_by_one(lambda one, scores: low_rank.marginals(one, scores, engine), rules, span_scores)
    return Marginals(*(torch.cat(parts) for parts in zip(*(vars(each).values() for each in found), strict=True)))


def _one_by_one(
    run: Callable[[LowRankRules, Tensor | None], Result], rules: LowRankRules, span_scores: Tensor | None
) -> list[Result]:
    """Low-rank rules that differ from sentence to sentence: each of them shares nothing with the others."""
    return [
        run(rules.sentence(b), None if span_scores is None else span_scores[b : b + 1]) for b in range(len(rules.words))
    ]
