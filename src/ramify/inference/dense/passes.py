"""log p(w) of dense rules as a differentiable function, and their marginals, whatever engine runs the two passes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ramify.inference.dense.chart import Chart, count
from ramify.inference.powers import exp
from ramify.inference.rules import DenseRules, Marginals
from ramify.inference.scaling import Scaled, by_fence_posts, posterior_weights, span_family
from ramify.inference.threads import torch_on_one_core


class Engine(Protocol):
    """A module with the two passes of an algorithm."""

    def inside_pass(self, rules: DenseRules, span_scores: Tensor) -> Chart:  # noqa: D102
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
    """(B, N-1, n) of what two words in a row are worth to each parent"""


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
        # A word j behind a phrase: parents (i, j+1-i), phrases (i, j-i), i = 0 .. j-2.
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


def _rule_counts(chart: Chart, phrases: Tensor, around: _WordGradients, binary: Tensor) -> Tensor:
    """Expected counts of the binary rules, in the shape of `binary`: probability times derivative."""
    emission = chart.leaves[0]
    per_sentence = binary.dim() == 4
    n, m = binary.shape[-3], binary.shape[-1]
    p = m - n
    g = torch.empty_like(binary)
    g[..., :n, :n] = phrases.unflatten(-1, (n, n)).movedim(-3, -2)  # [b, ac] -> [a, b, c]
    left = count(emission, around.word_left, per_sentence).unflatten(-1, (n, n))  # [t, a, c]
    g[..., n:, :n] = left.movedim(-3, -2)
    right = count(emission, around.word_right, per_sentence).unflatten(-1, (n, n))  # [t, a, b]
    g[..., :n, n:] = right.movedim(-3, -1)
    both = (emission[:, :-1, :, None] * emission[:, 1:, None, :]).flatten(2)
    g[..., n:, n:] = count(both, around.pairs, per_sentence).unflatten(-2, (p, p)).movedim(-1, -3)
    return exp(binary).mul_(g)


class _Inside(torch.autograd.Function):
    """log p(w) with the outside pass as its backward pass; gradients of log-probabilities are expected counts."""

    @staticmethod
    def forward(ctx: Any, engine: Engine, *inputs: Tensor) -> Tensor:
        root, binary, words, lengths, span_scores = inputs
        ctx.on_one_core = torch.get_num_threads() == 1  # the way back is to run as the way here
        ctx.save_for_backward(root, binary)
        ctx.engine, ctx.chart = engine, engine.inside_pass(DenseRules(root, binary, words, lengths), span_scores)
        log_z: Tensor = ctx.chart.log_z
        return log_z.to(words.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        with torch_on_one_core() if ctx.on_one_core else nullcontext():
            return None, *_gradients(ctx.engine, ctx.chart, upstream, *ctx.saved_tensors)


def _gradients(
    engine: Engine, chart: Chart, upstream: Tensor, root: Tensor, binary: Tensor
) -> tuple[Tensor | None, ...]:
    """By the tensors that `_Inside` was given."""
    outer, phrases = engine.outside_pass(chart, upstream)
    assert phrases is not None
    around = _word_gradients(chart, outer, upstream)
    labels = _symbol_posteriors(chart, outer) * upstream[:, None, None, None]
    tags = chart.leaves[0] * around.emission
    spans = labels.sum(-1)
    spans[:, :, 0] = tags.sum(-1)
    starts = labels[torch.arange(len(labels), device=labels.device), 0, chart.lengths - 1]
    g_root = starts if root.dim() == 2 else starts.sum(0)
    return g_root, _rule_counts(chart, phrases, around, binary), tags, None, by_fence_posts(spans)


def inside(engine: Engine, rules: DenseRules, span_scores: Tensor) -> Tensor:
    """log p(w) of each sentence (B,), every span weighted by exp(span_scores[b, i, j]) (B, N+1, N+1)."""
    result: Tensor = _Inside.apply(  # type: ignore[no-untyped-call]
        engine, rules.root, rules.binary, rules.words, rules.lengths, span_scores
    )
    return result


def _all_posteriors(engine: Engine, rules: DenseRules, span_scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log p(w) (B,); of labels (B, N, N, n) by start and width; of tags (B, N, p)."""
    chart = engine.inside_pass(rules, span_scores)
    outer, _ = engine.outside_pass(chart)
    around = _word_gradients(chart, outer, torch.ones_like(rules.words[:, 0, 0]))
    return chart.log_z, _symbol_posteriors(chart, outer), chart.leaves[0] * around.emission


@torch.no_grad()
def symbol_posteriors(engine: Engine, rules: DenseRules) -> tuple[Tensor, Tensor]:
    """Of every nonterminal over every span (B, N, N, n), by start and width - 1, and of every tag (B, N, p)."""
    B, N, _ = rules.words.shape
    return _all_posteriors(engine, rules, rules.words.new_zeros(B, N + 1, N + 1))[1:]


@torch.no_grad()
def marginals(engine: Engine, rules: DenseRules, span_scores: Tensor) -> Marginals:
    """Posteriors of spans, labels and tags from one inside and one outside pass."""
    log_z, labels, tags = _all_posteriors(engine, rules, span_scores)
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
