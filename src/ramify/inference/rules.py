"""What a grammar hands over for a batch of sentences."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class LowRankRules:
    """The rules of a PCFG whose rule tensor is in Kruskal form, as log-probabilities (Yang et al. 2021, sec. 4).

    p(A -> B C) = sum_l U[A, l] V[B, l] W[C, l], children counted as the n nonterminals and then the p
    preterminals (m = n + p). The words come as the log-probabilities of the batch's own words under each
    preterminal, so nothing here is as large as the vocabulary. All tensors share dtype and device.
    """

    root: Tensor
    """(n,) log p(S -> A)"""
    head: Tensor
    """(n, d) log U"""
    left: Tensor
    """(m, d) log V"""
    right: Tensor
    """(m, d) log W"""
    words: Tensor
    """(B, N, p) log p(T -> w); what stands behind a sentence's end is ignored"""
    lengths: Tensor
    """(B,) number of words of each sentence"""

    def __post_init__(self) -> None:
        n, d = self.head.shape
        B, N, p = self.words.shape
        expected = {
            "root": (n,),
            "left": (n + p, d),
            "right": (n + p, d),
            "lengths": (B,),
        }
        for name, shape in expected.items():
            found = tuple(getattr(self, name).shape)
            if found != shape:
                raise ValueError(f"{name} has shape {found}, but head {(n, d)} and words {(B, N, p)} ask for {shape}")
        if B and not (int(self.lengths.min()) >= 1 and int(self.lengths.max()) <= N):
            raise ValueError(f"lengths must lie between 1 and {N}, the number of word positions")

    @property
    def nonterminals(self) -> int:
        """n, the number of nonterminals; child symbol n + t is preterminal t."""
        return self.head.shape[0]

    def to(self, *args: torch.dtype | torch.device | str) -> LowRankRules:
        """The same rules in another dtype or on another device (`lengths` keeps its dtype)."""
        moved = {f.name: getattr(self, f.name).to(*args) for f in fields(self)}
        moved["lengths"] = moved["lengths"].to(self.lengths.dtype)
        return replace(self, **moved)

    def masked_words(self) -> Tensor:
        """(B, N, p) the word log-probabilities, minus infinity behind each sentence's end."""
        positions = torch.arange(self.words.shape[1], device=self.words.device)
        beyond = positions >= self.lengths.to(self.words.device)[:, None]
        return self.words.masked_fill(beyond[..., None], -torch.inf)


@dataclass(frozen=True)
class Marginals:
    """What a sentence's words say about its spans and symbols, for a whole batch.

    Fence posts i < j name the span of words i..j-1. Entries that are no span of their sentence are zero.
    """

    log_probability: Tensor
    """(B,) log p(w); minus infinity where the grammar has no derivation"""
    spans: Tensor
    """(B, N+1, N+1) posterior of each span being a constituent"""
    best_label: Tensor
    """(B, N+1, N+1) the most probable nonterminal over each span of two words or more"""
    best_label_posterior: Tensor
    """(B, N+1, N+1) its posterior"""
    best_tag: Tensor
    """(B, N) the most probable preterminal over each word"""
    best_tag_posterior: Tensor
    """(B, N) its posterior"""
