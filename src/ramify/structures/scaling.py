"""Scaled vectors for numbers that are too small for a float: the largest entry is 1; the log of the divisor is stored.

An impossible span has scale minus infinity and therefore contributes exact zeros. Charts are indexed [batch, start,
width - 1]; all access patterns of inside and outside passes are strided views of them.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

Scaled = tuple[Tensor, Tensor]
"""Vectors (..., k) and their log scales (...)."""


def scale_dtype(device: torch.device) -> torch.dtype:
    """The dtype of log scales, which reach thousands, where float32 has four digits: float64 if the device has it."""
    return torch.float32 if device.type == "mps" else torch.float64


def normalise(vectors: Tensor, scale: Tensor) -> Scaled:
    """Vectors with largest entry 1 (or all zero), and the matching scales."""
    peak = vectors.amax(-1)
    divisor = torch.where(peak > 0, peak, 1)
    return vectors / divisor[..., None], scale + peak.to(scale.dtype).log()


def empty_chart(B: int, N: int, size: int, like: Tensor, scale: Tensor) -> Scaled:
    """A chart of impossible spans: zeros, not uninitialised memory, because unused entries are multiplied by zero."""
    return like.new_zeros(B, N, N, size), scale.new_full((B, N, N), -torch.inf)


def span_family(chart: Scaled, sizes: tuple[int, int], steps: tuple[int, int], offset: int) -> Scaled:
    """Two-dimensional family of spans as views (B, *sizes, k): `steps` and `offset` count chart cells."""
    vectors, scale = chart
    B, N, _, k = vectors.shape
    first, second = steps
    return (
        vectors.as_strided((B, *sizes, k), (N * N * k, first * k, second * k, 1), offset * k),
        scale.as_strided((B, *sizes), (N * N, first, second), offset),
    )


def at_width(chart: Scaled, width: int) -> Scaled:
    """All spans of one width, as views."""
    starts = chart[1].shape[1] - width + 1
    return chart[0][:, :starts, width - 1], chart[1][:, :starts, width - 1]


def store(chart: Scaled, width: int, value: Scaled) -> None:
    """Fill in all spans of one width."""
    for place, new in zip(at_width(chart, width), value, strict=True):
        place.copy_(new)


def relative(scales: Tensor, dtype: torch.dtype) -> Scaled:
    """Scales (..., k) as weights with largest entry 1, and the log of what they were divided by (...)."""
    peak = scales.amax(-1)
    return (scales - torch.where(peak == -torch.inf, 0, peak)[..., None]).exp().to(dtype), peak


def posterior_weights(exponent: Tensor, log_z: Tensor, dtype: torch.dtype) -> Tensor:
    """exp(exponent - log p(w)) for exponent (B, ...) and log p(w) (B,); bounded, and zero where p(w) = 0.

    A weight beyond the bound belongs to products that underflowed; bounding it keeps them zero, not 0 * inf.
    """
    bound = math.log(torch.finfo(dtype).max) - 10
    log_z = log_z.reshape(-1, *[1] * (exponent.dim() - 1))
    possible = log_z > -torch.inf
    shifted = exponent - torch.where(possible, log_z, 0)
    return torch.where(possible, shifted.clamp(max=bound).exp(), 0).to(dtype)


def by_start_and_width(span_scores: Tensor) -> Tensor:
    """(B, N, N): scores of spans (B, N+1, N+1) by [start, width - 1]; zero where the span would not fit."""
    B, posts, _ = span_scores.shape
    N = posts - 1
    strides = (posts * posts, posts + 1, 1)
    table = span_scores.contiguous()
    moved = table.as_strided((B, N, N), strides, table.storage_offset() + 1)  # it may be a part of a larger table
    starts = torch.arange(N, device=span_scores.device)
    fits = starts[:, None] + starts < N
    return torch.where(fits, moved, 0)


def by_fence_posts(chart: Tensor) -> Tensor:
    """(B, N+1, N+1, ...): entries of spans (B, N, N, ...) from [start, width - 1] to fence posts."""
    B, N = chart.shape[:2]
    result = chart.new_zeros(B, N + 1, N + 1, *chart.shape[3:])
    for width in range(1, N + 1):
        starts = torch.arange(N - width + 1, device=chart.device)
        result[:, starts, starts + width] = chart[:, : N - width + 1, width - 1]
    return result
