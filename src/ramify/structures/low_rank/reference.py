"""The inside algorithm for low-rank rules in log space: the reference that every faster path is tested against.

Notation as in README.md in this folder. Written for clarity: one logarithm per number, posteriors and every
gradient from autograd. Vectorised over the batch and over all spans of one width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ramify.structures.autograd_marginals import marginals_by_autograd, symbol_posteriors_by_autograd
from ramify.structures.distribution import Marginals
from ramify.structures.log_space import log_matmul, logsumexp
from ramify.structures.low_rank.distribution import LowRankPCFG


def chart(pcfg: LowRankPCFG, span_scores: Tensor, words: Tensor) -> tuple[Tensor, dict[int, Tensor]]:
    """log p(w) (B,), and for each width > 1 the log inside scores of the nonterminals (B, starts, n)."""
    B, N, _ = words.shape
    n = pcfg.nonterminals
    leaf = words + torch.diagonal(span_scores, 1, 1, 2)[..., None]
    left = {1: log_matmul(leaf, pcfg.left[n:])}  # width -> (B, starts, d)
    right = {1: log_matmul(leaf, pcfg.right[n:])}
    symbols: dict[int, Tensor] = {}
    for width in range(2, N + 1):
        starts = N - width + 1
        splits = [left[s][:, :starts] + right[width - s][:, s : s + starts] for s in range(1, width)]
        x = logsumexp(torch.stack(splits), 0)
        below = x if pcfg.head is None else log_matmul(x, pcfg.head.T)
        symbols[width] = below + torch.diagonal(span_scores, width, 1, 2)[..., None]
        left[width] = log_matmul(symbols[width], pcfg.left[:n])
        right[width] = log_matmul(symbols[width], pcfg.right[:n])
    # A sentence of one word has no derivation: every start rule leads to a binary rule.
    at_width = [leaf.new_full((B,), -torch.inf)]
    at_width += [logsumexp(symbols[w][:, 0] + pcfg.root, -1) for w in range(2, N + 1)]
    log_z = torch.stack(at_width).gather(0, pcfg.lengths.to(words.device)[None] - 1)[0]
    return log_z, symbols


def inside(pcfg: LowRankPCFG) -> Tensor:
    """log p(w) of each sentence (B,)."""
    return chart(pcfg, pcfg.scores(), pcfg.masked_words())[0]


def marginals(pcfg: LowRankPCFG) -> Marginals:
    """Posteriors of spans, labels and tags, all of them as gradients of log p(w)."""
    return marginals_by_autograd(chart, pcfg)


def symbol_posteriors(pcfg: LowRankPCFG) -> tuple[Tensor, Tensor]:
    """The posterior of every nonterminal over every span (B, N+1, N+1, n), and of every tag (B, N, p)."""
    return symbol_posteriors_by_autograd(chart, pcfg)
