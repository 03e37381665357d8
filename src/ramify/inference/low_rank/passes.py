"""log p(w) as a differentiable function, whatever engine runs the two passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ramify.inference.rules import LowRankRules


@dataclass(frozen=True)
class Sums:
    """Gradients of the upstream-weighted sum of log p(w), summed over the spans of the batch.

    With respect to probabilities (`children`, `leaf_children`, `head`), which the engine keeps finite, or to their
    logarithms (`root`, `words`) and span scores, where they are expected counts.
    """

    children: Tensor
    """(n or d, 2d) of [V | W] below phrases, or of U^T [V | W] where the symbols were skipped"""
    leaf_children: Tensor
    """(p, 2d) of [V | W] below words"""
    head: Tensor | None
    """(n, d) of U; None where the symbols were skipped"""
    root: Tensor
    """(n or d,) of log r, or of log U^T r where the symbols were skipped"""
    words: Tensor
    """(B, N, p)"""
    span_scores: Tensor
    """(B, N+1, N+1)"""


class Engine(Protocol):
    """A module with the two passes of an algorithm; what `inside_pass` returns has `log_z` (B,)."""

    def inside_pass(self, rules: LowRankRules, span_scores: Tensor, skip_symbols: bool) -> Any:  # noqa: D102
        ...

    def gradient_sums(self, chart: Any, upstream: Tensor) -> Sums:  # noqa: D102
        ...


def skip_symbols(n: int, d: int) -> bool:
    """Whether d x 2d products a span cost less than going through the n symbols (4 d^2 < 6 n d)."""
    return 2 * d < 3 * n


class _Inside(torch.autograd.Function):
    """log p(w) with the outside pass as its backward pass; gradients of log-probabilities are expected counts."""

    @staticmethod
    def forward(ctx: Any, engine: Engine, *inputs: Tensor) -> Tensor:
        root, head, left, right, words, lengths, span_scores = inputs
        ctx.engine = engine
        ctx.save_for_backward(root, head, left, right)
        rules = LowRankRules(root, head, left, right, words, lengths)
        ctx.chart = engine.inside_pass(rules, span_scores, skip_symbols(*head.shape))
        return torch.as_tensor(ctx.chart.log_z, device=words.device).to(words.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        root, head, left, right = ctx.saved_tensors
        n, d = head.shape
        sums: Sums = ctx.engine.gradient_sums(ctx.chart, upstream)
        U, both = head.exp(), torch.cat([left, right], 1).exp()
        g_children, g_head, g_root = sums.children, sums.head, sums.root
        if g_head is None:
            # Through the products U^T [V | W] and U^T r, to U, V, W and r themselves.
            start = U.T @ root.exp()
            share = torch.where(start > 0, g_root / start, 0)
            g_head = both[:n] @ g_children.T + root.exp()[:, None] * share
            g_children = U @ g_children
            g_root = root.exp() * (U @ share)
        g_left, g_right = (both * torch.cat([g_children, sums.leaf_children])).split(d, 1)
        return None, g_root, U * g_head, g_left, g_right, sums.words, None, sums.span_scores


def inside(engine: Engine, rules: LowRankRules, span_scores: Tensor) -> Tensor:
    """log p(w) of each sentence (B,), every span weighted by exp(span_scores[b, i, j]) (B, N+1, N+1)."""
    result: Tensor = _Inside.apply(  # type: ignore[no-untyped-call]
        engine, rules.root, rules.head, rules.left, rules.right, rules.words, rules.lengths, span_scores
    )
    return result
