"""PCFGs with dense rule tensors: the reference in log space and the engines that are tested against it."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from ramify.runtime.threads import torch_on_one_core
from ramify.structures.dense import compiled, passes, reference, scaled
from ramify.structures.dense.distribution import DensePCFG, DenseRules
from ramify.structures.distribution import Marginals
from ramify.structures.engines import REFERENCE, Engine, register_engine

__all__ = ["DensePCFG", "DenseRules", "symbol_posteriors"]


def _refusal(pcfg: DensePCFG) -> str | None:
    words = pcfg.words
    if words.device.type == "cpu" and words.dtype in (torch.float32, torch.float64):
        return None
    return f"takes float32 or float64 on a CPU, not {words.dtype} on {words.device}"


def _compiled_inside(pcfg: DensePCFG) -> Tensor:
    with torch_on_one_core():
        return passes.inside(compiled, pcfg)


def _compiled_marginals(pcfg: DensePCFG) -> Marginals:
    with torch_on_one_core():
        return passes.marginals(compiled, pcfg)


def symbol_posteriors(pcfg: DensePCFG) -> tuple[Tensor, Tensor]:
    """The posterior of every nonterminal over every span (B, N+1, N+1, n), and of every tag (B, N, p)."""
    if _refusal(pcfg) is not None:
        return passes.symbol_posteriors(scaled, pcfg)
    with torch_on_one_core():
        return passes.symbol_posteriors(compiled, pcfg)


register_engine(DensePCFG, "compiled", Engine(_compiled_inside, _compiled_marginals, _refusal, has_loops=True))
register_engine(DensePCFG, "scaled", Engine(partial(passes.inside, scaled), partial(passes.marginals, scaled)))
register_engine(DensePCFG, REFERENCE, Engine(reference.inside, reference.marginals))
