"""What a grammar hands over for a batch of sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import torch
from torch import Tensor


class _OfABatch:
    """What rules of every shape can do. All tensors share dtype and device.

    The words come as the log-probabilities of the batch's own words under each preterminal, so nothing here is as
    large as the vocabulary. The other tensors are shared by the batch or, each with a leading dimension B, one set
    per sentence, as a compound grammar makes them.
    """

    root: Tensor
    words: Tensor
    lengths: Tensor

    def _check(self, shapes: dict[str, tuple[int, ...]]) -> None:
        """Refuse tensors of other shapes than these, given for shared rules."""
        B, N, p = self.words.shape
        leading = (B,) if self.per_sentence else ()
        expected = {name: (*leading, *shape) for name, shape in shapes.items()} | {"lengths": (B,)}
        for name, shape in expected.items():
            found = tuple(getattr(self, name).shape)
            if found != shape:
                raise ValueError(
                    f"{name} has shape {found}, but root {tuple(self.root.shape)} and words {(B, N, p)} ask for {shape}"
                )
        if B and not (int(self.lengths.min()) >= 1 and int(self.lengths.max()) <= N):
            raise ValueError(f"lengths must lie between 1 and {N}, the number of word positions")

    @property
    def nonterminals(self) -> int:
        """n, the number of nonterminals; child symbol n + t is preterminal t."""
        return self.root.shape[-1]

    @property
    def per_sentence(self) -> bool:
        """Whether every sentence has rules of its own."""
        return self.root.dim() == 2

    def to(self, *args: torch.dtype | torch.device | str) -> Self:
        """The same rules in another dtype or on another device (`lengths` keeps its dtype)."""
        moved = self._each(lambda tensor: tensor.to(*args))
        return replace(moved, lengths=moved.lengths.to(self.lengths.dtype))  # type: ignore[type-var]

    def rows(self, chosen: Tensor | slice) -> Self:
        """The rules for some of the sentences, by a mask, a slice or their places."""
        if self.per_sentence:
            return self._each(lambda tensor: tensor[chosen])
        return replace(self, words=self.words[chosen], lengths=self.lengths[chosen])  # type: ignore[type-var]

    def sentence(self, b: int) -> Self:
        """The rules for sentence b alone, without a batch dimension where that is possible."""
        alone = {"words": self.words[b : b + 1], "lengths": self.lengths[b : b + 1]}
        if self.per_sentence:
            alone |= {name: tensor[b] for name, tensor in self.tensors().items() if name not in alone}
        return replace(self, **alone)  # type: ignore[type-var]

    def tensors(self) -> dict[str, Tensor]:
        """All that there are, by name."""
        named = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    def _each(self, change: Callable[[Any], Tensor]) -> Self:
        changed = {name: change(tensor) for name, tensor in self.tensors().items()}
        return replace(self, **changed)  # type: ignore[type-var]

    def masked_words(self) -> Tensor:
        """(B, N, p) the word log-probabilities, minus infinity behind each sentence's end."""
        positions = torch.arange(self.words.shape[1], device=self.words.device)
        beyond = positions >= self.lengths.to(self.words.device)[:, None]
        return self.words.masked_fill(beyond[..., None], -torch.inf)


@dataclass(frozen=True)
class LowRankRules(_OfABatch):
    """The rules of a PCFG whose rule tensor is in Kruskal form, as log-probabilities (Yang et al. 2021, sec. 4).

    p(A -> B C) = sum_l U[A, l] V[B, l] W[C, l], children counted as the n nonterminals and then the p
    preterminals (m = n + p). Shapes are those of shared rules. Without a head U is the identity and d = n, which is a
    Simple PCFG, p(A -> B C) = V[B, A] W[C, A] (Liu et al. 2023).
    """

    root: Tensor
    """(n,) log p(S -> A)"""
    head: Tensor | None
    """(n, d) log U, or None for the identity"""
    left: Tensor
    """(m, d) log V"""
    right: Tensor
    """(m, d) log W"""
    words: Tensor
    """(B, N, p) log p(T -> w); what stands behind a sentence's end is ignored"""
    lengths: Tensor
    """(B,) number of words of each sentence"""

    def __post_init__(self) -> None:
        n, d, p = self.nonterminals, self.rank, self.words.shape[-1]
        shapes = {"root": (n,), "left": (n + p, d), "right": (n + p, d)}
        self._check(shapes if self.head is None else shapes | {"head": (n, d)})

    @property
    def rank(self) -> int:
        """d, the number of components."""
        return self.nonterminals if self.head is None else self.head.shape[-1]


@dataclass(frozen=True)
class DenseRules(_OfABatch):
    """The rules of a PCFG with its rule tensor written out, as log-probabilities.

    Children are counted as the n nonterminals and then the p preterminals (m = n + p). Shapes are those of shared
    rules.
    """

    root: Tensor
    """(n,) log p(S -> A)"""
    binary: Tensor
    """(n, m, m) log p(A -> B C)"""
    words: Tensor
    """(B, N, p) log p(T -> w); what stands behind a sentence's end is ignored"""
    lengths: Tensor
    """(B,) number of words of each sentence"""

    def __post_init__(self) -> None:
        n, m = self.nonterminals, self.nonterminals + self.words.shape[-1]
        self._check({"root": (n,), "binary": (n, m, m)})


Rules = LowRankRules | DenseRules


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
