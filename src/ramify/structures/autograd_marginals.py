"""Posteriors as gradients of log p(w), for the log-space references of all PCFGs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from ramify.structures.distribution import Marginals
from ramify.structures.pcfg import PCFG

Kind = TypeVar("Kind", bound=PCFG)
Inside = Callable[[Kind, Tensor, Tensor], tuple[Tensor, dict[int, Tensor]]]
"""From a distribution, span scores and words: log p(w), and the log inside scores of the nonterminals by width."""


def marginals_by_autograd(chart: Inside[Kind], pcfg: Kind) -> Marginals:
    """Posteriors of spans, labels and tags, all of them as gradients of log p(w)."""
    log_z, tags, spans, labels = posteriors_by_autograd(chart, pcfg)
    best_label = torch.zeros_like(spans, dtype=torch.long)
    best_label_posterior = torch.zeros_like(spans)
    for width, posterior in labels.items():
        top = posterior.max(-1)
        best_label.diagonal(width, 1, 2).copy_(top.indices)
        best_label_posterior.diagonal(width, 1, 2).copy_(top.values)
    tag = tags.max(-1)
    return Marginals(log_z, spans, best_label, best_label_posterior, tag.indices, tag.values)


@torch.enable_grad()
def posteriors_by_autograd(chart: Inside[Kind], pcfg: Kind) -> tuple[Tensor, Tensor, Tensor, dict[int, Tensor]]:
    """log p(w) (B,); posteriors of tags (B, N, p), of spans (B, N+1, N+1), by width of labels (B, starts, n)."""
    words = pcfg.masked_words().detach().requires_grad_()
    scores = pcfg.scores().detach().requires_grad_()
    log_z, symbols = chart(pcfg, scores, words)
    possible = log_z > -torch.inf
    total = torch.where(possible, log_z, 0).sum()
    inputs = [words, scores, *symbols.values()]
    if total.requires_grad and bool(possible.any()):
        gradients = torch.autograd.grad(total, inputs, materialize_grads=True)
    else:
        gradients = tuple(torch.zeros_like(t) for t in inputs)
    tags, spans, *labels = gradients
    return log_z.detach(), tags, spans, dict(zip(symbols, labels, strict=True))


def symbol_posteriors_by_autograd(chart: Inside[Kind], pcfg: Kind) -> tuple[Tensor, Tensor]:
    """The posterior of every nonterminal over every span (B, N+1, N+1, n), and of every tag (B, N, p)."""
    _, tags, spans, by_width = posteriors_by_autograd(chart, pcfg)
    labels = spans.new_zeros(*spans.shape, pcfg.nonterminals)
    for width, found in by_width.items():
        labels.diagonal(width, 1, 2).copy_(found.mT)
    return labels, tags
