"""Sums and products of log-probabilities that may be minus infinity, with gradients that are never NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from ramify.inference.rules import Marginals, Rules

AnyRules = TypeVar("AnyRules", bound=Rules)
Inside = Callable[[AnyRules, Tensor, Tensor], tuple[Tensor, dict[int, Tensor]]]
"""From rules, span scores and words: log p(w), and the log inside scores of the nonterminals by width."""


def log(x: Tensor) -> Tensor:
    """log x with log 0 = -inf and gradient zero there, where autograd's own would be 0 * inf."""
    positive = x > 0
    return torch.where(positive, torch.where(positive, x, 1).log(), -torch.inf)


def _peak(x: Tensor, dim: int) -> Tensor:
    """The maximum as a constant to shift by; 0 where everything is -inf."""
    peak = x.detach().amax(dim, keepdim=True)
    return torch.where(peak.isinf(), torch.zeros_like(peak), peak)


def logsumexp(x: Tensor, dim: int) -> Tensor:
    """log sum exp x over one dimension."""
    peak = _peak(x, dim)
    return log((x - peak).exp().sum(dim)) + peak.squeeze(dim)


def log_matmul(x: Tensor, matrix: Tensor) -> Tensor:
    """log(exp(x) @ exp(matrix)) for x (..., k) and matrix (..., k, l)."""
    row_peak, column_peak = _peak(x, -1), _peak(matrix, -2)
    return log((x - row_peak).exp() @ (matrix - column_peak).exp()) + row_peak + column_peak


MAX_BLOCK = 2**22
"""Numbers that `max_matmul` holds at a time."""


def max_matmul(x: Tensor, matrix: Tensor) -> Tensor:
    """max over k of x[..., k] + matrix[k, l], for x (..., k) and matrix (k, l)."""
    rows = x.reshape(-1, x.shape[-1])
    block = max(1, MAX_BLOCK // matrix.numel())
    by_result = matrix.T.contiguous()
    parts = [(part[:, None] + by_result).amax(-1) for part in rows.split(block)]
    return torch.cat(parts).reshape(*x.shape[:-1], -1)


class Semiring(NamedTuple):
    """How alternatives are put together, given as logarithms: by their sum or by the best of them."""

    add: Callable[[Tensor, int], Tensor]
    matmul: Callable[[Tensor, Tensor], Tensor]


SUM, BEST = Semiring(logsumexp, log_matmul), Semiring(torch.amax, max_matmul)


def marginals_by_autograd(inside: Inside[AnyRules], rules: AnyRules, span_scores: Tensor) -> Marginals:
    """Posteriors of spans, labels and tags, all of them as gradients of log p(w)."""
    log_z, tags, spans, labels = posteriors_by_autograd(inside, rules, span_scores)
    best_label = torch.zeros_like(spans, dtype=torch.long)
    best_label_posterior = torch.zeros_like(spans)
    for width, posterior in labels.items():
        top = posterior.max(-1)
        best_label.diagonal(width, 1, 2).copy_(top.indices)
        best_label_posterior.diagonal(width, 1, 2).copy_(top.values)
    tag = tags.max(-1)
    return Marginals(log_z, spans, best_label, best_label_posterior, tag.indices, tag.values)


@torch.enable_grad()
def posteriors_by_autograd(
    inside: Inside[AnyRules], rules: AnyRules, span_scores: Tensor
) -> tuple[Tensor, Tensor, Tensor, dict[int, Tensor]]:
    """log p(w) (B,); posteriors of tags (B, N, p), of spans (B, N+1, N+1), by width of labels (B, starts, n)."""
    words = rules.masked_words().detach().requires_grad_()
    scores = span_scores.detach().requires_grad_()
    log_z, symbols = inside(rules, scores, words)
    possible = log_z > -torch.inf
    total = torch.where(possible, log_z, 0).sum()
    wanted = [words, scores, *symbols.values()]
    if total.requires_grad and bool(possible.any()):
        gradients = torch.autograd.grad(total, wanted, materialize_grads=True)
    else:
        gradients = tuple(torch.zeros_like(t) for t in wanted)
    tags, spans, *labels = gradients
    return log_z.detach(), tags, spans, dict(zip(symbols, labels, strict=True))
