"""EM-PCFG: a dense PCFG with its probabilities as parameters, learnt by counting (Baker 1979; Lari and Young 1990).

It is the baseline for neural grammars. The E-step computes the expected number of uses of every rule, which is the
gradient of log p(w) by the rule's log-probability; the M-step turns the counts into probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ramify.models.base import Learner
from ramify.models.grammar import Grammar
from ramify.structures.dense import DenseRules

MIN_LOG_PROBABILITY = -100.0
"""The smallest log-probability: exp of it is zero in float32, but the number on disk is finite."""
PSEUDO_COUNT = 0.01
"""Added to the count of every word under every preterminal, so that unseen words are not impossible."""


class EMPCFG(Grammar):
    """A dense PCFG, initialised with the softmax of Gaussian logits of standard deviation `gain`."""

    allows_dropout = False

    def __init__(self, nonterminals: int, preterminals: int, words: int, gain: float = 1.0) -> None:
        super().__init__(nonterminals, preterminals, None, words)
        m = nonterminals + preterminals
        self.root = nn.Parameter(torch.randn(nonterminals).mul_(gain).log_softmax(0))
        self.binary = nn.Parameter(torch.randn(nonterminals, m * m).mul_(gain).log_softmax(1).view(nonterminals, m, m))
        self.word_table = nn.Parameter(torch.randn(words, preterminals).mul_(gain).log_softmax(0))

    def rules(self, z: Tensor | None = None) -> DenseRules:  # noqa: ARG002
        """Start and binary rules."""
        return DenseRules(self.root, self.binary)

    def emission(self, word_ids: Tensor, z: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """log p(T -> w) (..., p) of the words given by their numbers (...)."""
        return nn.functional.embedding(word_ids, self.word_table)

    def learner(self, learning_rate: float, clip: float) -> ExpectationMaximisation:  # noqa: ARG002
        """Counting, which has no learning rate."""
        return ExpectationMaximisation(self)

    @torch.no_grad()
    def maximise(self, counts: Sequence[Tensor]) -> None:
        """The M-step: probabilities from expected counts, one tensor for each parameter, in their order.

        A symbol that was never used keeps its rules.
        """
        root, binary, words = counts
        for parameter, found, dims in (
            (self.root, root, (0,)),
            (self.binary, binary, (1, 2)),
            (self.word_table, words + PSEUDO_COUNT, (0,)),
        ):
            total = found.sum(dims, keepdim=True, dtype=torch.float64)
            renewed = (found.double() / total).log().clamp(min=MIN_LOG_PROBABILITY).to(parameter.dtype)
            parameter.copy_(torch.where(total > 0, renewed, parameter))


class ExpectationMaximisation(Learner):
    """A step adds the expected counts of a batch, the gradients of log p(w); each epoch ends with the M-step."""

    def __init__(self, grammar: EMPCFG) -> None:
        super().__init__(grammar.parameters(), {"lr": 0.0})
        self._grammar = grammar

    def state_shapes(self, parameter: nn.Parameter) -> dict[str, tuple[int, ...]]:
        """The counts of the epoch so far."""
        return {"counts": tuple(parameter.shape)}

    def loss(self, objective: Tensor, sentences: int) -> Tensor:  # noqa: ARG002
        """Minus the sum over the batch, not the mean, because its gradients are counts."""
        return -objective.sum()

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # noqa: ARG002
        """Add the expected counts, which are minus the gradients of minus log p(w)."""
        for parameter in self._grammar.parameters():
            if parameter.grad is not None:
                counts = self.state[parameter].setdefault("counts", torch.zeros_like(parameter))
                counts -= parameter.grad

    @torch.no_grad()
    def finish_epoch(self) -> None:
        """The M-step; without counts, for example in a run resumed directly after it, nothing happens."""
        counts = [self.state[parameter].get("counts") for parameter in self._grammar.parameters()]
        found = [each for each in counts if each is not None]
        if len(found) == len(counts) and bool(found[0].any()):
            self._grammar.maximise(found)
        for each in found:
            each.zero_()
