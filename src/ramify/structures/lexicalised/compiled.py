"""The CPU path for bilexical rules: both passes over a sentence in one compiled call each, sentences spread over cores.

The derivation is in README.md in this folder. Only the derivatives by p(H | A, w), one large product for every word,
and what is small are left to torch.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from ramify.runtime import threads
from ramify.runtime.fast_exp import exp
from ramify.runtime.padding import padded_size
from ramify.runtime.threads import torch_on_one_core
from ramify.structures.distribution import Marginals
from ramify.structures.lexicalised import kernels, outside_kernels
from ramify.structures.lexicalised.distribution import BilexicalPCFG

Array = NDArray[Any]


def _padded(x: Tensor) -> Tensor:
    """(..., r): zeros after the last number of each row, in contiguous memory."""
    padded = x.new_zeros(*x.shape[:-1], padded_size(x.shape[-1], x.dtype))
    padded[..., : x.shape[-1]] = x
    return padded


@dataclass(frozen=True)
class Tables:
    """The rules that all sentences share, as probabilities; here and in charts r is the rank padded to whole blocks."""

    head_child: Tensor
    """(m, r)"""
    other_child: Tensor
    """(2, m, r)"""
    nonterminals: int
    rank: int
    """Without padding"""

    @classmethod
    def of(cls, pcfg: BilexicalPCFG) -> Tables:
        """The rules of a distribution."""
        return cls(_padded(exp(pcfg.head_child)), _padded(exp(pcfg.other_child)), pcfg.nonterminals, pcfg.rank)

    @cached_property
    def of_phrases(self) -> tuple[Array, Array]:
        """(n, r) and (2, n, r), of nonterminals"""
        n = self.nonterminals
        return self.head_child[:n].numpy(), self.other_child[:, :n].contiguous().numpy()

    @cached_property
    def of_tags(self) -> tuple[Tensor, Tensor]:
        """(p, r) and (2, p, r)"""
        n = self.nonterminals
        return self.head_child[n:], self.other_child[:, n:]

    @cached_property
    def tag_sums(self) -> tuple[Array, Array]:
        """(r,) and (2, r): those of preterminals, summed over them"""
        head, other = self.of_tags
        return head.sum(0).numpy(), other.sum(1).numpy()


@dataclass(frozen=True)
class Places:
    """The places of the spans and heads of a sentence of N words in its chart (kernels.py)."""

    length: int

    @staticmethod
    @lru_cache(128)
    def of(length: int) -> Places:
        """The places of all sentences of this length."""
        return Places(length)

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """(N + 1,) the first row of each head, then the number of rows"""
        p = np.arange(self.length)
        return np.concatenate([[0], np.cumsum((p + 1) * (self.length - p))])

    @cached_property
    def spans(self) -> NDArray[np.int64]:
        """(N + 1,) the number of the first span of each start, then the number of spans"""
        return np.concatenate([[0], np.cumsum(np.arange(self.length, 0, -1))])

    @cached_property
    def of_rows(self) -> NDArray[np.int64]:
        """(rows, 2) the fence posts of each row's span"""
        N = self.length
        grids = (np.mgrid[: p + 1, p + 1 : N + 1].reshape(2, -1) for p in range(N))
        return np.concatenate(list(grids), 1).T

    def over_spans(self, rows: Tensor) -> Tensor:
        """(N+1, N+1, ...) the sums of rows (rows, ...) over the heads of each span."""
        table = rows.new_zeros(self.length + 1, self.length + 1, *rows.shape[1:])
        i, j = torch.from_numpy(self.of_rows).T
        return table.index_put_((i, j), rows, accumulate=True)

    def whole(self) -> NDArray[np.int64]:
        """(N,) the rows of the whole sentence, one for each head"""
        return self.first[:-1] + self.length - np.arange(self.length) - 1


@dataclass
class Chart:
    """The results of the inside pass for one sentence; matrices have one row for every span and head."""

    places: Places
    tables: Tables
    scores: Array
    """(N+1, N+1) float64"""
    components: Tensor
    """(N, n, r) p(H | A, w_p)"""
    words: Array
    """(N, r) p(w_q | H), divided by exp of `word_scale`"""
    word_scale: Array
    root: Tensor
    """(N, n), divided by exp of `root_scale`"""
    root_scale: Array
    symbols: Tensor
    symbol_scale: Array
    mixed: Tensor
    """(rows, r) the sum over splits of head child times other child"""
    mixed_scale: Array
    heads: Array
    """(rows, r)"""
    head_scale: Array
    others: Array
    """(2 spans, r)"""
    other_scale: Array
    log_z: float = -math.inf


def _scaled(log_probabilities: Tensor) -> tuple[Tensor, Array]:
    """Rows with largest entry 1 and their log scales, in float64."""
    peak = log_probabilities.amax(-1)
    return exp(log_probabilities - torch.where(peak == -torch.inf, 0, peak)[:, None]), peak.double().numpy()


def inside_of(tables: Tables, pcfg: BilexicalPCFG) -> Chart:
    """The chart of the only sentence of a batch, which has no padding."""
    N, n = pcfg.longest, pcfg.nonterminals
    places = Places.of(N)
    rows, spans = int(places.first[-1]), int(places.spans[-1])
    relative_words, word_scale = _scaled(pcfg.words[0])
    root, root_scale = _scaled(pcfg.start()[0])
    words = like = _padded(relative_words)
    r = words.shape[1]
    chart = Chart(
        places, tables, pcfg.scores()[0].double().contiguous().numpy(), _padded(exp(pcfg.components[0])),
        words.numpy(), word_scale, root, root_scale, like.new_empty(rows, n), np.empty(rows),
        like.new_empty(rows, r), np.empty(rows), like.new_empty(rows, r).numpy(), np.empty(rows),
        like.new_empty(2 * spans, r).numpy(), np.empty(2 * spans),
    )  # fmt: skip
    kernels.inside(
        N, places.first, places.spans, chart.scores, chart.components.numpy(), *tables.of_phrases, *tables.tag_sums,
        chart.words, word_scale, chart.symbols.numpy(), chart.symbol_scale, chart.mixed.numpy(), chart.mixed_scale,
        chart.heads, chart.head_scale, chart.others, chart.other_scale,
    )  # fmt: skip
    if N > 1:
        whole = places.whole()
        mass = (chart.symbols[whole] * root).sum(-1).double().log().numpy()
        chart.log_z = float(np.logaddexp.reduce(mass + chart.symbol_scale[whole] + root_scale))
    return chart


@dataclass
class Outside:
    """Derivatives of log p(w) of one sentence: by probabilities of rules, else expected counts and posteriors."""

    head_child: Tensor
    """(n, r) of phrases, by probabilities"""
    other_child: Tensor
    """(2, n, r) of phrases, by probabilities"""
    words: Tensor
    """(N, r)"""
    leaf_heads: Tensor
    """(N, r)"""
    leaf_others: Tensor
    """(N, 2, r)"""
    symbols: Tensor
    """(rows, n) posteriors of symbols with heads over spans of two words or more"""
    above: Tensor
    """(rows, n) outside weights of the same, in units in which `Chart.mixed` is inside and p(w) is one"""
    arcs: Tensor
    """(N+1, N), or (0, N)"""

    def tags(self, tables: Tables) -> Tensor:
        """(N, p) posteriors"""
        head, other = tables.of_tags
        return self.leaf_heads @ head.T + self.leaf_others.flatten(1) @ other.transpose(0, 1).flatten(1).T

    def labels(self, places: Places) -> Tensor:
        """(N+1, N+1, n) posteriors"""
        return places.over_spans(self.symbols)

    def spans(self, tables: Tables, places: Places) -> Tensor:
        """(N+1, N+1) posteriors"""
        table = places.over_spans(self.symbols.sum(-1))
        head, other = (torch.from_numpy(x) for x in tables.tag_sums)
        table.diagonal(1).copy_(self.leaf_heads @ head + self.leaf_others.flatten(1) @ other.flatten())
        return table


def outside_of(chart: Chart, with_arcs: bool = False) -> Outside:
    """One outside pass; zeros for a sentence without a tree."""
    places, tables, N, r = chart.places, chart.tables, chart.places.length, chart.heads.shape[1]
    n, like = tables.nonterminals, chart.mixed
    g_symbols, g_mixed = torch.zeros_like(chart.symbols), torch.empty_like(chart.mixed)
    g_symbol_scale, g_mixed_scale = (np.full(len(g_symbols), -np.inf) for _ in range(2))
    result = Outside(
        like.new_zeros(n, r), like.new_zeros(2, n, r), like.new_zeros(N, r), like.new_zeros(N, r),
        like.new_zeros(N, 2, r), torch.zeros_like(g_symbols), g_symbols, like.new_zeros(N + 1 if with_arcs else 0, N),
    )  # fmt: skip
    if chart.log_z == -math.inf:
        return result
    bound = math.log(torch.finfo(like.dtype).max) - 10
    outside_kernels.outside(
        N, places.first, places.spans, chart.scores, chart.components.numpy(), *tables.of_phrases, tables.tag_sums[1],
        chart.words, chart.word_scale, chart.symbols.numpy(), chart.symbol_scale, chart.heads, chart.head_scale,
        chart.others, chart.other_scale, chart.root.numpy(), chart.root_scale, chart.log_z, bound,
        g_symbols.numpy(), g_symbol_scale, g_mixed.numpy(), g_mixed_scale, result.head_child.numpy(),
        result.other_child.numpy(), result.words.numpy(), result.leaf_heads.numpy(), result.leaf_others.numpy(),
        result.arcs.numpy(),
    )  # fmt: skip

    def weights(inside: Array) -> Tensor:
        exponent = np.minimum(inside + g_symbol_scale - chart.log_z, bound)
        return torch.from_numpy(np.exp(exponent)).to(like.dtype)[:, None]

    result.symbols = chart.symbols * g_symbols * weights(chart.symbol_scale)
    result.above.mul_(weights(chart.mixed_scale))
    if with_arcs:
        result.arcs[0] = result.symbols[places.whole()].sum(-1)
    return result


def _pieces(pcfg: BilexicalPCFG) -> list[int]:
    """The sentences, longest first, so that no core is left with a long one at the end."""
    return torch.argsort(pcfg.lengths, descending=True, stable=True).tolist()


def _charts(pcfg: BilexicalPCFG) -> list[Chart]:
    tables = Tables.of(pcfg)
    order = _pieces(pcfg)
    found = threads.in_pieces(lambda b: inside_of(tables, pcfg.sentence(b).without_padding()), order)
    return [chart for _, chart in sorted(zip(order, found, strict=True))]


class _Inside(torch.autograd.Function):
    """log p(w) with the outside pass as its backward pass; gradients of log-probabilities are expected counts."""

    @staticmethod
    def forward(ctx: Any, start: Tensor, *inputs: Tensor) -> Tensor:
        pcfg = BilexicalPCFG(start.new_zeros(start.shape[-1]), start, *inputs)
        ctx.on_one_core = torch.get_num_threads() == 1  # the backward pass runs like the forward pass
        ctx.shapes = [x.shape for x in (start, *inputs)]
        ctx.charts = _charts(pcfg)
        return start.new_tensor([chart.log_z for chart in ctx.charts])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        with torch_on_one_core() if ctx.on_one_core else nullcontext():
            return _gradients(ctx.charts, upstream, ctx.shapes)


def _gradients(charts: list[Chart], upstream: Tensor, shapes: list[torch.Size]) -> tuple[Tensor | None, ...]:
    """Gradients by the inputs of `_Inside`."""
    start, components, head_child, other_child, words, _, scores = (upstream.new_zeros(shape) for shape in shapes)
    tables = charts[0].tables
    n, rank = tables.nonterminals, tables.rank

    def run(place: tuple[int, Chart]) -> tuple[Tensor, ...]:
        b, chart = place
        N, factor, found = chart.places.length, upstream[b], outside_of(chart)
        start[b, :N] = factor * found.symbols[chart.places.whole()]
        words[b, :N] = factor * found.words[:, :rank]
        scores[b, : N + 1, : N + 1] = factor * found.spans(tables, chart.places)
        sizes = np.diff(chart.places.first).tolist()
        by_head = zip(found.above.split(sizes), chart.mixed[:, :rank].split(sizes), components[b], strict=False)
        for above, mixed, counts in by_head:
            torch.mm(above.T, mixed, out=counts)
        components[b, :N].mul_(chart.components[..., :rank]).mul_(factor)
        of_tags = found.leaf_heads.sum(0), found.leaf_others.sum(0)
        return tuple(factor * each[..., :rank] for each in (found.head_child, found.other_child, *of_tags))

    order = sorted(enumerate(charts), key=lambda each: -each[1].places.length)
    found = dict(zip((b for b, _ in order), threads.in_pieces(run, order), strict=True))
    for b in range(len(charts)):  # in a fixed order: the same sums for any number of cores
        phrase_head, phrase_other, tag_head, tag_other = found[b]
        head_child[:n] += phrase_head
        head_child[n:] += tag_head
        other_child[:, :n] += phrase_other
        other_child[:, n:] += tag_other[:, None]
    return (
        start,
        components,
        head_child.mul_(tables.head_child[:, :rank]),
        other_child.mul_(tables.other_child[..., :rank]),
        words,
        None,
        scores,
    )


def inside(pcfg: BilexicalPCFG) -> Tensor:
    """log p(w) of each sentence (B,)."""
    with torch_on_one_core():
        result: Tensor = _Inside.apply(  # type: ignore[no-untyped-call]
            pcfg.start(), pcfg.components, pcfg.head_child, pcfg.other_child, pcfg.words, pcfg.lengths, pcfg.scores()
        )
        return result


@torch.no_grad()
def marginals(pcfg: BilexicalPCFG) -> Marginals:
    """Posteriors of spans, labels, tags and arcs from one inside and one outside pass."""
    B, N, _ = pcfg.words.shape
    tables, spans, tags = Tables.of(pcfg), pcfg.root.new_zeros(B, N + 1, N + 1), pcfg.root.new_zeros(B, N)
    result = Marginals(
        pcfg.root.new_full((B,), -torch.inf), spans, torch.zeros_like(spans, dtype=torch.long), torch.zeros_like(spans),
        torch.zeros_like(tags, dtype=torch.long), tags, pcfg.root.new_zeros(B, N + 1, N),
    )  # fmt: skip

    def run(b: int) -> None:
        for name, value in _marginals_of(tables, pcfg.sentence(b).without_padding()).items():
            whole = getattr(result, name)[b]
            whole[tuple(slice(size) for size in value.shape)] = value

    with torch_on_one_core():
        threads.in_pieces(run, _pieces(pcfg))
    return result


@torch.no_grad()
def symbol_posteriors(pcfg: BilexicalPCFG) -> tuple[Tensor, Tensor]:
    """The posterior of every nonterminal over every span (B, N+1, N+1, n), and of every tag (B, N, p)."""
    B, N, _ = pcfg.words.shape
    tables = Tables.of(pcfg)
    labels, tags = pcfg.root.new_zeros(B, N + 1, N + 1, pcfg.nonterminals), pcfg.root.new_zeros(B, N, pcfg.preterminals)

    def run(b: int) -> None:
        chart = inside_of(tables, pcfg.sentence(b).without_padding())
        found, length = outside_of(chart), chart.places.length
        labels[b, : length + 1, : length + 1] = found.labels(chart.places)
        tags[b, :length] = found.tags(tables)

    with torch_on_one_core():
        threads.in_pieces(run, _pieces(pcfg))
    return labels, tags


def _marginals_of(tables: Tables, pcfg: BilexicalPCFG) -> dict[str, Tensor]:
    """The fields of `Marginals` for one sentence."""
    chart = inside_of(tables, pcfg)
    found = outside_of(chart, with_arcs=True)
    label = found.labels(chart.places).max(-1)
    tag = found.tags(tables).max(-1)
    return {
        "log_partition": pcfg.root.new_tensor(chart.log_z),
        "spans": found.spans(tables, chart.places),
        "best_label": label.indices,
        "best_label_posterior": label.values,
        "best_tag": tag.indices,
        "best_tag_posterior": tag.values,
        "arcs": found.arcs,
    }
