"""Adam after clipping the norm of the gradient; on a CPU in one pass over memory, on every core."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import nn

from ramify.models.base import Learner
from ramify.runtime import threads

NUMBERS_WORK = 40
"""Floating-point operations of a matrix product in the time of one memory access."""
Vectors = tuple[np.ndarray[Any, Any], ...]
Share = list[Vectors]


class AdamLearner(Learner, torch.optim.Adam):
    """Torch's Adam and torch's clipping, with separate loops for CPUs, because both mostly wait for memory.

    Each core takes an equal share of the numbers of all parameters. Whole parameters could not be shared evenly,
    because most numbers of a grammar are in the matrix of the words.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, betas: tuple[float, float], clip: float) -> None:
        super().__init__(parameters, lr, betas, fused=True)
        self.clip = clip

    def state_shapes(self, parameter: nn.Parameter) -> dict[str, tuple[int, ...]]:
        """The number of steps and the two moments."""
        return {"step": (), "exp_avg": tuple(parameter.shape), "exp_avg_sq": tuple(parameter.shape)}

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # noqa: ARG002
        """One step against the gradients, whose norm is reduced to `clip` if it is larger."""
        (group,) = self.param_groups
        moved = [parameter for parameter in group["params"] if parameter.grad is not None]
        if not moved:
            return
        # The loops need contiguous parameters that have all made the same number of steps.
        steps_done = {float(self.state[parameter].get("step", 0)) for parameter in moved}
        kinds = {(parameter.device.type, parameter.dtype, parameter.is_contiguous()) for parameter in moved}
        if len(steps_done) > 1 or kinds not in ({("cpu", torch.float32, True)}, {("cpu", torch.float64, True)}):
            nn.utils.clip_grad_norm_(moved, self.clip)
            super().step()
            return
        from ramify.models import adam_loops  # compiled; not every user needs it

        vectors = [self._vectors(parameter) for parameter in moved]
        work = NUMBERS_WORK * sum(len(numbers) for numbers, *_ in vectors)
        shares = _shares(vectors, threads.worth(work))

        def squares(share: Share) -> float:
            return math.fsum(adam_loops.sum_of_squares(gradient) for _, gradient, *_ in share)

        norm = math.sqrt(math.fsum(threads.in_pieces(squares, shares)))
        (beta1, beta2), steps = group["betas"], float(self.state[moved[0]]["step"])
        rates = np.array(
            [
                min(1.0, self.clip / (norm + 1e-6)), 1 - beta1, 1 - beta2, group["lr"] / (1 - beta1**steps),
                1 / math.sqrt(1 - beta2**steps), group["eps"],
            ],
            shares[0][0][0].dtype,
        )  # fmt: skip

        def update(share: Share) -> None:
            for vectors in share:
                adam_loops.update(*vectors, *rates)

        threads.in_pieces(update, shares)

    def _vectors(self, parameter: nn.Parameter) -> Vectors:
        """The numbers of a parameter, of its gradient and of its two moments; also counts its steps."""
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros(())
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        state["step"] += 1
        tensors = (parameter.detach(), parameter.grad, state["exp_avg"], state["exp_avg_sq"])
        return tuple(x.numpy().reshape(-1) for x in tensors if x is not None)


def _shares(parameters: list[Vectors], count: int) -> list[Share]:
    """The numbers of all parameters in equal shares."""
    total, before = sum(len(vectors[0]) for vectors in parameters), 0
    shares: list[Share] = [[] for _ in range(count)]
    for vectors in parameters:
        size = len(vectors[0])
        for k, share in enumerate(shares):
            begin, end = max(total * k // count - before, 0), min(total * (k + 1) // count - before, size)
            if begin < end:
                share.append(tuple(vector[begin:end] for vector in vectors))
        before += size
    return [share for share in shares if share]
