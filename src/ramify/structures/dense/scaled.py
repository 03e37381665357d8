"""Inside and outside for dense rules with scaled probabilities, on any device: see README.md in this folder."""

from __future__ import annotations

import torch
from torch import Tensor

from ramify.structures.dense.chart import Blocks, Chart, count
from ramify.structures.dense.distribution import DensePCFG
from ramify.structures.scaling import (
    Scaled,
    at_width,
    empty_chart,
    normalise,
    posterior_weights,
    relative,
    span_family,
    store,
)


def pieces(pcfg: DensePCFG) -> list[slice]:
    """The batch in one piece: its products are large, and torch divides them among threads."""
    return [slice(len(pcfg.words))]


def inside_pass(blocks: Blocks, pcfg: DensePCFG) -> Chart:
    """All inside vectors, from the words to the whole sentences."""
    chart = Chart.of_words(blocks, pcfg)
    symbols, N, dtype = chart.symbols, pcfg.words.shape[1], pcfg.words.dtype
    for width in range(2, N + 1):
        starts = N - width + 1
        if width == 2:
            x, scale = chart.pairs_of_words()
        else:
            # Splits after s = 1 .. width-1 words: left child (i, s), right child (i+s, width-s).
            left, left_scale = span_family(symbols, (starts, width - 1), (N, 1), 0)
            right, right_scale = span_family(symbols, (starts, width - 1), (N, N - 1), N + width - 2)
            weights, scale = relative(left_scale + right_scale, dtype)
            below = (chart.word_left[:, :starts] @ right[:, :, 0, :, None]).squeeze(-1)
            x = weights[:, :, :1] * below
            below = (chart.word_right[:, width - 1 :] @ left[:, :, -1, :, None]).squeeze(-1)
            x = x + weights[:, :, -1:] * below
        if width > 3:
            pairs = (left * weights[..., None])[:, :, 1:-1].mT @ right[:, :, 1:-1]
            x = x + pairs.flatten(2) @ chart.blocks.parents
        store(symbols, width, normalise(x, scale + at_width((symbols[0], chart.scores), width)[1]))
    return chart.complete()


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
        complete = chart.lengths == width  # the whole sentence is below a start rule
        start, start_scale = normalise(blocks.root, scales.new_zeros(blocks.root.shape[:-1]))
        g[0][complete, 0] = start if start.dim() == 1 else start[complete]
        g[1][complete, 0] = start_scale if start.dim() == 1 else start_scale[complete]
        store(outer, width, g)
        store(scored, width, (g[0], g[1] + at_width((vectors, chart.scores), width)[1]))
    return outer, counts


def _joined(into: Scaled, left: Scaled, right: Scaled) -> Scaled:
    """The sum of the contributions to left children (all spans but the last) and right children (all but the first)."""
    vectors, scale = into
    scale[:, :-1] = left[1]
    scale[:, 1:] = torch.maximum(scale[:, 1:], right[1])
    finite = torch.where(scale == -torch.inf, 0, scale)
    vectors[:, :-1] = left[0] * (left[1] - finite[:, :-1]).exp().to(vectors.dtype)[..., None]
    vectors[:, 1:] += right[0] * (right[1] - finite[:, 1:]).exp().to(vectors.dtype)[..., None]
    return vectors, scale
