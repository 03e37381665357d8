"""Adam behind a cut of the gradient's norm, both on every core."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from ramify.inference import threads

Share = list[tuple[Tensor, ...]]
"""Flat pieces of parameters, each with those of its gradient, of its two moments, and its number of steps."""


class ClippedAdam(torch.optim.Optimizer):
    """Torch's fused Adam, given the numbers of all parameters in equal shares, one a core.

    Most of a grammar's numbers are in one matrix, the words', so whole parameters could not be shared out evenly.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, betas: tuple[float, float], clip: float) -> None:
        super().__init__(parameters, {"lr": lr, "betas": betas})
        self.clip = clip

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # noqa: ARG002
        """Against the gradients; their norm is cut to `clip` if it is larger."""
        (group,) = self.param_groups
        moved = [parameter for parameter in group["params"] if parameter.grad is not None]
        shares = _shares([self._with_state(parameter) for parameter in moved])
        norm = torch.stack(threads.in_pieces(_norm, shares)).norm()
        factor = float(self.clip / (norm + 1e-6))  # as in torch's own clipping

        def update(share: Share) -> None:
            values, gradients, means, squares, steps = (list(column) for column in zip(*share, strict=True))
            if factor < 1:
                for gradient in gradients:
                    gradient.mul_(factor)
            adam(
                values, gradients, means, squares, [], [step.clone() for step in steps], fused=True, amsgrad=False,
                beta1=group["betas"][0], beta2=group["betas"][1], lr=group["lr"], weight_decay=0.0, eps=1e-8,
                maximize=False,
            )  # fmt: skip

        threads.in_pieces(update, shares)
        for parameter in moved:
            self.state[parameter]["step"] += 1

    def _with_state(self, parameter: nn.Parameter) -> tuple[Tensor, ...]:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), device=parameter.device)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        gradient = parameter.grad
        assert gradient is not None
        return parameter, gradient, state["exp_avg"], state["exp_avg_sq"], state["step"]


def _shares(columns: list[tuple[Tensor, ...]]) -> list[Share]:
    """The numbers of all parameters in as many equal shares as there are cores."""
    count = threads.available() if columns[0][0].device.type == "cpu" else 1
    total = sum(parameter.numel() for parameter, *_ in columns)
    shares: list[Share] = [[] for _ in range(count)]
    before = 0
    for parameter, gradient, mean, square, step in columns:
        flat = [parameter.view(-1), gradient.reshape(-1), mean.view(-1), square.view(-1)]
        for k, share in enumerate(shares):
            begin = max(total * k // count - before, 0)
            end = min(total * (k + 1) // count - before, parameter.numel())
            if begin < end:
                share.append((*(x[begin:end] for x in flat), step))
        before += parameter.numel()
    return [share for share in shares if share]


def _norm(share: Share) -> Tensor:
    return torch.nn.utils.get_total_norm(gradient for _, gradient, *_ in share)
