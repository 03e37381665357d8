"""Unlabelled binary trees with span scores: the reference in log space, and the compiled engine tested against it."""

from __future__ import annotations

import torch

from ramify.structures.bracketings import compiled, reference
from ramify.structures.bracketings.distribution import Bracketings
from ramify.structures.engines import REFERENCE, Engine, register_engine

__all__ = ["Bracketings"]


def _refusal(trees: Bracketings) -> str | None:
    potentials = trees.log_potentials
    if potentials.device.type == "cpu" and potentials.dtype in (torch.float32, torch.float64):
        return None
    return f"takes float32 or float64 on a CPU, not {potentials.dtype} on {potentials.device}"


register_engine(Bracketings, "compiled", Engine(compiled.inside, compiled.marginals, _refusal, has_loops=True))
register_engine(Bracketings, REFERENCE, Engine(reference.inside))
