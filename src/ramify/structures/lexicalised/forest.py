"""The derivations of one sentence under lexicalised rules, as a graph to walk from the top."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import torch

from ramify.structures.derivations.forest import TOP, Array, Edges, Forest, Node, as_array
from ramify.structures.lexicalised import reference
from ramify.structures.lexicalised.distribution import LEFT, RIGHT, BilexicalPCFG, LexicalisedPCFG
from ramify.structures.log_space import Semiring

Kind = TypeVar("Kind", bound=LexicalisedPCFG)


class LexicalisedForest(Forest, Generic[Kind]):
    """Base class of forests of lexicalised rules: symbols with heads, and the charts of the reference."""

    @torch.no_grad()
    def __init__(self, pcfg: Kind, semiring: Semiring) -> None:
        """`pcfg` is a batch of one sentence without padding, in float64."""
        found = reference.chart(pcfg, pcfg.scores(), semiring)
        super().__init__(pcfg.start()[0].T, found.symbols[1][0, :, 0], pcfg.longest, semiring)
        self.pcfg = pcfg
        self.with_heads, self.as_heads, self.by_head, self.others = (
            {width: as_array(table[0]) for width, table in by_width.items()}
            for by_width in (found.symbols, found.heads, found.by_head, found.others)
        )

    def top(self) -> Edges:
        """One edge for each symbol and head of the whole sentence; none for a single word, which has no derivation."""
        N, n = self.length, self.nonterminals
        if N < 2:
            return Edges(np.full(1, -np.inf), lambda _: ())
        weights = self.root.T + self.with_heads[N][0]  # (N, n)
        return Edges(weights.ravel(), lambda e: (Node("symbol", 0, N, e % n, e // n),))

    def edges(self, node: Node) -> Edges:
        """See `Forest`."""
        if node == TOP:
            return self.top()
        return self.rules(node) if node.kind == "symbol" else self.choices(node)

    @abstractmethod
    def rules(self, node: Node) -> Edges:
        """The rules and splits below a symbol with its head."""

    @abstractmethod
    def choices(self, node: Node) -> Edges:
        """The open choice for a child: its symbol, its head word, or both."""

    def splits(self, node: Node) -> list[tuple[Array, Array, int]]:
        """For each split what the head child (x,) and the other child (y,) are worth, and the other's side."""
        _, i, j, _, p = node
        found = []
        for k in range(i + 1, j):
            side = RIGHT if p < k else LEFT
            (a, b), (c, d) = ((i, k), (k, j)) if side == RIGHT else ((k, j), (i, k))
            found.append((self.as_heads[b - a][a, p - a], self.others[d - c][c, side], side))
        return found

    def ordered(
        self, node: Node, split: int, head: Callable[..., Node], other: Callable[..., Node]
    ) -> tuple[Node, ...]:
        """The two children of a split, the left one first; both are made from their fence posts."""
        k = node.i + 1 + split
        if node.head < k:
            return head(node.i, k), other(k, node.j)
        return other(node.i, k), head(k, node.j)


class BilexicalForest(LexicalisedForest[BilexicalPCFG]):
    """Derivations with an H at every rule: symbol -> split and H -> symbol of the head child, symbol and other head."""

    def __init__(self, pcfg: BilexicalPCFG, semiring: Semiring) -> None:
        super().__init__(pcfg, semiring)
        self.components = as_array(pcfg.components[0])
        self.head_child, self.other_child = as_array(pcfg.head_child), as_array(pcfg.other_child)
        self.of_words = as_array(pcfg.words[0])

    def rules(self, node: Node) -> Edges:
        """See `LexicalisedForest`."""
        p, r = node.head, self.head_child.shape[1]
        weights = np.stack([head + other for head, other, _ in self.splits(node)]) + self.components[p, node.value]

        def children(edge: int) -> tuple[Node, ...]:
            split, h = divmod(edge, r)
            side = "right" if p < node.i + 1 + split else "left"
            return self.ordered(
                node, split, lambda i, j: Node("head", i, j, h, p), lambda i, j: Node(side, i, j, h)
            )  # fmt: skip

        return Edges(weights.ravel(), children)

    def choices(self, node: Node) -> Edges:
        """See `LexicalisedForest`."""
        kind, i, j, h, p = node
        n = self.nonterminals
        numbers = slice(n, None) if j == i + 1 else slice(n)
        symbols = self.with_heads[j - i][i]  # (w, n or p)
        if kind == "head":
            weights = symbols[p - i] + self.head_child[numbers, h]
            return Edges(weights, lambda b: (Node("symbol", i, j, b, p),))
        table = self.other_child[RIGHT if kind == "right" else LEFT, numbers, h]
        weights = symbols + table + self.of_words[i:j, h, None]
        count = weights.shape[1]
        return Edges(weights.ravel(), lambda e: (Node("symbol", i, j, e % count, i + e // count),))


class UnilexicalForest(LexicalisedForest[Any]):
    """Derivations are labelled trees with heads: symbol -> split and symbols of both children -> head of the other."""

    def __init__(self, pcfg: Any, semiring: Semiring) -> None:
        super().__init__(pcfg, semiring)
        self.log_rules = as_array(pcfg.rules[0])

    def rules(self, node: Node) -> Edges:
        """See `LexicalisedForest`."""
        p, m, n = node.head, self.log_rules.shape[-1], self.nonterminals
        weights = np.stack(
            [
                head[:, None] + other + self.log_rules[p, node.value, side]
                for head, other, side in self.splits(node)
            ]
        )  # fmt: skip

        def number(i: int, j: int, symbol: int) -> int:
            return symbol - n if j == i + 1 else symbol

        def children(edge: int) -> tuple[Node, ...]:
            split, pair = divmod(edge, m * m)
            b, c = divmod(pair, m)
            return self.ordered(
                node,
                split,
                lambda i, j: Node("symbol", i, j, number(i, j, b), p),
                lambda i, j: Node("other", i, j, number(i, j, c)),
            )

        return Edges(weights.ravel(), children)

    def choices(self, node: Node) -> Edges:
        """See `LexicalisedForest`."""
        _, i, j, c, _ = node
        symbol = c + self.nonterminals if j == i + 1 else c
        weights = self.by_head[j - i][i, :, RIGHT, symbol]  # (w,), the same on both sides
        return Edges(weights, lambda q: (Node("symbol", i, j, c, i + q),))
