"""The CPU path: the inside pass forwards and the outside pass backwards, each one compiled call per core."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ramify.runtime import threads
from ramify.structures.bracketings import kernels
from ramify.structures.bracketings.distribution import Bracketings
from ramify.structures.distribution import Marginals

WORK_OF_SPLIT = 1000
"""Floating-point operations that take as long as one split of a span, which needs an exponential"""


def _run(kernel: Any, lengths: Tensor, *tables: Tensor) -> None:
    """A kernel for all sentences. A core takes every n-th of them, for neighbours often have similar lengths."""
    splits = float((lengths**3).sum()) / 6
    count = min(len(lengths), threads.worth(WORK_OF_SPLIT * splits))
    arrays = [table.numpy() for table in (lengths, *tables)]
    threads.in_pieces(lambda first: kernel(first, count, *arrays), range(count))


def _inside(log_weights: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """log Z (B,) and the charts, in float64."""
    charts = torch.empty_like(log_weights)
    _run(kernels.inside, lengths, log_weights, charts)
    return charts[torch.arange(len(charts)), 0, lengths], charts


def _outside(log_weights: Tensor, lengths: Tensor, charts: Tensor) -> Tensor:
    """The posteriors (B, N+1, N+1), in float64."""
    posteriors = torch.zeros_like(charts)
    _run(kernels.outside, lengths, log_weights, charts, posteriors)
    return posteriors


def _prepared(log_weights: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    return log_weights.detach().double().contiguous(), lengths.cpu().long()


class _Inside(torch.autograd.Function):
    """log Z with the outside pass as its backward pass; gradients by the log-weights of spans are posteriors."""

    @staticmethod
    def forward(ctx: Any, log_weights: Tensor, lengths: Tensor) -> Tensor:
        arrays = _prepared(log_weights, lengths)
        log_z, charts = _inside(*arrays)
        ctx.save_for_backward(*arrays, charts)
        return log_z.to(log_weights.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        return _outside(*ctx.saved_tensors).to(upstream.dtype).mul_(upstream[:, None, None]), None


def inside(trees: Bracketings) -> Tensor:
    """log Z of each sentence (B,)."""
    result: Tensor = _Inside.apply(trees.log_weights(), trees.lengths)  # type: ignore[no-untyped-call]
    return result


@torch.no_grad()
def marginals(trees: Bracketings) -> Marginals:
    """Span posteriors from one inside and one outside pass."""
    arrays, dtype = _prepared(trees.log_weights(), trees.lengths), trees.log_potentials.dtype
    log_z, charts = _inside(*arrays)
    return Marginals(log_z.to(dtype), _outside(*arrays, charts).to(dtype))
