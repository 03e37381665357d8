"""The inside algorithm for lexicalised rules in log space: the reference that every faster path is tested against.

Notation as in README.md in this folder. Written for clarity: one logarithm per number, posteriors and every gradient
from autograd. Vectorised over the batch and over all spans of one width. Sums over splits are recomputed in the
backward pass (gradient checkpointing), so that no table has an entry for every split of every span and head.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ramify.structures.distribution import Marginals
from ramify.structures.lexicalised.distribution import LEFT, RIGHT, LexicalisedPCFG
from ramify.structures.log_space import SUM, Semiring

ByWidth = dict[int, Tensor]


@dataclass
class Chart:
    """Log-weights by width w of the span; `starts` is N - w + 1, and a head is given by its offset in the span."""

    log_z: Tensor
    """(B,)"""
    symbols: ByWidth = field(default_factory=dict)
    """(B, starts, w, n), of words (B, N, 1, p): s of every symbol and head"""
    heads: ByWidth = field(default_factory=dict)
    """(B, starts, w, x): the same as head children"""
    by_head: ByWidth = field(default_factory=dict)
    """(B, starts, w, 2, y): as other children on either side, for every head"""
    others: ByWidth = field(default_factory=dict)
    """(B, starts, 2, y): the sum over the heads"""


Marks = dict[int, tuple[Tensor, Tensor]]
"""By width zeros (B, starts, N, y) that are added to other children on the left and on the right of a head, for every
distance to it: their gradients are the posteriors of a span depending on a head."""


def chart(pcfg: LexicalisedPCFG, span_scores: Tensor, semiring: Semiring = SUM, marks: Marks | None = None) -> Chart:
    """The weights of all spans, in the semiring."""
    (B, N, _), n, start = pcfg.words.shape, pcfg.nonterminals, pcfg.start()
    prepared = pcfg.prepared() if semiring is SUM else None
    words = pcfg.words.masked_fill(pcfg.beyond()[..., None], -torch.inf)
    found = Chart(words.new_full((B,), -torch.inf))
    leaf = torch.diagonal(span_scores, 1, 1, 2).masked_fill(pcfg.beyond(), -torch.inf)
    found.symbols[1] = leaf[..., None, None].expand(B, N, 1, pcfg.preterminals).clone()
    for width in range(1, N + 1):
        if width > 1:
            below = recompute(lambda *parts: pcfg.joined(*_splits(*parts), semiring, prepared), width, found, marks)
            found.symbols[width] = below + torch.diagonal(span_scores, width, 1, 2)[..., None, None]
        symbols = found.symbols[width]
        numbers = slice(n, None) if width == 1 else slice(n)
        windows = words.unfold(1, width, 1).movedim(-1, 2)
        found.heads[width] = pcfg.as_heads(symbols, numbers, semiring)
        found.by_head[width] = pcfg.as_others(symbols, numbers, windows, semiring)
        found.others[width] = semiring.add(found.by_head[width], 2)
    # A sentence of one word has no derivation: every start rule leads to a binary rule.
    totals = [found.log_z]
    totals += [semiring.add((found.symbols[w][:, 0] + start[:, :w]).flatten(1), 1) for w in range(2, N + 1)]
    found.log_z = torch.stack(totals).gather(0, pcfg.lengths.to(leaf.device)[None] - 1)[0]
    return found


def recompute(function: Callable[..., Tensor], width: int, found: Chart, marks: Marks | None) -> Tensor:
    """Without gradients a plain call; else a call that keeps nothing but its arguments for the backward pass."""
    narrower = range(1, width)
    tensors = [table[v] for table in (found.heads, found.others) for v in narrower]
    tensors += [mark for v in narrower for mark in marks[v]] if marks else []
    if not torch.is_grad_enabled():
        return function(width, *tensors)
    result: Tensor = checkpoint(function, width, *tensors, use_reentrant=False)
    return result


def _splits(width: int, *tensors: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """For each split the head children and the other children of spans of one width, (B, starts, w, x or y)."""
    narrower = width - 1
    heads, others, flat = tensors[:narrower], tensors[narrower : 2 * narrower], tensors[2 * narrower :]
    starts = others[0].shape[1] - width + 1
    kept, beside = [], []
    for v in range(1, width):
        u = width - v
        kept.append(torch.cat([heads[v - 1][:, :starts], heads[u - 1][:, v : v + starts]], 2))
        on_right = others[u - 1][:, v : v + starts, RIGHT].unsqueeze(2).expand(-1, -1, v, -1)
        on_left = others[v - 1][:, :starts, LEFT].unsqueeze(2).expand(-1, -1, u, -1)
        if flat:
            on_right = on_right + flat[2 * (u - 1) + RIGHT][:, v : v + starts, :v].flip(2)
            on_left = on_left + flat[2 * (v - 1) + LEFT][:, :starts, :u]
        beside.append(torch.cat([on_right, on_left], 2))
    return kept, beside


def inside(pcfg: LexicalisedPCFG) -> Tensor:
    """log p(w) of each sentence (B,)."""
    return chart(pcfg, pcfg.scores()).log_z


@torch.enable_grad()
def _posteriors(pcfg: Any, arcs: bool) -> tuple[Chart, Tensor, ByWidth, Marks]:
    """The chart, posteriors of spans (B, N+1, N+1), of symbols and, for `arcs`, of dependents."""
    detached = pcfg.replace(**{name: tensor.detach() for name, tensor in pcfg.tensors().items()})
    scores = pcfg.scores().detach().clone().requires_grad_()
    B, N, _ = pcfg.words.shape
    marks: Marks = {}
    if arcs:
        shape = {w: (B, N - w + 1, N, pcfg.other_size) for w in range(1, N)}
        marks = {
            w: (scores.new_zeros(s).requires_grad_(), scores.new_zeros(s).requires_grad_()) for w, s in shape.items()
        }
    found = chart(detached, scores, marks=marks)
    possible = found.log_z > -torch.inf
    flat = [mark for w in marks for mark in marks[w]]
    inputs = [scores, *found.symbols.values(), *flat]
    gradients = [torch.zeros_like(tensor) for tensor in inputs]
    if bool(possible.any()):
        total = torch.where(possible, found.log_z, 0).sum()
        gradients = list(torch.autograd.grad(total, inputs, materialize_grads=True))
    spans, *rest = gradients
    symbols = dict(zip(found.symbols, rest[:N], strict=True))
    dependents = {w: (rest[N + 2 * (w - 1)], rest[N + 2 * w - 1]) for w in marks}
    return found, spans, symbols, dependents


def symbol_posteriors(pcfg: LexicalisedPCFG) -> tuple[Tensor, Tensor]:
    """The posterior of every nonterminal over every span (B, N+1, N+1, n), and of every tag (B, N, p)."""
    _, spans, symbols, _ = _posteriors(pcfg, arcs=False)
    labels = spans.new_zeros(*spans.shape, pcfg.nonterminals)
    for width in range(2, pcfg.longest + 1):
        labels.diagonal(width, 1, 2).copy_(symbols[width].sum(2).mT)
    return labels, symbols[1][:, :, 0]


def marginals(pcfg: LexicalisedPCFG) -> Marginals:
    """Posteriors of spans, labels, tags and arcs, all of them from gradients of log p(w)."""
    found, spans, symbols, dependents = _posteriors(pcfg, arcs=True)
    best_label = torch.zeros_like(spans, dtype=torch.long)
    best_label_posterior = torch.zeros_like(spans)
    for width in range(2, pcfg.longest + 1):
        top = symbols[width].sum(2).max(-1)
        best_label.diagonal(width, 1, 2).copy_(top.indices)
        best_label_posterior.diagonal(width, 1, 2).copy_(top.values)
    tag = symbols[1][:, :, 0].max(-1)
    arcs = torch.cat([_roots(pcfg, symbols), _arcs(pcfg, found, dependents)], 1)
    return Marginals(found.log_z.detach(), spans, best_label, best_label_posterior, tag.indices, tag.values, arcs=arcs)


def _roots(pcfg: LexicalisedPCFG, symbols: ByWidth) -> Tensor:
    """(B, 1, N) the posterior of each word being the head of its sentence."""
    roots = symbols[1].new_zeros(len(pcfg), 1, pcfg.longest)
    for b, length in enumerate(pcfg.lengths.tolist()):
        if length > 1:
            roots[b, 0, :length] = symbols[length][b, 0].sum(-1)
    return roots


@torch.no_grad()
def _arcs(pcfg: LexicalisedPCFG, found: Chart, dependents: Marks) -> Tensor:
    """(B, N, N) the posterior of the arc from p to q: of a span below p, times the share of q among its heads."""
    B, N, _ = pcfg.words.shape
    arcs = pcfg.words.new_zeros(B, N, N)
    for width, sides in dependents.items():
        total = found.others[width].unsqueeze(2)
        share = torch.where(total > -torch.inf, found.by_head[width] - total, -torch.inf).exp()
        for side in (LEFT, RIGHT):
            below = sides[side] @ share[..., side, :].mT  # (B, starts, distance, q)
            for k in range(N - width + 1):
                heads = torch.arange(k - 1, -1, -1) if side == RIGHT else torch.arange(k + width, N)
                arcs[:, heads, k : k + width] += below[:, k, : len(heads)]
    return arcs
