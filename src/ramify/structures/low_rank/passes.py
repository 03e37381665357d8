"""log p(w) as a differentiable function, with any engine for the two passes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ramify.runtime.fast_exp import exp
from ramify.runtime.threads import torch_on_one_core
from ramify.structures.low_rank.distribution import LowRankPCFG


@dataclass(frozen=True)
class Tables:
    """The rules without the words, as probabilities. Shapes are those of shared rules.

    Rules per sentence have a leading dimension B. Columns beyond the rank are zero, where an engine needs some.
    """

    rank: int
    """d, the number of components"""
    start: Tensor
    """(n,) r"""
    head: Tensor | None
    """(n, d) U, or None for the identity"""
    both: Tensor
    """(m, 2 columns) [V | W]"""
    skipped: tuple[Tensor, Tensor] | None
    """(d, 2 columns) U^T [V_n | W_n] and (d,) U^T r, where the symbols are skipped"""

    @classmethod
    def of(cls, pcfg: LowRankPCFG, skip_symbols: bool, columns: int | None = None) -> Tables:
        """`skip_symbols`: spans go from rank to rank, without their nonterminals."""
        n, d = pcfg.nonterminals, pcfg.rank
        start, head = exp(pcfg.root), None if pcfg.head is None else exp(pcfg.head)
        *leading, m, _ = pcfg.left.shape
        columns = columns or d
        both = (pcfg.left.new_empty if columns == d else pcfg.left.new_zeros)(*leading, m, 2 * columns)
        exp(pcfg.left, out=both[..., :d])
        exp(pcfg.right, out=both[..., columns : columns + d])
        skipped = None
        if head is not None and skip_symbols:
            skipped = head.mT @ both[..., :n, :], (head.mT @ start[..., None]).squeeze(-1)
        return cls(d, start, head, both, skipped)

    @property
    def sides(self) -> tuple[Tensor, Tensor]:
        """(m, d) V and W"""
        left, right = self.both.chunk(2, -1)
        return left[..., : self.rank], right[..., : self.rank]

    @property
    def through(self) -> Tensor | None:
        """(n, d) U on the way from rank to children; None where the symbols are skipped or are the components."""
        return None if self.skipped else self.head

    @property
    def children(self) -> Tensor:
        """(n or d, 2 columns) the matrix that leads to the children of a span of two words or more."""
        return self.skipped[0] if self.skipped else self.both[..., : self.start.shape[-1], :]

    @property
    def leaf_children(self) -> Tensor:
        """(p, 2 columns) the matrix that leads to the children of a word."""
        return self.both[..., self.start.shape[-1] :, :]

    @property
    def root(self) -> Tensor:
        """(n or d,) the vector that leads from a whole sentence to its probability."""
        return self.skipped[1] if self.skipped else self.start


@dataclass(frozen=True)
class Sums:
    """Gradients of the upstream-weighted sum of log p(w), summed over the spans of the batch, or of each sentence.

    With respect to probabilities (`left`, `right`, `head`), which the engine keeps finite, or to their logarithms
    (`root`, `words`) and span scores, where they are expected counts. The tables are the receiver's to change.
    """

    left: Tensor
    """(n or d, then p, d) of V, or of U^T V_n and V_p where the symbols were skipped"""
    right: Tensor
    """The same of W"""
    head: Tensor | None
    """(n, d) of U; None where the symbols were skipped or are the components"""
    root: Tensor
    """(n or d,) of log r, or of log U^T r where the symbols were skipped"""
    words: Tensor
    """(B, N, p)"""
    span_scores: Tensor
    """(B, N+1, N+1)"""


class Engine(Protocol):
    """A module with the two passes of an algorithm; what `inside_pass` returns has `log_z` (B,)."""

    def tables(self, pcfg: LowRankPCFG, skip_symbols: bool) -> Tables:  # noqa: D102
        ...

    def inside_pass(self, tables: Tables, pcfg: LowRankPCFG) -> Any:  # noqa: D102
        ...

    def gradient_sums(self, chart: Any, upstream: Tensor) -> Sums:  # noqa: D102
        ...


def skip_symbols(pcfg: LowRankPCFG) -> bool:
    """Whether d x 2d products per span, and U^T [V | W] once, cost less than the way through the n symbols."""
    n, d, (B, N, _) = pcfg.nonterminals, pcfg.rank, pcfg.words.shape
    spans = (1 if pcfg.per_sentence else B) * N * (N - 1) // 2
    return spans * 4 * d * d + 4 * n * d * d < spans * 6 * n * d


class _Inside(torch.autograd.Function):
    """log p(w) with the outside pass as its backward pass; gradients of log-probabilities are expected counts."""

    @staticmethod
    def forward(
        ctx: Any,
        engine: Engine,
        root: Tensor,
        head: Tensor | None,
        left: Tensor,
        right: Tensor,
        words: Tensor,
        lengths: Tensor,
        span_scores: Tensor,
    ) -> Tensor:
        pcfg = LowRankPCFG(root, head, left, right, words, lengths, span_scores)
        ctx.on_one_core = torch.get_num_threads() == 1  # the backward pass runs like the forward pass
        ctx.engine, ctx.tables = engine, engine.tables(pcfg, skip_symbols(pcfg))
        ctx.chart = engine.inside_pass(ctx.tables, pcfg)
        return torch.as_tensor(ctx.chart.log_z, device=words.device).to(words.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        with torch_on_one_core() if ctx.on_one_core else nullcontext():
            return _counts(ctx.tables, ctx.engine.gradient_sums(ctx.chart, upstream))


def _counts(tables: Tables, sums: Sums) -> tuple[Tensor | None, ...]:
    """Gradients by the inputs of `_Inside`: of log-probabilities, their expected counts."""
    d, sides = tables.rank, tables.sides
    g_left, g_right, g_head, g_root = sums.left, sums.right, sums.head, sums.root
    if tables.skipped and tables.head is not None:
        # Through the products U^T [V | W] and U^T r, to U, V, W and r themselves.
        head = tables.head
        n = head.shape[-2]
        share = torch.where(tables.root > 0, g_root / tables.root, 0)
        g_head = tables.start[..., None] * share[..., None, :]
        for probabilities, gradient in zip(sides, (g_left, g_right), strict=True):
            g_head += probabilities[..., :n, :] @ gradient[..., :d, :].mT
        g_left, g_right = (
            torch.cat([head @ gradient[..., :d, :], gradient[..., d:, :]], -2) for gradient in (g_left, g_right)
        )
        g_root = tables.start * (head @ share[..., None]).squeeze(-1)
    for probabilities, gradient in zip(sides, (g_left, g_right), strict=True):
        gradient.mul_(probabilities)
    if g_head is not None and tables.head is not None:
        g_head.mul_(tables.head)
    return None, g_root, g_head, g_left, g_right, sums.words, None, sums.span_scores


def inside(engine: Engine, pcfg: LowRankPCFG) -> Tensor:
    """log p(w) of each sentence (B,)."""
    result: Tensor = _Inside.apply(  # type: ignore[no-untyped-call]
        engine, pcfg.root, pcfg.head, pcfg.left, pcfg.right, pcfg.words, pcfg.lengths, pcfg.scores()
    )
    return result
