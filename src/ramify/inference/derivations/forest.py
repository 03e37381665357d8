"""All derivations of one sentence as a graph to walk from the top.

A node stands for a choice still to be made. Its edges are the alternatives, each with the log-weight of all
derivations that take it (or, in the semiring `BEST`, of the best of them), and lead to the nodes below. Following the
heaviest edges gives the best derivation, drawing edges by weight a sample of the posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ramify.inference.dense import reference
from ramify.inference.log_space import SUM, Semiring
from ramify.inference.rules import DenseRules, LowRankRules, Rules

Array = NDArray[np.float64]


class Node(NamedTuple):
    """A symbol over a span, or in rank space a component of the rank, below (`rank`) or beside (`left`, `right`) it."""

    kind: str
    i: int
    j: int
    value: int


TOP = Node("top", 0, 0, 0)


@dataclass(frozen=True)
class Edges:
    """The alternatives of a node."""

    log_weights: Array
    children: Callable[[int], tuple[Node, ...]]
    """What edge number e leads to"""


class Forest:
    """What dense and low-rank forests share: start rules, spans and words; children are numbered as in the rules."""

    def __init__(self, rules: Rules, semiring: Semiring) -> None:
        self.length, self.nonterminals = int(rules.lengths[0]), rules.nonterminals
        self.semiring = semiring
        self.root = _array(rules.root)
        self.words = _array(rules.words[0])
        self.symbols: dict[int, Array] = {}
        """width -> (starts, n)"""

    def total(self, log_weights: Array) -> float:
        """All alternatives together."""
        return float(self.semiring.add(torch.from_numpy(log_weights), 0))

    def inner(self, i: int, j: int) -> Array:
        """The log-weights of the symbols over a span: of n nonterminals, or p preterminals over a word."""
        found: Array = self.words[i] if j == i + 1 else self.symbols[j - i][i]
        return found

    def symbol(self, i: int, j: int, number: int) -> Node:
        """A nonterminal, or a preterminal where the span is a word."""
        return Node("symbol", i, j, number)

    def top(self) -> Edges:
        """One edge for each start rule; none for a single word, which has no derivation."""
        if self.length < 2:
            return Edges(np.full(1, -np.inf), lambda _: ())
        weights = self.root + self.inner(0, self.length)
        return Edges(weights, lambda a: (self.symbol(0, self.length, a),))

    def edges(self, node: Node) -> Edges:
        """The alternatives below a node that is no word."""
        raise NotImplementedError


class DenseForest(Forest):
    """An edge below a symbol is a split with the symbols of both children."""

    def __init__(self, rules: DenseRules, semiring: Semiring) -> None:
        super().__init__(rules, semiring)
        self.binary = _array(rules.binary)
        scores = rules.words.new_zeros(1, self.length + 1, self.length + 1)
        _, symbols = reference.chart(rules, scores, rules.words, semiring)
        self.symbols = {width: _array(found[0]) for width, found in symbols.items()}

    def edges(self, node: Node) -> Edges:
        """See `Forest`."""
        if node == TOP:
            return self.top()
        _, i, j, a = node
        n = self.nonterminals
        kinds = (slice(n, None), slice(None, n))
        weights = []
        for k in range(i + 1, j):
            rules = self.binary[a, kinds[k > i + 1], kinds[k < j - 1]]
            weights.append((rules + self.inner(i, k)[:, None] + self.inner(k, j)).ravel())
        ends = np.cumsum([len(part) for part in weights])

        def children(edge: int) -> tuple[Node, ...]:
            split = int(np.searchsorted(ends, edge, side="right"))
            k = i + 1 + split
            place = edge - (int(ends[split - 1]) if split else 0)
            b, c = divmod(place, len(self.inner(k, j)))
            return self.symbol(i, k, b), self.symbol(k, j, c)

        return Edges(np.concatenate(weights), children)


class RankForest(Forest):
    """Derivations with the rank component of every rule: symbol -> component -> split -> symbols of the children."""

    def __init__(self, rules: LowRankRules, semiring: Semiring) -> None:
        super().__init__(rules, semiring)
        self.head = None if rules.head is None else _array(rules.head)
        self.left, self.right = _array(rules.left), _array(rules.right)
        n, N, matmul = self.nonterminals, self.length, semiring.matmul
        word_left, word_right = (matmul(rules.words[0], table[n:]) for table in (rules.left, rules.right))
        left, right = {1: word_left}, {1: word_right}
        rank: dict[int, Tensor] = {}
        for width in range(2, N + 1):
            starts = N - width + 1
            splits = [left[s][:starts] + right[width - s][s : s + starts] for s in range(1, width)]
            rank[width] = semiring.add(torch.stack(splits), 0)
            symbols = rank[width] if rules.head is None else matmul(rank[width], rules.head.T)
            left[width], right[width] = matmul(symbols, rules.left[:n]), matmul(symbols, rules.right[:n])
            self.symbols[width] = _array(symbols)
        self.rank, self.as_left, self.as_right = (
            {width: _array(found) for width, found in each.items()} for each in (rank, left, right)
        )

    def edges(self, node: Node) -> Edges:
        """See `Forest`."""
        if node == TOP:
            return self.top()
        kind, i, j, value = node
        if kind == "symbol":
            if self.head is None:
                return Edges(self.rank[j - i][i, [value]], lambda _: (Node("rank", i, j, value),))
            return Edges(self.head[value] + self.rank[j - i][i], lambda l: (Node("rank", i, j, l),))  # noqa: E741
        if kind == "rank":
            parts = [self.as_left[k - i][i, value] + self.as_right[j - k][k, value] for k in range(i + 1, j)]
            return Edges(
                np.array(parts), lambda s: (Node("left", i, i + 1 + s, value), Node("right", i + 1 + s, j, value))
            )
        table = (self.left if kind == "left" else self.right)[:, value]
        n = self.nonterminals
        rules = table[n:] if j == i + 1 else table[:n]
        return Edges(rules + self.inner(i, j), lambda symbol: (self.symbol(i, j, symbol),))


def forest_of(rules: Rules, semiring: Semiring = SUM) -> Forest:
    """The derivations of the only sentence of a batch; of low-rank rules with their rank components."""
    N = int(rules.lengths[0])
    alone = replace(rules, words=rules.words[:, :N]).to(torch.float64).to("cpu")
    with torch.no_grad():
        return DenseForest(alone, semiring) if isinstance(alone, DenseRules) else RankForest(alone, semiring)


def _array(tensor: Tensor) -> Array:
    return tensor.detach().cpu().double().numpy()
