"""log p(w) of dense rules as a differentiable function, and their marginals, with any engine for the two passes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ramify.runtime.fast_exp import exp
from ramify.runtime.threads import in_pieces, torch_on_one_core
from ramify.structures.dense.chart import Blocks, Chart, count
from ramify.structures.dense.distribution import DensePCFG
from ramify.structures.distribution import Marginals
from ramify.structures.scaling import Scaled, by_fence_posts, posterior_weights, span_family


class Engine(Protocol):
    """A module with the two passes of an algorithm, and how it divides a batch."""

    def pieces(self, pcfg: DensePCFG) -> list[slice]:  # noqa: D102
        ...

    def inside_pass(self, blocks: Blocks, pcfg: DensePCFG) -> Chart:  # noqa: D102
        ...

    def outside_pass(self, chart: Chart, upstream: Tensor | None = None) -> tuple[Scaled, Tensor | None]:  # noqa: D102
        ...


@dataclass(frozen=True)
class _WordGradients:
    """Derivatives of sum(upstream * log p(w)) around single words, every one a sum of bounded products."""

    emission: Tensor
    """(B, N, p)"""
    word_left: Tensor
    """(B, N, n n) of `Chart.word_left`"""
    word_right: Tensor
    """(B, N, n n) of `Chart.word_right`"""
    pairs: Tensor
    """(B, N-1, n) of the weights of two neighbouring words for each parent"""


def _word_gradients(chart: Chart, outer: Scaled, upstream: Tensor) -> _WordGradients:
    (vectors, scales), blocks = chart.symbols, chart.blocks
    emission, leaf_scale = chart.leaves
    B, N, p = emission.shape
    n = vectors.shape[-1]
    above, above_scale = outer[0], outer[1] + chart.scores

    def weights(exponent: Tensor) -> Tensor:
        shape = (-1, *[1] * (exponent.dim() - 1))
        return (posterior_weights(exponent, chart.log_z, vectors.dtype) * upstream.view(shape))[..., None]

    word_left, word_right = (emission.new_zeros(B, N, n, n) for _ in range(2))
    pairs = emission.new_zeros(B, N - 1, n)
    if N > 2:
        # A word i before a phrase: parents (i, w), phrases (i+1, w-1), w = 3 .. N.
        exponent = above_scale[:, :-1, 2:] + scales[:, 1:, 1:-1] + leaf_scale[:, :-1, None]
        word_left[:, :-1] = (above[:, :-1, 2:] * weights(exponent)).mT @ vectors[:, 1:, 1:-1]
        # A word j after a phrase: parents (i, j+1-i), phrases (i, j-i), i = 0 .. j-2.
        parents, parent_scale = span_family((above, above_scale), (N - 2, N - 2), (1, N - 1), 2)
        phrases, phrase_scale = span_family(chart.symbols, (N - 2, N - 2), (1, N - 1), 1)
        too_late = torch.ones(N - 2, N - 2, dtype=torch.bool, device=emission.device).triu(1)
        exponent = (parent_scale + phrase_scale + leaf_scale[:, 2:, None]).masked_fill(too_late, -torch.inf)
        word_right[:, 2:] = (parents * weights(exponent)).mT @ phrases
    word_left, word_right = word_left.flatten(2), word_right.flatten(2)
    g = word_left @ blocks.word_left.mT + word_right @ blocks.word_right.mT
    if N > 1:
        exponent = above_scale[:, :-1, 1] + leaf_scale[:, :-1] + leaf_scale[:, 1:]
        pairs = above[:, :-1, 1] * weights(exponent)
        by_tags = (pairs @ blocks.words.mT).unflatten(-1, (p, p))
        g[:, :-1] += (by_tags @ emission[:, 1:, :, None]).squeeze(-1)
        g[:, 1:] += (emission[:, :-1, None] @ by_tags).squeeze(-2)
    return _WordGradients(g, word_left, word_right, pairs)


def _symbol_posteriors(chart: Chart, outer: Scaled) -> Tensor:
    """(B, N, N, n) the posterior of each nonterminal over each span of two words or more."""
    (vectors, scales), dtype = chart.symbols, chart.symbols[0].dtype
    return vectors * outer[0] * posterior_weights(scales + outer[1], chart.log_z, dtype)[..., None]


class _Gradients(NamedTuple):
    """Gradients of sum(upstream * log p(w)) over some sentences."""

    root: Tensor
    """(B, n)"""
    rules: tuple[Tensor, ...]
    """By the probabilities of the rules with two phrases, a word before a phrase, a word after it, and two words"""
    words: Tensor
    """(B, N, p)"""
    span_scores: Tensor
    """(B, N+1, N+1)"""


def _gradients_of(engine: Engine, chart: Chart, upstream: Tensor) -> _Gradients:
    outer, phrases = engine.outside_pass(chart, upstream)
    assert phrases is not None
    around, emission = _word_gradients(chart, outer, upstream), chart.leaves[0]
    per_sentence = chart.blocks.root.dim() == 2
    pairs = (emission[:, :-1, :, None] * emission[:, 1:, None, :]).flatten(2)
    rules = (
        phrases,
        count(emission, around.word_left, per_sentence),
        count(emission, around.word_right, per_sentence),
        count(pairs, around.pairs, per_sentence),
    )
    labels = _symbol_posteriors(chart, outer) * upstream[:, None, None, None]
    tags = emission * around.emission
    spans = labels.sum(-1)
    spans[:, :, 0] = tags.sum(-1)
    starts = labels[torch.arange(len(labels), device=labels.device), 0, chart.lengths - 1]
    return _Gradients(starts, rules, tags, by_fence_posts(spans))


def _lay_out(rules: tuple[Tensor, ...], binary: Tensor, counts: Tensor) -> None:
    """Expected counts of the binary rules, in the shape of `binary`: probability times derivative."""
    phrases, word_left, word_right, words = rules
    n, m = binary.shape[-3], binary.shape[-1]
    p = m - n
    counts[..., :n, :n] = phrases.unflatten(-1, (n, n)).movedim(-3, -2)  # [b, ac] -> [a, b, c]
    counts[..., n:, :n] = word_left.unflatten(-1, (n, n)).movedim(-3, -2)  # [t, ac]
    counts[..., :n, n:] = word_right.unflatten(-1, (n, n)).movedim(-3, -1)  # [t, ab]
    counts[..., n:, n:] = words.unflatten(-2, (p, p)).movedim(-1, -3)  # [ts, a]
    counts.mul_(exp(binary))


def _charts(engine: Engine, pcfg: DensePCFG) -> list[Chart]:
    """The full charts of the batch, piece by piece."""
    shared = None if pcfg.per_sentence else Blocks.of(pcfg)

    def run(piece: slice) -> Chart:
        some = pcfg.select(piece)
        return engine.inside_pass(shared or Blocks.of(some), some)

    return in_pieces(run, engine.pieces(pcfg))


def _gradients(
    engine: Engine, charts: list[Chart], upstream: Tensor, root: Tensor, binary: Tensor
) -> tuple[Tensor | None, ...]:
    """Gradients by the inputs of `_Inside`."""
    sizes = [len(chart.lengths) for chart in charts]
    work = list(zip(charts, upstream.split(sizes), strict=True))
    found = in_pieces(lambda piece: _gradients_of(engine, *piece), work)
    starts, words, span_scores = (
        torch.cat([getattr(each, name) for each in found]) for name in ("root", "words", "span_scores")
    )
    g_binary = torch.empty_like(binary)
    if root.dim() == 2:
        own = zip((each.rules for each in found), binary.split(sizes), g_binary.split(sizes), strict=True)
        in_pieces(lambda piece: _lay_out(*piece), list(own))
        return starts, g_binary, words, None, span_scores
    total = tuple(reduce(torch.add, parts) for parts in zip(*(each.rules for each in found), strict=True))
    _lay_out(total, binary, g_binary)
    return starts.sum(0), g_binary, words, None, span_scores


class _Inside(torch.autograd.Function):
    """log p(w) with the outside pass as its backward pass; gradients of log-probabilities are expected counts."""

    @staticmethod
    def forward(ctx: Any, engine: Engine, *inputs: Tensor) -> Tensor:
        pcfg = DensePCFG(*inputs)
        ctx.on_one_core = torch.get_num_threads() == 1  # the backward pass runs like the forward pass
        ctx.save_for_backward(pcfg.root, pcfg.binary)
        ctx.engine, ctx.charts = engine, _charts(engine, pcfg)
        return torch.cat([chart.log_z for chart in ctx.charts]).to(pcfg.words.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        with torch_on_one_core() if ctx.on_one_core else nullcontext():
            return None, *_gradients(ctx.engine, ctx.charts, upstream, *ctx.saved_tensors)


def inside(engine: Engine, pcfg: DensePCFG) -> Tensor:
    """log p(w) of each sentence (B,)."""
    result: Tensor = _Inside.apply(  # type: ignore[no-untyped-call]
        engine, pcfg.root, pcfg.binary, pcfg.words, pcfg.lengths, pcfg.scores()
    )
    return result


def _all_posteriors(engine: Engine, pcfg: DensePCFG) -> tuple[Tensor, Tensor, Tensor]:
    """log p(w) (B,); of labels (B, N, N, n) by start and width; of tags (B, N, p)."""

    def run(chart: Chart) -> tuple[Tensor, Tensor, Tensor]:
        outer, _ = engine.outside_pass(chart)
        around = _word_gradients(chart, outer, torch.ones_like(chart.leaves[0][:, 0, 0]))
        return chart.log_z, _symbol_posteriors(chart, outer), chart.leaves[0] * around.emission

    log_z, labels, tags = zip(*in_pieces(run, _charts(engine, pcfg)), strict=True)
    return torch.cat(log_z), torch.cat(labels), torch.cat(tags)


@torch.no_grad()
def symbol_posteriors(engine: Engine, pcfg: DensePCFG) -> tuple[Tensor, Tensor]:
    """The posterior of every nonterminal over every span (B, N+1, N+1, n), and of every tag (B, N, p)."""
    _, labels, tags = _all_posteriors(engine, pcfg)
    return by_fence_posts(labels), tags


@torch.no_grad()
def marginals(engine: Engine, pcfg: DensePCFG) -> Marginals:
    """Posteriors of spans, labels and tags from one inside and one outside pass."""
    log_z, labels, tags = _all_posteriors(engine, pcfg)
    spans = labels.sum(-1)
    spans[:, :, 0] = tags.sum(-1)
    label, tag = labels.max(-1), tags.max(-1)
    return Marginals(
        log_z.to(spans.dtype),
        by_fence_posts(spans),
        by_fence_posts(label.indices),
        by_fence_posts(label.values),
        tag.indices,
        tag.values,
    )
