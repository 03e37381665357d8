"""The inside algorithm for span scores in log space: the reference for the compiled engine.

Written for clarity and vectorised over the batch and all spans of one width; posteriors and gradients come from
autograd.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ramify.structures.log_space import SUM, Semiring

if TYPE_CHECKING:
    from ramify.structures.bracketings.distribution import Bracketings


def chart(log_weights: Tensor, semiring: Semiring = SUM) -> dict[int, Tensor]:
    """By width, the log total weights (B, starts) of the trees over all spans of that width, for (B, N+1, N+1).

    In the semiring `BEST` they are the log-weights of the best trees instead (CYK).
    """
    inside = {1: log_weights.diagonal(1, 1, 2)}
    for width in range(2, log_weights.shape[1]):
        starts = log_weights.shape[1] - width
        splits = [inside[s][:, :starts] + inside[width - s][:, s : s + starts] for s in range(1, width)]
        inside[width] = semiring.add(torch.stack(splits), 0) + log_weights.diagonal(width, 1, 2)
    return inside


def inside(trees: Bracketings) -> Tensor:
    """log Z of each sentence (B,)."""
    whole = torch.stack([found[:, 0] for found in chart(trees.log_weights()).values()])
    log_z = whole.gather(0, trees.lengths.to(whole.device)[None] - 1)[0]
    return torch.where(log_z > -torch.inf, log_z, -torch.inf)  # without a tree no score has a gradient
