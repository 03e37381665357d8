"""Walks through a forest: along one edge at a time, or along the k best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count

import numpy as np
from numpy.typing import NDArray

from ramify.structures.derivations.forest import TOP, Array, Edges, Forest, Node
from ramify.structures.distribution import Tree


def _is_word(node: Node) -> bool:
    return node.kind == "symbol" and node.j == node.i + 1


def _tree(length: int, nodes: list[Node], log_weight: float) -> Tree:
    """From the nodes of a walk in preorder."""
    symbols = [node for node in nodes if node.kind == "symbol"]
    phrases = [node for node in symbols if not _is_word(node)]
    tags = np.zeros(length, np.int64)
    for node in filter(_is_word, symbols):
        tags[node.i] = node.value
    spans = np.array([(node.i, node.j) for node in phrases], np.int32).reshape(-1, 2)
    labels = np.array([node.value for node in phrases], np.int64)
    heads = _heads(length, phrases) if phrases and phrases[0].head >= 0 else None
    return Tree(spans, labels, tags, log_weight, heads)


def _heads(length: int, phrases: list[Node]) -> NDArray[np.int64]:
    """The word that each word depends on, from 1, or 0: the head of the smallest phrase that another word heads."""
    heads = np.zeros(length, np.int64)
    for phrase in phrases:  # in preorder, so that smaller phrases come later
        above = heads[phrase.head]
        heads[phrase.i : phrase.j] = phrase.head + 1
        heads[phrase.head] = above
    return heads


def walk(forest: Forest, choose: Callable[[Array], int]) -> Tree | None:
    """The tree of a derivation in which each edge is chosen by the log-weights; None if there is no derivation."""
    top = forest.edges(TOP)
    log_weight = forest.total(top.log_weights)
    if log_weight == -np.inf:
        return None
    nodes, waiting = [], [TOP]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        if _is_word(node):
            continue
        edges = forest.edges(node)
        edge = choose(edges.log_weights)
        log_weight += float(edges.log_weights[edge]) - forest.total(edges.log_weights)
        waiting.extend(reversed(edges.children(edge)))
    return _tree(forest.length, nodes, log_weight)


def heaviest(log_weights: Array) -> int:
    """The best edge; among equals the first."""
    return int(log_weights.argmax())


def sample_with(rng: np.random.Generator) -> Callable[[Array], int]:
    """Chooses an edge with probability in proportion to its weight."""

    def choose(log_weights: Array) -> int:
        running = np.exp(log_weights - log_weights.max()).cumsum()
        return int(np.searchsorted(running, rng.random() * running[-1], side="right"))

    return choose


@dataclass(frozen=True)
class _Found:
    """One derivation below a node: its edge, and which of each child's derivations it has."""

    log_weight: float
    edge: int
    ranks: tuple[int, ...]


@dataclass
class _State:
    """The derivations below a node, best first, as far as they were requested."""

    edges: Edges | None
    found: list[_Found]
    candidates: list[tuple[float, int, _Found]] = field(default_factory=list)
    seen: set[tuple[int, tuple[int, ...]]] = field(default_factory=set)
    exhausted: bool = False
    """Whether all derivations have been found"""

    def knows(self, rank: int) -> bool:
        """Whether the derivation of this rank is known, if there is one."""
        return rank < len(self.found) or self.exhausted


def _best(weights: Array, k: int) -> NDArray[np.int64]:
    """The places of the k largest, in order of place; of equals the first, which partitioning alone leaves open."""
    if k >= len(weights):
        return np.arange(len(weights))
    least = np.partition(weights, -k)[-k]
    above = np.flatnonzero(weights > least)
    equal = np.flatnonzero(weights == least)[: k - len(above)]
    return np.sort(np.concatenate([above, equal]))


class KBest:
    """The k best derivations, no more of each node than needed (Huang and Chiang 2005, algorithm 3).

    The forest must be of the semiring `BEST`.
    """

    def __init__(self, forest: Forest, k: int) -> None:
        self._forest, self._k = forest, k
        self._states: dict[Node, _State] = {}
        self._order = count()  # keeps equal candidates in insertion order

    def trees(self) -> list[Tree]:
        """At most k, best first."""
        ranked = ((rank, self._ranked(TOP, rank)) for rank in range(self._k))
        return [
            _tree(self._forest.length, self._nodes(rank), found.log_weight)
            for rank, found in ranked
            if found is not None
        ]

    def _nodes(self, rank: int) -> list[Node]:
        nodes, waiting = [], [(TOP, rank)]
        while waiting:
            node, at = waiting.pop()
            nodes.append(node)
            found = self._ranked(node, at)
            edges = self._states[node].edges
            if found is not None and edges is not None:
                children = edges.children(found.edge)
                waiting.extend(reversed(list(zip(children, found.ranks, strict=True))))
        return nodes

    def _start(self, node: Node) -> _State:
        if _is_word(node):
            return _State(None, [_Found(float(self._forest.inner(node.i, node.j)[node.value]), 0, ())])
        edges = self._forest.edges(node)
        weights = edges.log_weights
        kept = _best(weights, self._k)
        state = _State(edges, [])
        for edge in kept[weights[kept] > -np.inf].tolist():
            best = _Found(float(weights[edge]), edge, (0,) * len(edges.children(edge)))
            state.seen.add((edge, best.ranks))
            state.candidates.append((-best.log_weight, next(self._order), best))
        heapify(state.candidates)
        return state

    def _ranked(self, node: Node, rank: int) -> _Found | None:
        """The derivation of this rank at a node; None if there are fewer."""
        # No recursion: a tree may be as deep as its sentence is long.
        waiting = [(node, rank)]
        while waiting:
            state = self._state(waiting[-1][0])
            if state.knows(waiting[-1][1]):
                waiting.pop()
                continue
            neighbours = self._neighbours(state)
            below = [(child, at + 1) for child, at, _ in neighbours if not self._state(child).knows(at + 1)]
            if below:
                waiting += below
                continue
            for child, at, ranks in neighbours:
                self._add_candidate(state, child, at, ranks)
            if state.candidates:
                state.found.append(heappop(state.candidates)[2])
            else:
                state.exhausted = True
        found = self._state(node).found
        return found[rank] if rank < len(found) else None

    def _state(self, node: Node) -> _State:
        if node not in self._states:
            self._states[node] = self._start(node)
        return self._states[node]

    def _neighbours(self, state: _State) -> list[tuple[Node, int, tuple[int, ...]]]:
        """The changes to the last found derivation that take the next best of one child: the child, its current rank,
        and all ranks after the change."""
        if not state.found or state.edges is None:
            return []
        last = state.found[-1]
        changed = (
            (child, rank, (*last.ranks[:place], rank + 1, *last.ranks[place + 1 :]))
            for place, (child, rank) in enumerate(zip(state.edges.children(last.edge), last.ranks, strict=True))
        )
        return [neighbour for neighbour in changed if (last.edge, neighbour[2]) not in state.seen]

    def _add_candidate(self, state: _State, child: Node, rank: int, ranks: tuple[int, ...]) -> None:
        last, below = state.found[-1], self._state(child).found
        state.seen.add((last.edge, ranks))
        if rank + 1 < len(below):
            log_weight = last.log_weight - below[rank].log_weight + below[rank + 1].log_weight
            heappush(state.candidates, (-log_weight, next(self._order), _Found(log_weight, last.edge, ranks)))
