"""EM-PCFG: a dense PCFG with its probabilities as parameters, learnt by counting (Baker 1979; Lari and Young 1990).

The baseline that neural grammars are compared with: the E-step is the expected number of uses of every rule, which is
the gradient of log p(w) by the rule's log-probability; the M-step makes the counts probabilities again.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ramify.grammars.base import Grammar, SharedDenseRules

FLOOR = -100.0
"""The least log-probability kept: what EM has given up is zero to a float32 and yet a finite number on disk."""
WORD_COUNT = 0.01
"""Added to the count of every word under every preterminal, so that a word never seen is not impossible."""


class EMPCFG(Grammar):
    """Begins with the softmax of Gaussian logits of standard deviation `gain`."""

    def __init__(self, nonterminals: int, preterminals: int, words: int, gain: float = 1.0) -> None:
        super().__init__(nonterminals, preterminals, None, words)
        m = nonterminals + preterminals
        self.root = nn.Parameter((gain * torch.randn(nonterminals)).log_softmax(0))
        self.binary = nn.Parameter((gain * torch.randn(nonterminals, m * m)).log_softmax(1).view(nonterminals, m, m))
        self.word_table = nn.Parameter((gain * torch.randn(words, preterminals)).log_softmax(0))

    def shared_rules(self, z: Tensor | None = None) -> SharedDenseRules:  # noqa: ARG002
        """Start and binary rules."""
        return SharedDenseRules(self.root, self.binary)

    def emission(self, word_ids: Tensor, z: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """log p(T -> w) (..., p) of the words given by their numbers (...)."""
        return nn.functional.embedding(word_ids, self.word_table)

    @torch.no_grad()
    def maximise(self, counts: Sequence[Tensor]) -> None:
        """The M-step: probabilities from expected counts, one tensor for each parameter, in their order.

        A symbol that was never used keeps its rules.
        """
        root, binary, words = counts
        for parameter, found, dims in (
            (self.root, root, (0,)),
            (self.binary, binary, (1, 2)),
            (self.word_table, words + WORD_COUNT, (0,)),
        ):
            total = found.sum(dims, keepdim=True, dtype=torch.float64)
            renewed = (found.double() / total).log().clamp(min=FLOOR).to(parameter.dtype)
            parameter.copy_(torch.where(total > 0, renewed, parameter))
