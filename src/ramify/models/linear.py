"""Linear layers for the rows of symbols, on a CPU with compiled loops.

A layer stores its result column by column, as the next layer needs it; for torch it is an ordinary tensor with unusual
strides.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ramify.runtime.compilation import loops_are_postponed
from ramify.runtime.padding import NARROW_BYTES, narrow_rows, padded_size

MIN_ROWS = 8
"""Torch computes fewer rows, because it does not pad them."""


class Linear(nn.Linear):
    """Torch's linear layer, computed by `linear`."""

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) to (..., out)"""
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (..., in) times weight (out, in) plus bias (out,), as in torch."""
    size, inner = weight.shape
    if (
        x.device.type != "cpu"
        or weight.device.type != "cpu"
        or weight.dtype not in (torch.float32, torch.float64)
        or x.dtype != weight.dtype
        or weight.stride(1) != 1
        or inner % padded_size(1, weight.dtype, NARROW_BYTES)
        or x.numel() < MIN_ROWS * inner
        or loops_are_postponed()
    ):
        plain: Tensor = nn.functional.linear(x, weight, bias)
        return plain
    if bias is None:
        bias = weight.new_zeros(size)
    found: Tensor = _Linear.apply(x.reshape(-1, inner), weight, bias)  # type: ignore[no-untyped-call]
    return found.unflatten(0, x.shape[:-1]) if x.dim() > 2 else found


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        from ramify.models import linear_loops  # compiled; not every user needs it

        ctx.save_for_backward(x, weight)
        columns = narrow_rows(x.detach().T)
        y = columns.new_empty(len(weight), columns.shape[1])
        arrays = (weight, bias.contiguous(), columns, y)
        linear_loops.forward(*(array.detach().numpy() for array in arrays))
        # Not a view, which could not be changed in place.
        return y.new_empty(0).set_(y.untyped_storage(), 0, (len(x), len(weight)), (1, y.shape[1]))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        from ramify.models import linear_loops

        x, weight = ctx.saved_tensors
        gradient = narrow_rows(upstream.T)
        g_weight, g_bias = weight.new_empty(weight.shape), weight.new_empty(len(weight))
        g_x = weight.new_empty(weight.shape[1], gradient.shape[1])
        arrays = (weight, x.contiguous(), gradient, g_weight, g_bias, g_x)
        linear_loops.backward(*(array.detach().numpy() for array in arrays))
        return g_x[:, : len(x)].T, g_weight, g_bias
