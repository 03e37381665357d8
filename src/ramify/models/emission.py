"""The softmax over the vocabulary, in blocks of words.

Of the p x q log-probabilities a batch wants only those of its words, logit_Tw - log sum_v exp(logit_Tv), and only the
sums run over the vocabulary. They are made from blocks of it, each forgotten once it was added; the backward pass makes
the blocks again. Exact, and never more in memory than one block a core.

Powers are powers of two (runtime/fast_exp.py says why): states and bias are multiplied by log2(e) before the products.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ramify.runtime import threads
from ramify.runtime.fast_exp import LOG2_E

BLOCK_NUMBERS, BLOCK_WORDS, BLOCK_STATES = 2**18, (256, 2048), 1024
"""A block holds about so many numbers (1 MB), which a core's cache has room for: words between these bounds for at most
so many preterminals."""


def word_log_probabilities(
    states: Tensor, weight: Tensor, bias: Tensor | None, word_ids: Tensor, block: int | None = None
) -> Tensor:
    """log p(T -> w) (..., p) of the words given by their numbers (...).

    p(T -> w) is the softmax over all q words of states (p, e) times weight (q, e), plus bias (q,) if there is one.
    States (B, p, e) are each sentence's own, for words (B, N). Differentiable in states, weight and bias. A block holds
    `block` words.
    """
    if block is None:
        least, most = BLOCK_WORDS
        block = min(most, max(least, BLOCK_NUMBERS // min(BLOCK_STATES, states[..., 0].numel())))
    if bias is None:
        bias = weight.new_zeros(len(weight))
    if block < 1:
        raise ValueError(f"a block must hold at least one word, not {block}")
    grouped, ids = (states, word_ids) if states.dim() == 3 else (states[None], word_ids.reshape(1, -1))
    result: Tensor = _WordLogProbabilities.apply(grouped, weight, bias, ids, block)  # type: ignore[no-untyped-call]
    return result.view(*word_ids.shape, states.shape[-2])


Blocks = list[slice]


def _shares(states: Tensor, weight: Tensor, block: int) -> list[Blocks]:
    """The vocabulary in one share a core, each in blocks. Sums are taken in order: the same cores, the same bits."""
    words = len(weight)
    cores = threads.worth(2 * len(states) * weight.numel()) if weight.device.type == "cpu" else 1
    count = min(cores, -(-words // block))
    bounds = [words * i // count for i in range(count + 1)]
    return [
        [slice(begin, min(begin + block, end)) for begin in range(start, end, block)] for start, end in pairwise(bounds)
    ]


class _WordLogProbabilities(torch.autograd.Function):
    """For groups G of words (G, N) with states (G, p, e) of their own."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, word_ids: Tensor, block: int) -> Tensor:
        normaliser = _log_normaliser(states.flatten(0, 1), weight, bias, block)
        ctx.save_for_backward(states, weight, bias, word_ids, normaliser)
        ctx.block = block
        shift = bias[word_ids][..., None] - normaliser.view(len(states), 1, -1)
        return shift.baddbmm_(weight[word_ids], states.mT)  # in place: for all words it is the largest table there is

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        grouped, weight, bias, word_ids, normaliser = ctx.saved_tensors
        states = grouped.flatten(0, 1)
        # The normaliser's gradient is the expected word: minus counts times probabilities.
        counts = -upstream.sum(1).view(-1, 1)
        counted = states * counts
        states2, bias2, normaliser2 = states * LOG2_E, bias * LOG2_E, (normaliser * LOG2_E)[:, None]
        g_weight, g_bias = torch.empty_like(weight), torch.empty_like(bias)

        def run(share: Blocks) -> Tensor:
            expected = torch.zeros_like(states)
            space = _space(states, share)
            for words in share:
                for first, rows in enumerate(_rows(states)):
                    probabilities = _logits(states2[rows], weight, bias2, words, space).sub_(normaliser2[rows]).exp2_()
                    beta = 0 if first == 0 else 1
                    g_weight[words].addmm_(probabilities.T, counted[rows], beta=beta)
                    g_bias[words].addmv_(probabilities.T, counts[rows, 0], beta=beta)
                    expected[rows].addmm_(probabilities, weight[words])
            return expected

        first, *others = threads.in_pieces(run, _shares(states, weight, ctx.block))
        for other in others:
            first += other
        g_states = torch.baddbmm(first.mul_(counts).view_as(grouped), upstream.mT, weight[word_ids])
        words = word_ids.flatten()
        g_weight.index_add_(0, words, (upstream @ grouped).flatten(0, 1))
        g_bias.index_add_(0, words, upstream.sum(-1).flatten())
        return g_states, g_weight, g_bias, None, None


def _rows(states: Tensor) -> list[slice]:
    """The preterminals in groups whose numbers for a block of words fit into the cache."""
    count = -(-len(states) // BLOCK_STATES)
    bounds = [len(states) * i // count for i in range(count + 1)]
    return [slice(start, end) for start, end in pairwise(bounds)]


def _space(states: Tensor, share: Blocks) -> Tensor:
    rows = max(rows.stop - rows.start for rows in _rows(states))
    return states.new_empty(rows * max(words.stop - words.start for words in share))


def _logits(states: Tensor, weight: Tensor, bias: Tensor, words: slice, space: Tensor) -> Tensor:
    """(p, words) in the memory given."""
    size = words.stop - words.start
    out = space[: len(states) * size].view(len(states), size)
    return torch.addmm(bias[words], states, weight[words].T, out=out)


def _log_normaliser(states: Tensor, weight: Tensor, bias: Tensor, block: int) -> Tensor:
    """(p,) the logarithm of the sum over the vocabulary of e^logit."""
    states, bias = states * LOG2_E, bias * LOG2_E

    def run(share: Blocks) -> tuple[Tensor, Tensor]:
        space = _space(states, share)
        peak, total = states.new_full((len(states), 1), -torch.inf), states.new_zeros(len(states), 1)
        for words in share:
            for rows in _rows(states):
                logits = _logits(states[rows], weight, bias, words, space)
                higher = torch.maximum(peak[rows], logits.amax(1, keepdim=True))
                total[rows] *= (peak[rows] - higher).exp2_()
                total[rows] += logits.sub_(higher).exp2_().sum(1, keepdim=True)
                peak[rows] = higher
        return peak, total

    found = threads.in_pieces(run, _shares(states, weight, block))
    return torch.cat([peak / LOG2_E + total.log() for peak, total in found], 1).logsumexp(1)
