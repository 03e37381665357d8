"""The base class of all distributions over trees, with the same methods for all kinds of grammars.

The methods are named as in SynJax and Torch-Struct. A kind of distribution is a frozen dataclass of tensors for a batch
of sentences. Its engines (engines.py) compute `log_partition`; the methods that follow from it are defined here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ramify.structures.engines import choose_engine, run_each_sentence


@dataclass(frozen=True)
class Tree:
    """One binary tree of a sentence of N words; symbols are numbers."""

    spans: NDArray[np.int32]
    """(N-1, 2) the spans of two words or more, in preorder"""
    labels: NDArray[np.int64] | None = None
    """(N-1,) the symbol over each span; None for a bracketing without labels"""
    tags: NDArray[np.int64] | None = None
    """(N,) the symbol over each word"""
    log_weight: float = 0.0
    """Log-weight of the tree together with the words, including span scores"""
    heads: NDArray[np.int64] | None = None
    """(N,) the head of each word, counted from 1, or 0 for the root; None if trees have no heads"""


@dataclass(frozen=True)
class Marginals:
    """Posteriors of the spans of each sentence, and of its symbols if trees have labels.

    Fence posts i < j name the span of words i..j-1. Entries that are not a span of their sentence are zero.
    """

    log_partition: Tensor
    """(B,); minus infinity for a sentence without a tree"""
    spans: Tensor
    """(B, N+1, N+1) posterior of each span being a constituent"""
    best_label: Tensor | None = None
    """(B, N+1, N+1) the most probable nonterminal over each span of two words or more"""
    best_label_posterior: Tensor | None = None
    """(B, N+1, N+1) its posterior"""
    best_tag: Tensor | None = None
    """(B, N) the most probable preterminal over each word"""
    best_tag_posterior: Tensor | None = None
    """(B, N) its posterior"""
    arcs: Tensor | None = None
    """(B, N+1, N) posterior that word q has the head h, entry [b, h, q]: h = 0 is the root, h > 0 the word h-1; None
    for kinds without heads"""

    def tensors(self) -> dict[str, Tensor]:
        """The tensors that this kind of distribution has, by name."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: tensor for name, tensor in named.items() if tensor is not None}


class TreeDistribution(ABC):
    """A distribution over the binary trees of each sentence of a batch.

    A subclass is a frozen dataclass whose fields are tensors of log-potentials, then `lengths` and `span_scores`.
    """

    lengths: Tensor
    """(B,) number of words of each sentence"""
    span_scores: Tensor | None
    """(B, N+1, N+1) added to the log-weight of every tree that has words i..j-1 as a constituent, so that its gradient
    is the span posterior, and minus infinity forbids a span; None for zeros"""

    @property
    @abstractmethod
    def longest(self) -> int:
        """N, the number of word positions of the batch."""

    @property
    def batched(self) -> frozenset[str]:
        """The fields with a leading batch dimension; the others are shared by all sentences."""
        return frozenset(self.tensors()) | {"lengths"}

    def __len__(self) -> int:
        return len(self.lengths)

    def tensors(self) -> dict[str, Tensor]:
        """The log-potentials by name, including span scores if there are any, without the lengths."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: tensor for name, tensor in named.items() if tensor is not None and name != "lengths"}

    def replace(self, **tensors: Tensor | None) -> Self:
        """The same distribution with some tensors replaced."""
        return replace(self, **tensors)  # type: ignore[type-var]

    def with_span_scores(self, span_scores: Tensor | None) -> Self:
        """The same trees with these scores (B, N+1, N+1) for their spans, replacing existing scores."""
        return self.replace(span_scores=span_scores)

    def forbid(self, spans: Tensor) -> Self:
        """Only the trees without any of these spans, given by a mask (B, N+1, N+1)."""
        scores = self.scores()
        return self.with_span_scores(scores.masked_fill(spans.to(scores.device), -torch.inf))

    def scores(self) -> Tensor:
        """(B, N+1, N+1) the span scores; zeros if there are none."""
        if self.span_scores is not None:
            return self.span_scores
        like = next(iter(self.tensors().values()))
        return like.new_zeros(len(self), self.longest + 1, self.longest + 1)

    def check_shapes(self, B: int, shapes: dict[str, tuple[int, ...]]) -> None:
        """Refuse tensors of other shapes, and lengths that do not fit the word positions of B sentences."""
        N = self.longest
        expected = shapes | {"lengths": (B,)}
        if self.span_scores is not None:
            expected["span_scores"] = (B, N + 1, N + 1)
        for name, shape in expected.items():
            found = tuple(getattr(self, name).shape)
            if found != shape:
                raise ValueError(f"{name} has shape {found}, but the other tensors need {shape}")
        if B and not (int(self.lengths.min()) >= 1 and int(self.lengths.max()) <= N):
            raise ValueError(f"lengths must lie between 1 and {N}, the number of word positions")

    def may_have_trees(self) -> Tensor:
        """(B,) False for sentences that are known to have no tree, which need no computation in log space."""
        return torch.ones(len(self), dtype=torch.bool, device=self.lengths.device)

    def to(self, place: torch.dtype | torch.device | str) -> Self:
        """In another dtype or on another device; `lengths` keeps its dtype."""
        moved = {name: tensor.to(place) for name, tensor in self.tensors().items()}
        return self.replace(**moved, lengths=self.lengths.to(next(iter(moved.values())).device))

    def select(self, chosen: Tensor | slice | Sequence[int]) -> Self:
        """Some of the sentences, given by a mask, a slice or their places."""
        every = {**self.tensors(), "lengths": self.lengths}
        return self.replace(**{name: every[name][chosen] for name in self.batched & every.keys()})

    def sentence(self, b: int) -> Self:
        """Sentence b as a batch of one."""
        return self.select(slice(b, b + 1))

    def log_partition(self, engine: str = "auto") -> Tensor:
        """(B,) the logarithm of the sum of the weights of all trees, differentiable in every tensor.

        `engine` is the name of a registered engine; `auto` takes the fastest that can run here.
        """
        chosen = choose_engine(self, engine)
        if chosen.one_at_a_time(self):
            return torch.cat(run_each_sentence(chosen.log_partition, self))
        return chosen.log_partition(self)

    def marginals(self, engine: str = "auto") -> Marginals:
        """The posteriors of spans and, if trees have labels, the best label of each span and tag of each word."""
        chosen = choose_engine(self, engine)
        compute: Callable[[Any], Marginals] = chosen.marginals or (lambda d: _marginals_by_autograd(d, engine))
        if not chosen.one_at_a_time(self):
            return compute(self)
        parts = [found.tensors() for found in run_each_sentence(compute, self)]
        return Marginals(**{name: torch.cat([part[name] for part in parts]) for name in parts[0]})

    def argmax(self) -> list[Tree | None]:
        """The tree with the largest weight of each sentence; None if it has no tree."""
        return [trees[0] if trees else None for trees in self.top_k(1)]

    def top_k(self, k: int) -> list[list[Tree]]:  # noqa: ARG002
        """The k trees with the largest weights of each sentence, best first, or all if it has fewer."""
        raise ValueError(f"{type(self).__name__} does not offer its k best trees")

    def sample(self, generators: Sequence[np.random.Generator]) -> list[Tree | None]:  # noqa: ARG002
        """A tree of each sentence, drawn from its posterior with a separate generator; None if it has no tree."""
        raise ValueError(f"{type(self).__name__} does not offer samples")

    @torch.enable_grad()
    def entropy(self, engine: str = "auto") -> Tensor:
        """(B,) the entropy of each sentence's posterior over derivations, in nats, without gradients; zero without
        derivations.

        H = log Z - E[log weight]. The expectation is the sum over potentials of their expected counts, which are
        gradients of log Z, times the potentials themselves.
        """
        result = []
        for b in range(len(self)):
            alone = self.sentence(b)
            leaves = {name: tensor.detach().requires_grad_() for name, tensor in alone.tensors().items()}
            log_z = alone.replace(**leaves).log_partition(engine)
            if log_z == -torch.inf:
                result.append(log_z.new_zeros(()))
                continue
            counts = torch.autograd.grad(log_z.sum(), list(leaves.values()), materialize_grads=True)
            expected = sum(
                torch.where(count > 0, count * tensor, 0).sum(dtype=torch.float64)
                for count, tensor in zip(counts, leaves.values(), strict=True)
            )
            result.append((log_z[0] - expected).to(log_z.dtype))
        return torch.stack(result).detach()

    def log_prob(self, trees: Sequence[Tree], engine: str = "auto") -> Tensor:
        """(B,) the log posterior probability of a given tree for each sentence, differentiable.

        For a complete binary bracketing without labels, it is that of all trees with these spans.
        """
        if len(trees) != len(self):
            raise ValueError(f"there are {len(trees)} trees for {len(self)} sentences")
        log_weights = [
            self.sentence(b)._log_weight_of_brackets(tree, engine)
            if tree.labels is None
            else self.sentence(b).log_weight(tree)
            for b, tree in enumerate(trees)
        ]
        return torch.stack(log_weights) - self.log_partition(engine)

    def log_weight(self, tree: Tree) -> Tensor:  # noqa: ARG002
        """() the log-weight of a labelled tree of the only sentence of this batch."""
        raise ValueError(f"trees of {type(self).__name__} have no labels; give brackets alone")

    def _log_weight_of_brackets(self, tree: Tree, engine: str) -> Tensor:
        """() the log-weight of all trees of the only sentence with these spans."""
        return self.forbid(spans_not_in([tree.spans], self.longest)).log_partition(engine)[0]


def spans_not_in(trees: Sequence[NDArray[np.int32]], longest: int) -> Tensor:
    """(B, N+1, N+1) a mask of the spans of two words or more that each tree, given by its spans, does not have."""
    mask = torch.ones(len(trees), longest + 1, longest + 1, dtype=torch.bool).triu(2)
    for table, spans in zip(mask, trees, strict=True):
        i, j = torch.from_numpy(spans.astype(np.int64)).T
        table[i, j] = False
    return mask


@torch.enable_grad()
def _marginals_by_autograd(distribution: Any, engine: str) -> Marginals:
    """Span posteriors as the gradient of log Z by the span scores, which works with every engine."""
    detached = {name: tensor.detach() for name, tensor in distribution.tensors().items()}
    scores = distribution.scores().detach().requires_grad_()
    log_z = distribution.replace(**detached | {"span_scores": scores}).log_partition(engine)
    possible = log_z > -torch.inf
    spans = torch.zeros_like(scores)
    if bool(possible.any()):
        (spans,) = torch.autograd.grad(log_z[possible].sum(), [scores], materialize_grads=True)
    return Marginals(log_z.detach(), spans)
