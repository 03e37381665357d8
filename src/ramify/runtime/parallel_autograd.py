"""Runs independent parts of a network at the same time, forwards and backwards.

Autograd runs backwards through a graph with one thread, and parts of some milliseconds are too small for torch's
threads. Here each part has a separate graph, and every core runs through one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ramify.runtime import threads


class Part(NamedTuple):
    """A function without arguments, and the tensors for which its result has gradients."""

    function: Callable[[], Tensor]
    inputs: Sequence[Tensor]
    work: float
    """Floating-point operations, roughly"""


def run_parts(parts: Sequence[Part]) -> tuple[Tensor, ...]:
    """The results of all parts; gradients reach their inputs, which several parts may share."""
    needed = _unique(tensor for part in parts for tensor in part.inputs)
    on_cpu = all(tensor.device.type == "cpu" for tensor in needed)
    if threads.worth(sum(part.work for part in parts)) == 1 or not on_cpu or not torch.is_grad_enabled():
        return tuple(part.function() for part in parts)
    results: tuple[Tensor, ...] = _RunParts.apply(parts, *needed)  # type: ignore[no-untyped-call]
    return results


def _unique(tensors: Iterable[Tensor]) -> list[Tensor]:
    return list({id(tensor): tensor for tensor in tensors}.values())


def _results(parts: Sequence[Part]) -> list[Tensor]:
    """Runs each part with a separate graph."""

    def run(part: Part) -> Tensor:
        with torch.enable_grad():
            return part.function()

    return threads.in_pieces(run, parts)


class _RunParts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, parts: Sequence[Part], *needed: Tensor) -> tuple[Tensor, ...]:
        ctx.parts, ctx.needed = parts, needed
        ctx.results = _results(parts)
        return tuple(result.detach() for result in ctx.results)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        def run(work: tuple[Part, Tensor, Tensor]) -> tuple[Tensor | None, ...]:
            part, result, gradient = work
            trainable = [tensor for tensor in part.inputs if tensor.requires_grad]
            return torch.autograd.grad(result, trainable, gradient)

        # The graphs of the parts are freed by the backward pass; a second backward pass builds them again.
        results, ctx.results = ctx.results or _results(ctx.parts), None
        found = threads.in_pieces(run, list(zip(ctx.parts, results, upstream, strict=True)))
        del results
        sums: dict[int, Tensor] = {}
        for part, gradients in zip(ctx.parts, found, strict=True):
            trainable = [tensor for tensor in part.inputs if tensor.requires_grad]
            for tensor, gradient in zip(trainable, gradients, strict=True):
                if gradient is not None:
                    before = sums.get(id(tensor))
                    sums[id(tensor)] = gradient if before is None else before + gradient
        return None, *(sums.get(id(tensor)) for tensor in ctx.needed)
