"""Low-rank grammars: the reference in log space and the paths that are held to it."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from ramify.inference.engines import Engine, Engines
from ramify.inference.low_rank import compiled, passes, reference, scaled
from ramify.inference.rules import LowRankRules, Marginals
from ramify.runtime.threads import torch_on_one_core


def _on_cpu(rules: LowRankRules) -> bool:
    return rules.words.device.type == "cpu"


def _check_device(rules: LowRankRules) -> None:
    if not _on_cpu(rules):
        raise ValueError(f"the compiled engine runs on a CPU, and these rules are on {rules.words.device}")


def _compiled_inside(rules: LowRankRules, span_scores: Tensor) -> Tensor:
    _check_device(rules)
    with torch_on_one_core():
        return passes.inside(compiled, rules, span_scores)


def _compiled_marginals(rules: LowRankRules, span_scores: Tensor) -> Marginals:
    _check_device(rules)
    with torch_on_one_core():
        return compiled.marginals(rules, span_scores)


_ENGINES: Engines[LowRankRules] = Engines(
    {
        "compiled": Engine(_compiled_inside, _compiled_marginals),
        "scaled": Engine(partial(passes.inside, scaled), scaled.marginals),
        "reference": Engine(reference.inside, reference.marginals),
    },
    auto=lambda rules: "compiled" if _on_cpu(rules) else "scaled",
)
inside, marginals = _ENGINES.inside, _ENGINES.marginals
