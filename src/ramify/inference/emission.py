"""The softmax over the vocabulary, in blocks of words.

Of the p x q log-probabilities a batch wants only those of its words, logit_Tw - log sum_v exp(logit_Tv), and only the
sums run over the vocabulary. They are made from blocks of it, each forgotten once it was added; the backward pass makes
the blocks again. Exact, and never more in memory than one block a core.

Powers are powers of two (powers.py says why): states and bias are multiplied by log2(e) before the products.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ramify.inference import threads
from ramify.inference.powers import LOG2_E

BLOCK_NUMBERS, BLOCK_WORDS = 2**18, 2048
"""A block holds at most so many numbers (1 MB) of at most so many words, which a core's cache has room for."""


def word_log_probabilities(
    states: Tensor, weight: Tensor, bias: Tensor, word_ids: Tensor, block: int | None = None
) -> Tensor:
    """log p(T -> w) (..., p) of the words given by their numbers (...).

    p(T -> w) is the softmax over all q words of states (p, e) times weight (q, e), plus bias (q,). Differentiable in
    states, weight and bias. A block holds `block` words.
    """
    if block is None:
        block = max(1, min(BLOCK_WORDS, BLOCK_NUMBERS // len(states)))
    if block < 1:
        raise ValueError(f"a block must hold at least one word, not {block}")
    result: Tensor = _WordLogProbabilities.apply(states, weight, bias, word_ids, block)  # type: ignore[no-untyped-call]
    return result


Blocks = list[slice]


def _shares(words: int, block: int, device: torch.device) -> list[Blocks]:
    """The vocabulary in one share a core, each in blocks. Sums are taken in order: the same cores, the same bits."""
    count = min(threads.available(), -(-words // block)) if device.type == "cpu" else 1
    bounds = [words * i // count for i in range(count + 1)]
    return [
        [slice(begin, min(begin + block, end)) for begin in range(start, end, block)] for start, end in pairwise(bounds)
    ]


class _WordLogProbabilities(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, word_ids: Tensor, block: int) -> Tensor:
        normaliser = _log_normaliser(states, weight, bias, block)
        unique, place = word_ids.flatten().unique(return_inverse=True)
        chosen = torch.addmm(bias[unique][:, None] - normaliser, weight[unique], states.T)
        ctx.save_for_backward(states, weight, bias, normaliser, unique, place)
        ctx.block = block
        return chosen[place].view(*word_ids.shape, -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        states, weight, bias, normaliser, unique, place = ctx.saved_tensors
        by_word = upstream.new_zeros(len(unique), len(states))
        by_word.index_add_(0, place, upstream.reshape(-1, len(states)))
        # The normaliser's gradient is the expected word: minus counts times probabilities.
        counts = by_word.sum(0)
        counted = states * -counts[:, None]
        states2, bias2, normaliser2 = states * LOG2_E, bias * LOG2_E, (normaliser * LOG2_E)[:, None]
        g_weight, g_bias = torch.empty_like(weight), torch.empty_like(bias)

        def run(share: Blocks) -> Tensor:
            expected = torch.zeros_like(states)
            space = _space(states, share)
            for words in share:
                probabilities = _logits(states2, weight, bias2, words, space).sub_(normaliser2).exp2_()
                torch.mm(probabilities.T, counted, out=g_weight[words])
                torch.mv(probabilities.T, -counts, out=g_bias[words])
                expected.addmm_(probabilities, weight[words])
            return expected

        first, *others = threads.in_pieces(run, _shares(len(weight), ctx.block, weight.device))
        for other in others:
            first += other
        g_states = torch.addmm(first.mul_(-counts[:, None]), by_word.T, weight[unique])
        g_weight[unique] += by_word @ states
        g_bias[unique] += by_word.sum(1)
        return g_states, g_weight, g_bias, None, None


def _space(states: Tensor, share: Blocks) -> Tensor:
    return states.new_empty(len(states) * max(words.stop - words.start for words in share))


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
            logits = _logits(states, weight, bias, words, space)
            higher = torch.maximum(peak, logits.amax(1, keepdim=True))
            total *= (peak - higher).exp2_()
            total += logits.sub_(higher).exp2_().sum(1, keepdim=True)
            peak = higher
        return peak, total

    found = threads.in_pieces(run, _shares(len(weight), block, weight.device))
    return torch.cat([peak / LOG2_E + total.log() for peak, total in found], 1).logsumexp(1)
