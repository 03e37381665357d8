"""Brute force for testing the references: every tree of a short sentence, with the dense rule tensor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

import torch
from torch import Tensor

from ramify.structures.dense import DenseRules
from ramify.structures.pcfg import PCFG

Bracketing = tuple["Bracketing", "Bracketing"] | int
Spans = frozenset[tuple[int, int]]


@cache
def bracketings(i: int, j: int) -> tuple[Bracketing, ...]:
    """Every binary tree over words i..j-1; a leaf is the word's position."""
    if j - i == 1:
        return (i,)
    return tuple((left, right) for k in range(i + 1, j) for left in bracketings(i, k) for right in bracketings(k, j))


def extent(tree: Bracketing) -> tuple[int, int]:
    if isinstance(tree, int):
        return tree, tree + 1
    return extent(tree[0])[0], extent(tree[1])[1]


def spans_of(tree: Bracketing) -> Spans:
    below = frozenset() if isinstance(tree, int) else spans_of(tree[0]) | spans_of(tree[1])
    return below | {extent(tree)}


def dense(rules: PCFG) -> Tensor:
    """(n, m, m)"""
    if isinstance(rules, DenseRules):
        return rules.binary.exp()
    head = torch.eye(rules.nonterminals, dtype=rules.left.dtype) if rules.head is None else rules.head.exp()
    return torch.einsum("al,bl,cl->abc", head, rules.left.exp(), rules.right.exp())


def tree_weights(rules: PCFG, b: int, span_scores: Tensor) -> dict[Spans, Tensor]:
    """For sentence b every bracketing, as its set of spans, with its weight summed over all symbols."""
    rules = rules.sentence(b)
    tensor, N, n = dense(rules), int(rules.lengths[0]), rules.nonterminals

    def symbols(tree: Bracketing) -> Tensor:
        i, j = extent(tree)
        if isinstance(tree, int):
            scores = torch.cat([tensor.new_zeros(n), rules.words[0, i].exp()])
        else:
            inside = torch.einsum("abc,b,c->a", tensor, symbols(tree[0]), symbols(tree[1]))
            scores = torch.cat([inside, tensor.new_zeros(rules.words.shape[-1])])
        return scores * span_scores[b, i, j].exp()

    return {spans_of(tree): symbols(tree)[:n] @ rules.root.exp() for tree in bracketings(0, N) if N > 1}


@dataclass
class Derivation:
    labels: dict[tuple[int, int], int]
    tags: tuple[int, ...]
    probability: float


def derivations(rules: PCFG, b: int) -> Iterator[Derivation]:
    """Every labelled tree of sentence b, one at a time: for very small grammars and sentences only."""
    rules = rules.sentence(b)
    tensor, N, n = dense(rules).tolist(), int(rules.lengths[0]), rules.nonterminals
    root, emission, p = rules.root.exp().tolist(), rules.words[0].exp().tolist(), rules.words.shape[-1]
    for tree in bracketings(0, N):
        inner = sorted(s for s in spans_of(tree) if s[1] - s[0] > 1)
        for chosen in product(range(n), repeat=len(inner)):
            labels = dict(zip(inner, chosen, strict=True))
            for tags in product(range(p), repeat=N):
                probability = root[labels[0, N]]
                for i, tag in enumerate(tags):
                    probability *= emission[i][tag]
                probability *= _rules_product(tree, labels, tags, tensor, n)
                yield Derivation(labels, tags, probability)


def _rules_product(
    tree: Bracketing, labels: dict[tuple[int, int], int], tags: tuple[int, ...], tensor: list[list[list[float]]], n: int
) -> float:
    def symbol(node: Bracketing) -> int:
        return n + tags[node] if isinstance(node, int) else labels[extent(node)]

    if isinstance(tree, int):
        return 1.0
    own = tensor[symbol(tree)][symbol(tree[0])][symbol(tree[1])]
    below = [_rules_product(child, labels, tags, tensor, n) for child in tree]
    return own * below[0] * below[1]
