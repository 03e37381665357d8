"""PCFGs whose symbols have head words: the reference in log space and the engines that are tested against it."""

from __future__ import annotations

import torch
from torch import Tensor

from ramify.structures.distribution import Marginals
from ramify.structures.engines import REFERENCE, Engine, register_engine
from ramify.structures.lexicalised import reference
from ramify.structures.lexicalised.distribution import LEFT, RIGHT, BilexicalPCFG, LexicalisedPCFG
from ramify.structures.lexicalised.unilexical import UnilexicalPCFG

__all__ = ["LEFT", "RIGHT", "BilexicalPCFG", "LexicalisedPCFG", "UnilexicalPCFG", "symbol_posteriors"]


def _refusal(pcfg: BilexicalPCFG) -> str | None:
    root = pcfg.root
    if root.device.type == "cpu" and root.dtype in (torch.float32, torch.float64):
        return None
    return f"takes float32 or float64 on a CPU, not {root.dtype} on {root.device}"


def _compiled_inside(pcfg: BilexicalPCFG) -> Tensor:
    from ramify.structures.lexicalised import compiled  # which imports numba

    return compiled.inside(pcfg)


def _compiled_marginals(pcfg: BilexicalPCFG) -> Marginals:
    from ramify.structures.lexicalised import compiled

    return compiled.marginals(pcfg)


def symbol_posteriors(pcfg: LexicalisedPCFG) -> tuple[Tensor, Tensor]:
    """The posterior of every nonterminal over every span (B, N+1, N+1, n), and of every tag (B, N, p)."""
    if isinstance(pcfg, BilexicalPCFG) and _refusal(pcfg) is None:
        from ramify.structures.lexicalised import compiled

        return compiled.symbol_posteriors(pcfg)
    return reference.symbol_posteriors(pcfg)


def _inside_in_float64(pcfg: UnilexicalPCFG) -> Tensor:
    return reference.inside(pcfg.to(torch.float64)).to(pcfg.words.dtype)


def _marginals_in_float64(pcfg: UnilexicalPCFG) -> Marginals:
    found = reference.marginals(pcfg.to(torch.float64)).tensors()
    return Marginals(**{name: x.to(pcfg.words.dtype) if x.is_floating_point() else x for name, x in found.items()})


register_engine(BilexicalPCFG, "compiled", Engine(_compiled_inside, _compiled_marginals, _refusal, has_loops=True))
register_engine(BilexicalPCFG, REFERENCE, Engine(reference.inside, reference.marginals))
# Log-space products of numbers more than 80 apart, as long sentences have, are slow in float32 and fast in float64.
register_engine(UnilexicalPCFG, REFERENCE, Engine(_inside_in_float64, _marginals_in_float64))
