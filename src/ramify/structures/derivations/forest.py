"""All derivations of one sentence as a graph to walk from the top.

A node represents an open choice. Its edges are the alternatives, each with the log-weight of all
derivations that take it (or, in the semiring `BEST`, of the best of them), and lead to the nodes below. Following the
heaviest edges gives the best derivation, drawing edges by weight a sample of the posterior.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ramify.structures.log_space import Semiring

Array = NDArray[np.float64]


class Node(NamedTuple):
    """A symbol over a span, or in rank space a component of the rank, below (`rank`) or beside (`left`, `right`) it."""

    kind: str
    i: int
    j: int
    value: int
    head: int = -1
    """The position of the head word, if symbols have one"""


TOP = Node("top", 0, 0, 0)


@dataclass(frozen=True)
class Edges:
    """The alternatives of a node."""

    log_weights: Array
    children: Callable[[int], tuple[Node, ...]]
    """The nodes that edge number e leads to"""


class Forest(ABC):
    """Base class of dense and low-rank forests: start rules, spans and words; children are numbered as in the rules."""

    def __init__(self, root: Tensor, words: Tensor, length: int, semiring: Semiring) -> None:
        """`words` (length, p), the scores of single words included."""
        self.length, self.nonterminals = length, len(root)
        self.semiring = semiring
        self.root, self.words = as_array(root), as_array(words)
        self.symbols: dict[int, Array] = {}
        """width -> (starts, n), span scores included"""

    def total(self, log_weights: Array) -> float:
        """All alternatives together."""
        return float(self.semiring.add(torch.from_numpy(log_weights), 0))

    def inner(self, i: int, j: int) -> Array:
        """The log-weights of the symbols over a span: of n nonterminals, or p preterminals over a word."""
        found: Array = self.words[i] if j == i + 1 else self.symbols[j - i][i]
        return found

    def symbol(self, i: int, j: int, number: int) -> Node:
        """A nonterminal, or a preterminal if the span is a word."""
        return Node("symbol", i, j, number)

    def top(self) -> Edges:
        """One edge for each start rule; none for a single word, which has no derivation."""
        if self.length < 2:
            return Edges(np.full(1, -np.inf), lambda _: ())
        weights = self.root + self.inner(0, self.length)
        return Edges(weights, lambda a: (self.symbol(0, self.length, a),))

    @abstractmethod
    def edges(self, node: Node) -> Edges:
        """The alternatives below a node that is not a word."""


def as_array(tensor: Tensor) -> Array:
    """In float64, without gradients."""
    return tensor.detach().cpu().double().numpy()
