"""TD-PCFG: the tensor-decomposed PCFG with its logits as direct parameters (Yang et al. 2021, sec. 4).

It is the ablation of the paper: the grammars of TN-PCFG without the networks, which make learning easier. Compressed
low-rank grammars of other families are stored in this form.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ramify.models.grammar import Grammar
from ramify.structures.low_rank import LowRankRules


class TDPCFG(Grammar):
    """Unit-Gaussian logits, normalised as in Theorem 1 of the paper; without a rank, those of a Simple PCFG."""

    def __init__(self, nonterminals: int, preterminals: int, rank: int | None = None, words: int = 0) -> None:
        symbols, components = nonterminals + preterminals, nonterminals if rank is None else rank
        super().__init__(nonterminals, preterminals, components, words)
        self.is_simple = rank is None
        self.root = nn.Parameter(torch.randn(nonterminals))
        self.head = None if rank is None else nn.Parameter(torch.randn(nonterminals, rank))
        self.left = nn.Parameter(torch.randn(symbols, components))
        self.right = nn.Parameter(torch.randn(symbols, components))
        self.word_logits = nn.Parameter(torch.randn(words, preterminals))

    def rules(self, z: Tensor | None = None) -> LowRankRules:  # noqa: ARG002
        """Start and binary rules."""
        return normalise_logits(self.root, self.head, self.left, self.right)

    def emission(self, word_ids: Tensor, z: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """log p(T -> w) (..., p) of the words given by their numbers (...)."""
        return nn.functional.embedding(word_ids, self.word_logits) - self.word_logits.logsumexp(0)


def normalise_logits(root: Tensor, head: Tensor | None, left: Tensor, right: Tensor) -> LowRankRules:
    """Logits to rules: r and the rows of U, the columns of V and W sum to one (Theorem 1)."""
    of_parents = None if head is None else head.log_softmax(-1)
    return LowRankRules(root.log_softmax(-1), of_parents, left.log_softmax(-2), right.log_softmax(-2))
