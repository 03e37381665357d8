"""The bracketings of one sentence as a graph to walk from the top."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from ramify.structures.bracketings import reference
from ramify.structures.derivations.forest import TOP, Edges, Forest, Node, as_array
from ramify.structures.log_space import Semiring


class BracketingForest(Forest):
    """One symbol over every span; an edge below it is a split."""

    def __init__(self, log_weights: Tensor, semiring: Semiring) -> None:
        """`log_weights` (N+1, N+1) of the spans of a sentence of N words."""
        words = log_weights.diagonal(1)[:, None]
        super().__init__(log_weights.new_zeros(1), words, len(words), semiring)
        chart = reference.chart(log_weights[None], semiring)
        self.symbols = {width: as_array(found.mT) for width, found in chart.items()}

    def top(self) -> Edges:
        """The whole sentence, which may be a single word."""
        return Edges(self.inner(0, self.length), lambda _: (self.symbol(0, self.length, 0),))

    def edges(self, node: Node) -> Edges:
        """See `Forest`."""
        if node == TOP:
            return self.top()
        i, j = node.i, node.j
        weights = [self.inner(i, k) + self.inner(k, j) for k in range(i + 1, j)]
        return Edges(
            np.concatenate(weights), lambda edge: (self.symbol(i, i + 1 + edge, 0), self.symbol(i + 1 + edge, j, 0))
        )
