"""PCFGs with a rule tensor of low rank: the reference in log space and the engines that are tested against it."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from ramify.runtime.threads import torch_on_one_core
from ramify.structures.distribution import Marginals
from ramify.structures.engines import REFERENCE, Engine, register_engine
from ramify.structures.low_rank import passes, reference, scaled
from ramify.structures.low_rank.distribution import MOST_RULES, LowRankPCFG, LowRankRules
from ramify.structures.low_rank.shards import working_bytes

__all__ = ["MOST_RULES", "LowRankPCFG", "LowRankRules", "working_bytes"]


def _refusal(pcfg: LowRankPCFG) -> str | None:
    return None if pcfg.words.device.type == "cpu" else f"runs on a CPU, not on {pcfg.words.device}"


def _compiled_inside(pcfg: LowRankPCFG) -> Tensor:
    from ramify.structures.low_rank import compiled  # which imports numba

    with torch_on_one_core():
        return passes.inside(compiled, pcfg)


def _compiled_marginals(pcfg: LowRankPCFG) -> Marginals:
    from ramify.structures.low_rank import compiled

    with torch_on_one_core():
        return compiled.marginals(pcfg)


def _separate_rules(pcfg: LowRankPCFG) -> bool:
    """Plain torch shares products of the rules between the sentences of a batch."""
    return pcfg.per_sentence


for _name, _engine in {
    "compiled": Engine(_compiled_inside, _compiled_marginals, _refusal, has_loops=True),
    "scaled": Engine(partial(passes.inside, scaled), scaled.marginals, one_at_a_time=_separate_rules),
    REFERENCE: Engine(reference.inside, reference.marginals, one_at_a_time=_separate_rules),
}.items():
    register_engine(LowRankPCFG, _name, _engine)
