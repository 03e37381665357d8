"""Sums and products of log-probabilities that may be minus infinity, with gradients that are never NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


def log(x: Tensor) -> Tensor:
    """log x with log 0 = -inf and gradient zero there, where that of autograd would be 0 * inf."""
    positive = x > 0
    return torch.where(positive, torch.where(positive, x, 1).log(), -torch.inf)


def _peak(x: Tensor, dim: int) -> Tensor:
    """The maximum as a constant to shift by; 0 if everything is -inf."""
    peak = x.detach().amax(dim, keepdim=True)
    return torch.where(peak.isinf(), torch.zeros_like(peak), peak)


def logsumexp(x: Tensor, dim: int) -> Tensor:
    """log sum exp x over one dimension."""
    peak = _peak(x, dim)
    return log((x - peak).exp().sum(dim)) + peak.squeeze(dim)


def log_matmul(x: Tensor, matrix: Tensor) -> Tensor:
    """log(exp(x) @ exp(matrix)) for x (..., r, k) and matrix (..., k, l).

    As a product of shifted probabilities, unless their range is so large that a product could underflow.
    """
    row_peak, column_peak = _peak(x, -1), _peak(matrix, -2)
    widest = _range(x, row_peak) + _range(matrix, column_peak)
    if widest > -math.log(torch.finfo(x.dtype).tiny) - 5:
        return logsumexp(x.unsqueeze(-1) + matrix.unsqueeze(-3), -2)
    return log((x - row_peak).exp() @ (matrix - column_peak).exp()) + row_peak + column_peak


def _range(x: Tensor, peak: Tensor) -> float:
    """The largest distance of a finite number from its peak."""
    below = (peak - x).detach()
    return float(torch.where(below.isinf(), 0, below).amax()) if below.numel() else 0.0


MAX_BLOCK = 2**22
"""Maximum size of the tables in `max_matmul`."""


def max_matmul(x: Tensor, matrix: Tensor) -> Tensor:
    """max over k of x[..., k] + matrix[k, l], for x (..., k) and matrix (k, l)."""
    rows = x.reshape(-1, x.shape[-1])
    block = max(1, MAX_BLOCK // matrix.numel())
    by_result = matrix.T.contiguous()
    parts = [(part[:, None] + by_result).amax(-1) for part in rows.split(block)]
    return torch.cat(parts).reshape(*x.shape[:-1], -1)


class Semiring(NamedTuple):
    """The way to combine alternatives, given as logarithms: by their sum or by their maximum."""

    add: Callable[[Tensor, int], Tensor]
    matmul: Callable[[Tensor, Tensor], Tensor]


SUM, BEST = Semiring(logsumexp, log_matmul), Semiring(torch.amax, max_matmul)
