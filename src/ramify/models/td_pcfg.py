"""TD-PCFG: the tensor-decomposed PCFG with its logits as direct parameters (Yang et al. 2021, sec. 4).

The paper's ablation: the same grammars as TN-PCFG's, without the networks that make them learnable.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ramify.models.grammar import Grammar
from ramify.structures.low_rank import LowRankRules


class TDPCFG(Grammar):
    """Unit-Gaussian logits, normalised as Theorem 1 of the paper asks."""

    def __init__(self, nonterminals: int, preterminals: int, rank: int, words: int) -> None:
        super().__init__(nonterminals, preterminals, rank, words)
        symbols = nonterminals + preterminals
        self.root = nn.Parameter(torch.randn(nonterminals))
        self.head = nn.Parameter(torch.randn(nonterminals, rank))
        self.left = nn.Parameter(torch.randn(symbols, rank))
        self.right = nn.Parameter(torch.randn(symbols, rank))
        self.word_logits = nn.Parameter(torch.randn(words, preterminals))

    def rules(self, z: Tensor | None = None) -> LowRankRules:  # noqa: ARG002
        """Start and binary rules."""
        return normalised(self.root, self.head, self.left, self.right)

    def emission(self, word_ids: Tensor, z: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """log p(T -> w) (..., p) of the words given by their numbers (...)."""
        return nn.functional.embedding(word_ids, self.word_logits) - self.word_logits.logsumexp(0)


def normalised(root: Tensor, head: Tensor, left: Tensor, right: Tensor) -> LowRankRules:
    """Logits to rules: r and the rows of U, the columns of V and W sum to one (Theorem 1)."""
    return LowRankRules(root.log_softmax(-1), head.log_softmax(-1), left.log_softmax(-2), right.log_softmax(-2))
