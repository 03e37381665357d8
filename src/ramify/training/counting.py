"""Expectation maximisation in the place of an optimizer."""

from __future__ import annotations

from typing import Any

import torch

from ramify.grammars.em_pcfg import EMPCFG


class ExpectationMaximisation(torch.optim.Optimizer):
    """A step adds a batch's expected counts, the gradients of log p(w); the M-step is made at the end of an epoch."""

    def __init__(self, grammar: EMPCFG) -> None:
        super().__init__(grammar.parameters(), {"lr": 0.0})
        self._grammar = grammar

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # noqa: ARG002
        """Take in the gradients of minus log p(w)."""
        for parameter in self._grammar.parameters():
            if parameter.grad is not None:
                counts = self.state[parameter].setdefault("counts", torch.zeros_like(parameter))
                counts -= parameter.grad

    @torch.no_grad()
    def finish_epoch(self) -> None:
        """The M-step; nothing happens where nothing was counted, as when a run is resumed behind it."""
        counts = [self.state[parameter].get("counts") for parameter in self._grammar.parameters()]
        found = [each for each in counts if each is not None]
        if len(found) == len(counts) and bool(found[0].any()):
            self._grammar.maximise(found)
        for each in found:
            each.zero_()
