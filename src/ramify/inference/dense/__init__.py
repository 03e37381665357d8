"""Grammars with their rule tensor written out: the reference in log space and the paths that are held to it."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from ramify.inference.dense import compiled, passes, reference, scaled
from ramify.inference.engines import Engine, Engines
from ramify.inference.rules import DenseRules, Marginals
from ramify.runtime.threads import torch_on_one_core


def _for_compiled_loops(rules: DenseRules) -> bool:
    return rules.words.device.type == "cpu" and rules.words.dtype in (torch.float32, torch.float64)


def _check(rules: DenseRules) -> None:
    if not _for_compiled_loops(rules):
        found = f"{rules.words.dtype} on {rules.words.device}"
        raise ValueError(f"the compiled engine takes float32 or float64 on a CPU, and these rules are {found}")


def _compiled_inside(rules: DenseRules, span_scores: Tensor) -> Tensor:
    _check(rules)
    with torch_on_one_core():
        return passes.inside(compiled, rules, span_scores)


def _compiled_marginals(rules: DenseRules, span_scores: Tensor) -> Marginals:
    _check(rules)
    with torch_on_one_core():
        return passes.marginals(compiled, rules, span_scores)


def symbol_posteriors(rules: DenseRules) -> tuple[Tensor, Tensor]:
    """Of every nonterminal over every span (B, N, N, n), by start and width - 1, and of every tag (B, N, p)."""
    if not _for_compiled_loops(rules):
        return passes.symbol_posteriors(scaled, rules)
    with torch_on_one_core():
        return passes.symbol_posteriors(compiled, rules)


_ENGINES: Engines[DenseRules] = Engines(
    {
        "compiled": Engine(_compiled_inside, _compiled_marginals),
        "scaled": Engine(partial(passes.inside, scaled), partial(passes.marginals, scaled)),
        "reference": Engine(reference.inside, reference.marginals),
    },
    auto=lambda rules: "compiled" if _for_compiled_loops(rules) else "scaled",
)
inside, marginals = _ENGINES.inside, _ENGINES.marginals
