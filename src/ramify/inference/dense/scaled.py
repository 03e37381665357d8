"""Inside and outside for dense rules with scaled probabilities, on any device: see README.md beside this file."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ramify.inference.powers import exp
from ramify.inference.rules import DenseRules
from ramify.inference.scaling import (
    Scaled,
    at_width,
    by_start_and_width,
    empty_chart,
    normalise,
    posterior_weights,
    relative,
    scale_dtype,
    span_family,
    store,
)


@dataclass(frozen=True)
class Blocks:
    """The rule tensor as probabilities, cut by kinds of children and laid out as the passes multiply.

    Shapes are those of shared rules; rules per sentence have a leading dimension B. In the comments a is the parent,
    b and c are children that are phrases, t and s children that are words.
    """

    root: Tensor
    """(n,)"""
    parents: Tensor
    """(n n, n) [bc, a]"""
    left: Tensor
    """(n n, n) [ac, b]"""
    right: Tensor
    """(n n, n) [ab, c]"""
    word_left: Tensor
    """(p, n n) [t, ac]"""
    word_right: Tensor
    """(p, n n) [t, ab]"""
    words: Tensor
    """(p p, n) [ts, a]"""

    @classmethod
    def of(cls, rules: DenseRules) -> Blocks:
        """Cut the rule tensor up."""
        n, tensor = rules.nonterminals, exp(rules.binary)
        phrases, word_left = tensor[..., :n, :n], tensor[..., n:, :n]
        word_right, words = tensor[..., :n, n:], tensor[..., n:, n:]
        return cls(
            exp(rules.root),
            phrases.movedim(-3, -1).flatten(-3, -2),
            phrases.transpose(-2, -1).flatten(-3, -2),
            phrases.flatten(-3, -2),
            word_left.movedim(-2, -3).flatten(-2),
            word_right.movedim(-1, -3).flatten(-2),
            words.movedim(-3, -1).flatten(-3, -2),
        )


@dataclass
class Chart:
    """All that the inside pass leaves behind."""

    blocks: Blocks
    leaves: Scaled
    """(B, N, p)"""
    word_left: Tensor
    """(B, N, n, n) [a, c] the rules A -> w C with the word's probabilities summed in; scale as the leaves'"""
    word_right: Tensor
    """(B, N, n, n) [a, b] the same for A -> B w"""
    symbols: Scaled
    """(B, N, N, n) span scores included; zero vectors with the leaves' scales over single words"""
    scores: Tensor
    """(B, N, N) span scores by start and width"""
    lengths: Tensor
    log_z: Tensor
    """(B,)"""


def inside_pass(rules: DenseRules, span_scores: Tensor) -> Chart:
    """All inside vectors, from the words to the whole sentences."""
    B, N, _ = rules.words.shape
    n, device = rules.nonterminals, rules.words.device
    blocks = Blocks.of(rules)
    scores = by_start_and_width(span_scores.to(scale_dtype(device)))

    words = rules.masked_words()
    peak = words.amax(-1)
    emission = (words - torch.where(peak == -torch.inf, 0, peak)[..., None]).exp()
    leaf_scale = peak.to(scores.dtype) + scores[:, :, 0]
    word_left = (emission @ blocks.word_left).unflatten(-1, (n, n))
    word_right = (emission @ blocks.word_right).unflatten(-1, (n, n))
    symbols = empty_chart(B, N, n, words, scores)
    symbols[1][:, :, 0] = leaf_scale

    for width in range(2, N + 1):
        starts = N - width + 1
        # Splits after s = 1 .. width-1 words: left child (i, s), right child (i+s, width-s).
        left, left_scale = span_family(symbols, (starts, width - 1), (N, 1), 0)
        right, right_scale = span_family(symbols, (starts, width - 1), (N, N - 1), N + width - 2)
        weights, scale = relative(left_scale + right_scale, words.dtype)
        if width == 2:
            x = _outer(emission[:, :-1], emission[:, 1:]) @ blocks.words
        else:
            below = (word_left[:, :starts] @ right[:, :, 0, :, None]).squeeze(-1)
            x = weights[:, :, :1] * below
            below = (word_right[:, width - 1 :] @ left[:, :, -1, :, None]).squeeze(-1)
            x = x + weights[:, :, -1:] * below
        if width > 3:
            pairs = (left * weights[..., None])[:, :, 1:-1].mT @ right[:, :, 1:-1]
            x = x + pairs.flatten(2) @ blocks.parents
        store(symbols, width, normalise(x, scale + at_width((symbols[0], scores), width)[1]))

    lengths = rules.lengths.to(device)
    whole = torch.arange(B, device=device), torch.zeros_like(lengths), lengths - 1
    log_z = symbols[1][whole] + (symbols[0][whole] * blocks.root).sum(-1).to(scores.dtype).log()
    # A sentence of one word has no derivation: every start rule leads to a binary rule.
    log_z = torch.where(lengths > 1, log_z, -torch.inf)
    return Chart(blocks, (emission, leaf_scale), word_left, word_right, symbols, scores, lengths, log_z)


def _outer(a: Tensor, b: Tensor) -> Tensor:
    """(..., k l) from (..., k) and (..., l)."""
    return (a[..., :, None] * b[..., None, :]).flatten(-2)


def outside_pass(chart: Chart, upstream: Tensor | None = None) -> tuple[Scaled, Tensor | None]:
    """The outside vectors of all spans of two words or more (B, N, N, n).

    With `upstream` (B,) also the gradient of sum(upstream * log p(w)) by `blocks.left`, the rules with two phrases
    below, transposed: (n, n n) [b, ac].
    """
    symbols, blocks = chart.symbols, chart.blocks
    vectors, scales = symbols
    B, N, _, n = vectors.shape
    outer = empty_chart(B, N, n, vectors, scales)
    scored = empty_chart(B, N, n, vectors, scales)  # the same, its own span score included: what children see
    counts = None if upstream is None else blocks.left.new_zeros(*blocks.left.shape[:-2], n, n * n)
    for width in range(N, 1, -1):
        g = vectors.new_zeros(B, N - width + 1, n), scales.new_full((B, N - width + 1), -torch.inf)
        beside = N - width  # starts that have a right neighbour, and as many that have a left one
        if beside:
            # As left child (i, width): parents (i, width+t), right siblings (i+width, t), t = 1 ...
            above, above_scale = span_family(scored, (beside, beside), (N, 1), width)
            sibling, sibling_scale = span_family(symbols, (beside, beside), (N, 1), width * N)
            weights, left_scale = relative(above_scale + sibling_scale, vectors.dtype)
            pairs = ((above * weights[..., None]).mT @ sibling).flatten(2)
            if counts is not None and upstream is not None:
                y, a = vectors[:, :beside, width - 1], scales[:, :beside, width - 1]
                share = posterior_weights(a + left_scale, chart.log_z, y.dtype) * upstream[:, None]
                counts += count(y * share[..., None], pairs, counts.dim() == 3)
            beside_word = (above[:, :, :1] @ chart.word_right[:, width:]).squeeze(-2)
            g_left = pairs @ blocks.left + weights[:, :, :1] * beside_word
            # As right child (k, width): parents (i, width+k-i), left siblings (i, k-i), i = 0 .. k-1.
            above, above_scale = span_family(scored, (beside, beside), (1, N - 1), width)
            sibling, sibling_scale = span_family(symbols, (beside, beside), (1, N - 1), 0)
            not_before = torch.ones(beside, beside, dtype=torch.bool, device=vectors.device).triu(1)
            scale = (above_scale + sibling_scale).masked_fill(not_before, -torch.inf)
            weights, right_scale = relative(scale, vectors.dtype)
            pairs = ((above * weights[..., None]).mT @ sibling).flatten(2)
            nearest = scored[0][:, :beside, width, None]  # parents that have the word at k-1 as left child
            beside_word = (nearest @ chart.word_left[:, :beside]).squeeze(-2)
            g_right = pairs @ blocks.right + weights.diagonal(0, 1, 2)[..., None] * beside_word
            g = _joined(g, (g_left, left_scale), (g_right, right_scale))
        g = normalise(*g)
        complete = chart.lengths == width  # the whole sentence stands below a start rule instead
        start, start_scale = normalise(blocks.root, scales.new_zeros(blocks.root.shape[:-1]))
        g[0][complete, 0] = start if start.dim() == 1 else start[complete]
        g[1][complete, 0] = start_scale if start.dim() == 1 else start_scale[complete]
        store(outer, width, g)
        store(scored, width, (g[0], g[1] + at_width((vectors, chart.scores), width)[1]))
    return outer, counts


def _joined(into: Scaled, left: Scaled, right: Scaled) -> Scaled:
    """What spans get as left children (all but the last) and as right children (all but the first), added up."""
    vectors, scale = into
    scale[:, :-1] = left[1]
    scale[:, 1:] = torch.maximum(scale[:, 1:], right[1])
    finite = torch.where(scale == -torch.inf, 0, scale)
    vectors[:, :-1] = left[0] * (left[1] - finite[:, :-1]).exp().to(vectors.dtype)[..., None]
    vectors[:, 1:] += right[0] * (right[1] - finite[:, 1:]).exp().to(vectors.dtype)[..., None]
    return vectors, scale


def count(a: Tensor, b: Tensor, per_sentence: bool) -> Tensor:
    """The sum of outer products a_s b_s of vectors (B, S, k) and (B, S, l): (B, k, l), or (k, l) over the batch."""
    return a.mT @ b if per_sentence else a.flatten(0, 1).T @ b.flatten(0, 1)
