"""The charts of DIORA: vectors of all spans of a batch of sentences of one length, and the best tree by split scores.

A row of a chart is a cell: the vectors of one span in all sentences. A pass fills its chart in stages. All cells of a
stage have the same number of options (splits of an inside cell, parents of an outside cell), and an option combines
two rows of earlier stages. A stage is therefore a few tensor operations, and one function computes both passes from
their plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

MIN_NORM = 1e-8
"""Minimum length by which a vector is divided"""


@dataclass(frozen=True)
class Stage:
    """Cells that are computed together."""

    rows: slice
    """Places of its n cells"""
    first: Tensor
    """(n, K) the row of the first part of each option"""
    second: Tensor
    """(n, K) the row of the second part"""


Plan = tuple[Stage, ...]
Cells = tuple[Tensor, Tensor]
"""Vectors (R, B, D) and energies (R, B) of R cells"""


def inside_row(length: int, i: Tensor, j: Tensor) -> Tensor:
    """Rows of spans (i, j): words first, then spans by width, those of one width from left to right."""
    width = j - i
    return (width - 1) * length - (width - 1) * (width - 2) // 2 + i


def outside_row(length: int, i: Tensor, j: Tensor) -> Tensor:
    """Rows of spans (i, j) in the chart of the outside pass: after all inside cells, the widest first."""
    fewer_words = length - (j - i)
    return length * (length + 1) // 2 + fewer_words * (fewer_words + 1) // 2 + i


def inside_plan(length: int, device: torch.device) -> Plan:
    """The parts of an option are the two spans that a split makes, left and right."""
    stages = []
    for width in range(2, length + 1):
        i = torch.arange(length - width + 1, device=device)[:, None]
        j, k = i + width, i + torch.arange(1, width, device=device)
        stages.append(_stage(inside_row(length, i, j), inside_row(length, i, k), inside_row(length, k, j)))
    return tuple(stages)


def outside_plan(length: int, device: torch.device) -> Plan:
    """The parts of an option are the inside of the sibling and the outside of the parent.

    The sibling is the first part if it is on the left, the second if it is on the right. The chart begins with the
    inside cells and the outside of the whole sentence. A span has a parent for every word around it, so the number of
    options depends only on its width.
    """
    stages = []
    for width in range(length - 1, 0, -1):
        i = torch.arange(length - width + 1, device=device)[:, None]
        j, word = i + width, torch.arange(length - width, device=device)
        before = word < i
        outer = torch.where(before, word, word + width + 1)
        siblings = inside_row(length, torch.where(before, outer, j), torch.where(before, i, outer))
        parents = outside_row(length, torch.where(before, outer, i), torch.where(before, j, outer))
        first, second = torch.where(before, siblings, parents), torch.where(before, parents, siblings)
        stages.append(_stage(outside_row(length, i, j), first, second))
    return tuple(stages)


def _stage(rows: Tensor, first: Tensor, second: Tensor) -> Stage:
    begin = int(rows[0])
    return Stage(slice(begin, begin + len(rows)), first, second)


class Weights(NamedTuple):
    """Weights of one pass: parts x and y have the vector relu(W1 relu(W0 [x; y] + b0) + b1) and the score x' S y."""

    first: Tensor
    """(D, D) the half of W0 for x, transposed"""
    first_bias: Tensor
    """(D,) b0"""
    second: Tensor
    """(D, D) the half of W0 for y, transposed"""
    layer: Tensor
    """(D, D) W1, transposed"""
    layer_bias: Tensor
    """(D,) b1"""
    score: Tensor
    """(D, D) S"""


class Options(NamedTuple):
    """The K options of each of the n cells of a stage."""

    x: Tensor
    """(n, K, B, D) S' x of the first part"""
    y: Tensor
    """(n, K, B, D) the second part"""
    hidden: Tensor
    """(n, K, B, D) relu(W0 [x; y] + b0)"""
    composed: Tensor
    """(n, K, B, D) relu(W1 hidden + b1)"""
    score: Tensor
    """(n, K, B) x' S y"""
    energy: Tensor
    """(n, K, B) the score and the energies of both parts"""
    share: Tensor
    """(n, K, B) the softmax of the energies over the options"""


class Chart:
    """One cell per row, with its terms in the options that contain it, so that each is computed once."""

    def __init__(self, plan: Plan, known: Tensor, energy: Tensor, weights: Weights) -> None:
        """The chart whose first rows have the vectors (G, B, D) and the energies (G, B); the plan fills the others."""
        G, B, D = known.shape
        rows = plan[-1].rows.stop if plan else G
        self.weights = weights
        self.vectors, self.scoring, self.first, self.second = (known.new_empty(rows, B, D) for _ in range(4))
        """(R, B, D) each: v, S' v, and W0's term of v as the first part, with b0, and as the second part"""
        self.energy, self.norms = known.new_empty(rows, B), known.new_empty(rows, B)
        """(R, B) each; norms are those before scaling to unit length"""
        self.scores: list[Tensor] = []
        """(n, K, B) x' S y of the options of each stage"""
        self._put(slice(0, G), known, energy)
        for stage in plan:
            found = self.options(stage)
            mean = (found.share[..., None] * found.composed).sum(1)
            norms = self.norms[stage.rows] = mean.norm(dim=-1).clamp(min=MIN_NORM)
            self._put(stage.rows, mean / norms[..., None], (found.share * found.energy).sum(1))
            self.scores.append(found.score)

    def _put(self, rows: slice, vectors: Tensor, energy: Tensor) -> None:
        self.vectors[rows], self.energy[rows] = vectors, energy
        self.scoring[rows] = vectors @ self.weights.score
        self.first[rows] = vectors @ self.weights.first + self.weights.first_bias
        self.second[rows] = vectors @ self.weights.second

    def options(self, stage: Stage) -> Options:
        """The options of a stage, whose parts are all computed."""
        i, j = stage.first.flatten(), stage.second.flatten()
        x, y = self.scoring.index_select(0, i), self.vectors.index_select(0, j)
        hidden = self.first.index_select(0, i).add_(self.second.index_select(0, j)).relu_()
        composed = torch.addmm(self.weights.layer_bias, hidden.flatten(0, 1), self.weights.layer).relu_()
        score = torch.linalg.vecdot(x, y)
        energy = score + self.energy.index_select(0, i) + self.energy.index_select(0, j)
        n, K = stage.first.shape
        x, y, hidden, composed, score, energy = (
            each.view(n, K, *score.shape[1:], *each.shape[2:])
            for each in (x, y, hidden, composed.view_as(x), score, energy)
        )
        return Options(x, y, hidden, composed, score, energy, energy.softmax(1))


def fill_chart(plan: Plan, known: Tensor, energy: Tensor, weights: Weights) -> Cells:
    """All cells of a chart, differentiable in the given ones and in the weights."""
    cells: Cells = _FilledChart.apply(plan, known, energy, *weights)  # type: ignore[no-untyped-call]
    return cells


class _FilledChart(torch.autograd.Function):
    """`fill_chart`, with its gradients.

    The backward pass recomputes the options of every stage, so that memory grows with the square of the length and not
    with its cube. It adds to the gradients of all rows in place; autograd would create a chart for every stage.
    """

    @staticmethod
    def forward(ctx: Any, plan: Plan, known: Tensor, energy: Tensor, *weights: Tensor) -> Cells:
        """As `Chart` is made."""
        ctx.plan, ctx.given = plan, len(known)
        ctx.chart = Chart(plan, known, energy, Weights(*weights))
        return ctx.chart.vectors.clone(), ctx.chart.energy.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_vectors: Tensor, d_energy: Tensor) -> tuple[Tensor | None, ...]:
        """From the last stage to the first: all options of a row come after it, so its gradient is then complete."""
        chart, relu_backward = ctx.chart, torch.ops.aten.threshold_backward
        weights = chart.weights
        d_vectors, d_energy = d_vectors.clone(), d_energy.clone()
        d_scoring, d_first, d_second = (torch.zeros_like(chart.vectors) for _ in range(3))
        d_layer, d_layer_bias = torch.zeros_like(weights.layer), torch.zeros_like(weights.layer_bias)

        def through_terms(rows: slice) -> Tensor:
            d_vectors[rows] += d_scoring[rows] @ weights.score.T
            d_vectors[rows] += d_first[rows] @ weights.first.T
            d_vectors[rows] += d_second[rows] @ weights.second.T
            return d_vectors[rows]

        for stage in reversed(ctx.plan):
            rows, i, j = stage.rows, stage.first.flatten(), stage.second.flatten()
            x, y, hidden, composed, _, energy, share = chart.options(stage)
            unit, d_unit, d_cell = chart.vectors[rows], through_terms(rows), d_energy[rows, None]
            d_mean = d_unit - unit * torch.linalg.vecdot(unit, d_unit)[..., None]
            d_mean = (d_mean / chart.norms[rows, ..., None])[:, None]
            d_share = torch.linalg.vecdot(composed, d_mean) + d_cell * energy
            d_option = share * (d_share - (share * d_share).sum(1, keepdim=True) + d_cell)
            d_composed = relu_backward(share[..., None] * d_mean, composed, 0).flatten(0, 2)
            d_layer.addmm_(hidden.flatten(0, 2).T, d_composed)
            d_layer_bias += d_composed.sum(0)
            d_hidden = relu_backward((d_composed @ weights.layer.T).view_as(hidden), hidden, 0).flatten(0, 1)
            d_first.index_add_(0, i, d_hidden)
            d_second.index_add_(0, j, d_hidden)
            d_scoring.index_add_(0, i, y.mul_(d_option[..., None]).flatten(0, 1))
            d_vectors.index_add_(0, j, x.mul_(d_option[..., None]).flatten(0, 1))
            for part in (i, j):
                d_energy.index_add_(0, part, d_option.flatten(0, 1))
        known = slice(0, ctx.given)
        through_terms(known)
        flat = chart.vectors.flatten(0, 1).T
        return (
            None, d_vectors[known], d_energy[known],
            flat @ d_first.flatten(0, 1), d_first.sum((0, 1)), flat @ d_second.flatten(0, 1),
            d_layer, d_layer_bias, flat @ d_scoring.flatten(0, 1),
        )  # fmt: skip


def unit_length(vectors: Tensor) -> Tensor:
    """(..., D) scaled to unit length."""
    scaled: Tensor = vectors / vectors.norm(dim=-1, keepdim=True).clamp(min=MIN_NORM)
    return scaled


def best_spans(plan: Plan, scores: list[Tensor], lengths: Tensor) -> Tensor:
    """(B, N+1, N+1) ones for the spans of two words or more of each sentence's best tree, zeros for all others.

    The best tree has the largest sum of the scores (n, K, B) of its splits, those of the inside plan, each counted
    once. Among equal splits, the one nearest to the middle of its span wins.
    """
    B, N = len(lengths), len(plan) + 1
    best = lengths.new_zeros(N * (N + 1) // 2, B, dtype=torch.float64)
    choices = []
    for stage, scores_of_stage in zip(plan, scores, strict=True):
        total = scores_of_stage.double() + best[stage.first] + best[stage.second]
        K = total.shape[1]
        from_middle = torch.tensor(sorted(range(K), key=lambda k: abs(2 * k - K + 1)), device=total.device)
        best[stage.rows], choice = total[:, from_middle].max(1)
        choices.append(from_middle[choice])
    whole = inside_row(N, torch.zeros_like(lengths), lengths)
    chosen = torch.zeros_like(best, dtype=torch.bool)
    chosen[whole, torch.arange(B, device=lengths.device)] = True
    spans = torch.zeros(B, N + 1, N + 1, device=lengths.device)
    for stage, choice in zip(reversed(plan), reversed(choices), strict=True):
        cell, sentence = chosen[stage.rows].nonzero(as_tuple=True)
        split = choice[cell, sentence]
        chosen[stage.first[cell, split], sentence] = True
        chosen[stage.second[cell, split], sentence] = True
        spans[sentence, cell, cell + stage.first.shape[1] + 1] = 1
    return spans
