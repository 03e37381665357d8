"""The derivations of one sentence under dense rules, as a graph to walk from the top."""

from __future__ import annotations

import numpy as np

from ramify.structures.dense import reference
from ramify.structures.dense.distribution import DensePCFG
from ramify.structures.derivations.forest import TOP, Edges, Forest, Node, as_array
from ramify.structures.log_space import Semiring


class DenseForest(Forest):
    """An edge below a symbol is a split with the symbols of both children."""

    def __init__(self, pcfg: DensePCFG, semiring: Semiring) -> None:
        scores = pcfg.scores()
        words = pcfg.words[0] + scores[0].diagonal(1)[:, None]
        super().__init__(pcfg.root, words, pcfg.longest, semiring)
        self.binary = as_array(pcfg.binary)
        _, symbols = reference.chart(pcfg, scores, pcfg.words, semiring)
        self.symbols = {width: as_array(found[0]) for width, found in symbols.items()}

    def edges(self, node: Node) -> Edges:
        """See `Forest`."""
        if node == TOP:
            return self.top()
        _, i, j, a, _ = node
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
