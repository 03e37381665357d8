"""The softmax over the vocabulary, in blocks of words.

A batch needs only the log-probabilities of its words, logit_Tw - log sum_v exp(logit_Tv), and only the sums run over
the vocabulary. They are computed in blocks of words: on a CPU by compiled loops, which keep the logits for the backward
pass if this takes little memory, and elsewhere by torch. Other logits are recomputed in the backward pass, so that
memory never holds more than one block per core. Both ways are exact.

All powers are powers of two (see runtime/fast_exp.py): states and bias are multiplied by log2(e) before the products.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ramify.runtime import threads
from ramify.runtime.compilation import loops_are_postponed
from ramify.runtime.fast_exp import LOG2_E
from ramify.runtime.padding import narrow_rows

BLOCK_NUMBERS, BLOCK_WORDS, BLOCK_STATES = 2**18, (256, 2048), 1024
"""With torch, a block has about this many numbers (1 MB), which fit into the cache of a core: a number of words between
these bounds, for at most this many preterminals."""
LOOP_WORDS = 96
"""Number of words per block of the compiled loops, for at most `BLOCK_STATES` preterminals"""
MAX_KEPT = 64 * 2**20
"""Maximum bytes of logits that are kept for the backward pass"""


def word_log_probabilities(
    states: Tensor, weight: Tensor, bias: Tensor | None, word_ids: Tensor, block: int | None = None
) -> Tensor:
    """log p(T -> w) (..., p) of the words given by their numbers (...).

    p(T -> w) is the softmax over all q words of states (p, e) times weight (q, e), plus bias (q,) if there is one.
    States (B, p, e) differ between sentences, for words (B, N). Differentiable in states, weight and bias. A block has
    `block` words.
    """
    in_loops = (
        weight.device.type == "cpu" and weight.dtype in (torch.float32, torch.float64) and not loops_are_postponed()
    )
    if block is None:
        least, most = BLOCK_WORDS
        rest = min(most, max(least, BLOCK_NUMBERS // min(BLOCK_STATES, states[..., 0].numel())))
        block = LOOP_WORDS if in_loops else rest
    if bias is None:
        bias = weight.new_zeros(len(weight))
    if block < 1:
        raise ValueError(f"a block must hold at least one word, not {block}")
    grouped, ids = (states, word_ids) if states.dim() == 3 else (states[None], word_ids.reshape(1, -1))
    softmax = Loops if in_loops else Torch
    result: Tensor = _WordLogProbabilities.apply(softmax, grouped, weight, bias, ids, block)  # type: ignore[no-untyped-call]
    return result.view(*word_ids.shape, states.shape[-2])


class _WordLogProbabilities(torch.autograd.Function):
    """For groups G of words (G, N) with separate states (G, p, e)."""

    @staticmethod
    def forward(
        ctx: Any, kind: type[Torch | Loops], states: Tensor, weight: Tensor, bias: Tensor, word_ids: Tensor, block: int
    ) -> Tensor:
        keeping = any(ctx.needs_input_grad)
        ctx.softmax = kind(states.detach().flatten(0, 1), weight.detach(), bias.detach(), block, keeping)
        ctx.save_for_backward(states, weight, word_ids)
        shift = bias[word_ids][..., None] - ctx.softmax.normaliser.view(len(states), 1, -1)
        result: Tensor = shift.baddbmm_(weight[word_ids], states.mT)  # in place: for all words, it is the largest table
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        grouped, weight, word_ids = ctx.saved_tensors
        # The normaliser's gradient is the expected word: minus counts times probabilities.
        counts = -upstream.sum(1).view(-1, 1)
        expected, g_weight, g_bias = ctx.softmax.gradients(counts)
        g_states = torch.baddbmm(expected.mul_(counts).view_as(grouped), upstream.mT, weight[word_ids])
        words = word_ids.flatten()
        g_weight.index_add_(0, words, (upstream @ grouped).flatten(0, 1))
        g_bias.index_add_(0, words, upstream.sum(-1).flatten())
        return None, g_states, g_weight, g_bias, None, None


def _shares(states: Tensor, weight: Tensor, block: int) -> list[slice]:
    """The vocabulary in one share per core. Sums have a fixed order: the same number of cores gives the same bits."""
    words = len(weight)
    cores = threads.worth(2 * len(states) * weight.numel()) if weight.device.type == "cpu" else 1
    count = min(cores, -(-words // block))
    return [slice(start, end) for start, end in pairwise(words * i // count for i in range(count + 1))]


def _summed(found: list[Tensor]) -> Tensor:
    first, *others = found
    for other in others:
        first += other
    return first


class Loops:
    """The logarithms (p,) of the sums over the vocabulary of e^logit, and their gradients, by compiled loops."""

    def __init__(self, states: Tensor, weight: Tensor, bias: Tensor, block: int, keeping: bool) -> None:
        from ramify.models import emission_loops  # compiled; not every user needs it

        self.loops = emission_loops
        (self.p, self.e), words = states.shape, len(weight)
        self.states, self.weight, self.bias = states, narrow_rows(weight), (bias * LOG2_E).numpy()
        # The padding of the embedding, zero in both factors, is included in the products.
        transposed = narrow_rows(states.T * LOG2_E)
        width = transposed.shape[1]
        self.transposed = transposed.new_zeros(self.weight.shape[1], width)
        self.transposed[: self.e] = transposed
        kept = keeping and width <= BLOCK_STATES and words * width * weight.element_size() <= MAX_KEPT
        self.kept = weight.new_empty(words if kept else 0, width)
        self.block = min(block, words), BLOCK_STATES
        self.shares = _shares(states, weight, block)

        def run(share: slice) -> Tensor:
            peaks, totals = transposed.new_empty(2, width)
            self.loops.log_sums(*self._arguments(share), self.kept.numpy(), peaks.numpy(), totals.numpy())
            result: Tensor = (peaks / LOG2_E + totals.log())[: self.p]
            return result

        found = threads.in_pieces(run, self.shares)
        self.normaliser = found[0] if len(found) == 1 else torch.stack(found).logsumexp(0)

    def _arguments(self, share: slice) -> tuple[Any, ...]:
        matrices = self.transposed.numpy(), self.weight.numpy(), self.bias
        return share.start, share.stop, *self.block, *matrices

    def gradients(self, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(p, e) the expected words, (q, e) and (q,) the gradients of weight and bias; the sums have factors (p, 1)."""
        (rows, width), p, e = self.transposed.shape, self.p, self.e
        normaliser, factors = self.states.new_zeros(2, width)
        normaliser[:p], factors[:p] = self.normaliser * LOG2_E, counts[:, 0]
        counted = self.states.new_zeros(width, rows)
        torch.mul(self.states, counts, out=counted[:p, :e])
        g_weight, g_bias = torch.empty_like(self.weight), self.states.new_empty(len(self.weight))
        given = tuple(x.numpy() for x in (self.kept, normaliser, counted, factors, g_weight, g_bias))

        def run(share: slice) -> Tensor:
            expected = torch.empty_like(counted)
            self.loops.gradients(*self._arguments(share), *given, expected.numpy())
            return expected

        return _summed(threads.in_pieces(run, self.shares))[:p, :e], g_weight[:, :e], g_bias


class Torch:
    """The same with torch, on any device."""

    def __init__(self, states: Tensor, weight: Tensor, bias: Tensor, block: int, keeping: bool) -> None:  # noqa: ARG002
        self.states, self.weight, self.bias, self.block = states, weight, bias, block
        states2, bias2 = states * LOG2_E, bias * LOG2_E

        def run(share: slice) -> tuple[Tensor, Tensor]:
            space = self._space()
            peak, total = states.new_full((len(states), 1), -torch.inf), states.new_zeros(len(states), 1)
            for words in self._blocks(share):
                for rows in self._rows():
                    logits = _logits(states2[rows], weight, bias2, words, space)
                    higher = torch.maximum(peak[rows], logits.amax(1, keepdim=True))
                    total[rows] *= (peak[rows] - higher).exp2_()
                    total[rows] += logits.sub_(higher).exp2_().sum(1, keepdim=True)
                    peak[rows] = higher
            return peak, total

        found = threads.in_pieces(run, _shares(states, weight, block))
        self.normaliser = torch.cat([peak / LOG2_E + total.log() for peak, total in found], 1).logsumexp(1)

    def gradients(self, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The same as that of the loops."""
        states, weight, bias = self.states, self.weight, self.bias
        counted = states * counts
        states2, bias2, normaliser2 = states * LOG2_E, bias * LOG2_E, (self.normaliser * LOG2_E)[:, None]
        g_weight, g_bias = torch.empty_like(weight), torch.empty_like(bias)

        def run(share: slice) -> Tensor:
            expected = torch.zeros_like(states)
            space = self._space()
            for words in self._blocks(share):
                for first, rows in enumerate(self._rows()):
                    probabilities = _logits(states2[rows], weight, bias2, words, space).sub_(normaliser2[rows]).exp2_()
                    beta = 0 if first == 0 else 1
                    g_weight[words].addmm_(probabilities.T, counted[rows], beta=beta)
                    g_bias[words].addmv_(probabilities.T, counts[rows, 0], beta=beta)
                    expected[rows].addmm_(probabilities, weight[words])
            return expected

        return _summed(threads.in_pieces(run, _shares(states, weight, self.block))), g_weight, g_bias

    def _blocks(self, share: slice) -> list[slice]:
        starts = range(share.start, share.stop, self.block)
        return [slice(begin, min(begin + self.block, share.stop)) for begin in starts]

    def _rows(self) -> list[slice]:
        """The preterminals in groups whose numbers for a block of words fit into the cache."""
        count = -(-len(self.states) // BLOCK_STATES)
        return [slice(start, end) for start, end in pairwise(len(self.states) * i // count for i in range(count + 1))]

    def _space(self) -> Tensor:
        rows = max(rows.stop - rows.start for rows in self._rows())
        return self.states.new_empty(rows * min(self.block, len(self.weight)))


def _logits(states: Tensor, weight: Tensor, bias: Tensor, words: slice, space: Tensor) -> Tensor:
    """(p, words) in the memory given."""
    size = words.stop - words.start
    out = space[: len(states) * size].view(len(states), size)
    return torch.addmm(bias[words], states, weight[words].T, out=out)
