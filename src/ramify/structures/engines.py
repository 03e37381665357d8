"""Engines compute the same numbers in different ways. Each registers by name for one kind of distribution.

The interface is the same for all kinds, so no other module depends on which engines exist. The `reference` engine of a
kind works in log space, and tests compare the other engines with it: values and every gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from torch import Tensor

from ramify.runtime.compilation import loops_are_postponed

if TYPE_CHECKING:
    from ramify.structures.distribution import Marginals, TreeDistribution

Kind = TypeVar("Kind", bound="TreeDistribution")
Result = TypeVar("Result")

REFERENCE = "reference"


@dataclass(frozen=True)
class Engine(Generic[Kind]):
    """An implementation of the computations for one kind of distribution."""

    log_partition: Callable[[Kind], Tensor]
    """(B,), differentiable in every tensor of the distribution, including span scores"""
    marginals: Callable[[Kind], Marginals] | None = None
    """None if autograd computes the span posteriors from `log_partition`"""
    refusal: Callable[[Kind], str | None] = lambda _: None
    """The reason why it cannot run with this device or dtype; None if it can"""
    one_at_a_time: Callable[[Kind], bool] = lambda _: False
    """Whether sentences must be passed one by one, for example because each has separate rules"""
    has_loops: bool = False
    """Whether it needs compiled loops, which a program can postpone for a few sentences"""


_ENGINES: dict[type, dict[str, Engine[Any]]] = {}


def register_engine(kind: type[Kind], name: str, engine: Engine[Kind]) -> None:
    """Register an engine; `auto` takes the first registered one that can run."""
    engines = _ENGINES.setdefault(kind, {})
    if name in engines or name == "auto":
        raise ValueError(f"{kind.__name__} already has an engine {name!r}")
    engines[name] = engine


def engines_of(kind: type) -> dict[str, Engine[Any]]:
    """Engines by name, fastest first: those of the nearest base class that has any."""
    return next((_ENGINES[base] for base in kind.__mro__ if base in _ENGINES), {})


def choose_engine(distribution: Kind, name: str) -> Engine[Kind]:
    """The engine of this name or, for `auto`, the first that can run; a named engine that cannot run is an error.

    While loops are postponed, `auto` is the first engine without loops, except the log-space engine, which is slow.
    """
    engines = engines_of(type(distribution))
    if not engines:
        raise ValueError(f"no engine is registered for {type(distribution).__name__}; call register_engine")
    if name == "auto":
        able = [engine for engine in engines.values() if engine.refusal(distribution) is None]
        if loops_are_postponed():
            able = [each for each in able if not each.has_loops and each is not engines.get(REFERENCE)] or able
        return able[0]
    if name not in engines:
        raise ValueError(f"engine {name!r} is not one of {', '.join(('auto', *engines))}")
    if (reason := engines[name].refusal(distribution)) is not None:
        raise ValueError(f"the engine {name} {reason}")
    return engines[name]


def run_each_sentence(run: Callable[[Kind], Result], distribution: Kind) -> list[Result]:
    """The results of the sentences, each as a batch of one."""
    return [run(distribution.sentence(b)) for b in range(len(distribution))]
