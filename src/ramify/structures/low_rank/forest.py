"""The derivations of one sentence under low-rank rules, as a graph to walk from the top."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ramify.structures.derivations.forest import TOP, Edges, Forest, Node, as_array
from ramify.structures.log_space import Semiring
from ramify.structures.low_rank.distribution import LowRankPCFG


class RankForest(Forest):
    """Derivations with the rank component of every rule: symbol -> component -> split -> symbols of the children."""

    def __init__(self, pcfg: LowRankPCFG, semiring: Semiring) -> None:
        scores = pcfg.scores()[0]
        words = pcfg.words[0] + scores.diagonal(1)[:, None]
        super().__init__(pcfg.root, words, pcfg.longest, semiring)
        self.head = None if pcfg.head is None else as_array(pcfg.head)
        self.left, self.right = as_array(pcfg.left), as_array(pcfg.right)
        n, N, matmul = self.nonterminals, self.length, semiring.matmul
        word_left, word_right = (matmul(words, table[n:]) for table in (pcfg.left, pcfg.right))
        left, right = {1: word_left}, {1: word_right}
        rank: dict[int, Tensor] = {}
        for width in range(2, N + 1):
            starts = N - width + 1
            splits = [left[s][:starts] + right[width - s][s : s + starts] for s in range(1, width)]
            rank[width] = semiring.add(torch.stack(splits), 0)
            symbols = rank[width] if pcfg.head is None else matmul(rank[width], pcfg.head.T)
            symbols = symbols + scores.diagonal(width)[:, None]
            left[width], right[width] = matmul(symbols, pcfg.left[:n]), matmul(symbols, pcfg.right[:n])
            self.symbols[width] = as_array(symbols)
        self.rank, self.as_left, self.as_right = (
            {width: as_array(found) for width, found in each.items()} for each in (rank, left, right)
        )

    def edges(self, node: Node) -> Edges:
        """See `Forest`."""
        if node == TOP:
            return self.top()
        kind, i, j, value, _ = node
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
