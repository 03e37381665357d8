"""Grammars with their rule tensor written out: the reference in log space and the path that is held to it."""

from __future__ import annotations

from ramify.inference.dense import passes, reference
from ramify.inference.engines import Engine, Engines
from ramify.inference.rules import DenseRules

_ENGINES: Engines[DenseRules] = Engines(
    {
        "scaled": Engine(passes.inside, passes.marginals),
        "reference": Engine(reference.inside, reference.marginals),
    },
    auto=lambda _: "scaled",
)
inside, marginals = _ENGINES.inside, _ENGINES.marginals
