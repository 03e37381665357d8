"""The CPU path: matrix products by torch, everything around them in compiled loops.

It fills the same charts as scaled.py with a few calls per width instead of dozens, because calls take most of the time
of a small grammar. Each core takes some of the sentences.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from ramify.runtime import threads
from ramify.structures.dense import kernels
from ramify.structures.dense.chart import Blocks, Chart
from ramify.structures.dense.distribution import DensePCFG
from ramify.structures.scaling import Scaled, empty_chart, normalise


def pieces(pcfg: DensePCFG) -> list[slice]:
    """The batch in pieces of whole sentences, one per thread, if there is enough work."""
    B, N, p = pcfg.words.shape
    n = pcfg.nonterminals
    work = B * N * n * (N * n * (n + N / 3) + 4 * p * n + 2 * p * p)
    count = min(B, threads.worth(work))
    return [slice(a, b) for a, b in pairwise(B * i // count for i in range(count + 1))]


def inside_pass(blocks: Blocks, pcfg: DensePCFG) -> Chart:
    """All inside vectors, from the words to the whole sentences."""
    chart = Chart.of_words(blocks, pcfg)
    B, N, _, n = chart.symbols[0].shape
    cells, word_rules, scores = _cells(chart.symbols), _word_rules(chart), chart.scores.flatten().numpy()
    room = _room(chart, n * n)
    for width in range(2, N + 1):
        pairs, found, scale = (x[: B * (N - width + 1)] for x in room)
        if width == 2:
            x, x_scale = chart.pairs_of_words()
            found, scale = x.flatten(0, 1), x_scale.flatten()
        else:
            into = pairs.unflatten(1, (n, n)).numpy(), found.numpy(), scale.numpy()
            kernels.sum_splits(width, N, *cells, *word_rules, *into)
        if width > 3:
            _add_products(found, pairs, chart.blocks.parents)
        kernels.store_inside(width, N, found.numpy(), scale.numpy(), scores, *cells)
    return chart.complete()


def outside_pass(chart: Chart, upstream: Tensor | None = None) -> tuple[Scaled, Tensor | None]:
    """The outside vectors of all spans of two words or more (B, N, N, n).

    With `upstream` (B,) also the gradient of sum(upstream * log p(w)) by `blocks.left`, the rules with two phrases
    below, transposed: (n, n n) [b, ac].
    """
    (vectors, scales), blocks = chart.symbols, chart.blocks
    B, N, _, n = vectors.shape
    outer = empty_chart(B, N, n, vectors, scales)
    scored = torch.full_like(scales, -torch.inf).flatten().numpy()  # its own span score included: what children see
    cells, outer_cells, word_rules = _cells(chart.symbols), _cells(outer), _word_rules(chart)
    children = torch.cat((blocks.left, blocks.right), -2)
    start, start_scale = normalise(blocks.root, scales.new_zeros(blocks.root.shape[:-1]))
    starts = start.expand(B, n).contiguous().numpy(), start_scale.expand(B).contiguous().numpy()
    lengths, scores = chart.lengths.numpy(), chart.scores.flatten().numpy()
    log_z, bound = chart.log_z.numpy(), math.log(torch.finfo(vectors.dtype).max) - 10
    counts = None if upstream is None else blocks.left.new_zeros(*blocks.left.shape[:-2], n, n * n)
    factors = None if upstream is None else upstream.double().contiguous().numpy()
    room, weighed_room = _room(chart, 2 * n * n), vectors.new_empty(B * N, n)
    for width in range(N, 1, -1):
        pairs, found, scale, weighed = (x[: B * (N - width + 1)] for x in (*room, weighed_room))
        into = pairs.unflatten(1, (2, n, n)).numpy(), found.numpy(), scale.numpy()
        kernels.pull_from_parents(width, N, *cells, *word_rules, outer_cells[0], scored, *into)
        if width < N - 1:
            _add_products(found, pairs, children)
            if counts is not None:
                kernels.weigh_inside(width, N, *cells, scale.numpy(), log_z, factors, bound, weighed.numpy())
                _add_counts(counts, weighed, pairs[:, : n * n])
        computed = found.numpy(), scale.numpy(), scores
        kernels.store_outside(width, N, lengths, *starts, *computed, *outer_cells, scored)
    return outer, counts


def _cells(chart: Scaled) -> tuple[NDArray[Any], NDArray[Any]]:
    """Vectors and scales of a chart as arrays with one row per span."""
    return chart[0].flatten(0, 2).numpy(), chart[1].flatten().numpy()


def _word_rules(chart: Chart) -> tuple[NDArray[Any], NDArray[Any]]:
    """The rules with a word before and after a phrase, as arrays with one matrix per word."""
    return chart.word_left.flatten(0, 1).numpy(), chart.word_right.flatten(0, 1).numpy()


def _room(chart: Chart, products: int) -> tuple[Tensor, Tensor, Tensor]:
    """Buffers for the rows of any width: products of two vectors, their results, and the log scale of both."""
    vectors, scales = chart.symbols
    B, N, _, n = vectors.shape
    return vectors.new_empty(B * N, products), vectors.new_empty(B * N, n), scales.new_empty(B * N)


def _add_products(found: Tensor, pairs: Tensor, matrix: Tensor) -> None:
    """found += pairs @ matrix, row by row; the matrix may be one for every sentence."""
    if matrix.dim() == 2:
        found.addmm_(pairs, matrix)
    else:
        found.unflatten(0, (len(matrix), -1)).baddbmm_(pairs.unflatten(0, (len(matrix), -1)), matrix)


def _add_counts(counts: Tensor, a: Tensor, b: Tensor) -> None:
    """counts += the sum of the outer products of the rows of a and b, over the batch or for every sentence."""
    if counts.dim() == 2:
        counts.addmm_(a.T, b)
    else:
        counts.baddbmm_(a.unflatten(0, (len(counts), -1)).mT, b.unflatten(0, (len(counts), -1)))
