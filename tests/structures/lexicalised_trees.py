"""Random lexicalised rules, and every lexicalised tree of a short sentence with its weight."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from ramify.structures.distribution import Tree
from ramify.structures.lexicalised import BilexicalPCFG, LexicalisedPCFG, UnilexicalPCFG
from tests.structures.brute_force import Bracketing, bracketings, extent, spans_of

VOCABULARY = 20
Span = tuple[int, int]


def random_bilexical(
    n: int,
    p: int,
    r: int,
    lengths: Sequence[int],
    *,
    seed: int = 0,
    sharpness: float = 1.0,
    dtype: torch.dtype = torch.float64,
) -> BilexicalPCFG:
    """Normalised rules from Gaussian logits times `sharpness`, for words drawn from a small vocabulary."""
    generator = torch.Generator().manual_seed(seed)

    def logits(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64) * sharpness

    ids = torch.randint(VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    tensors = {
        "root": logits(n).log_softmax(0),
        "root_words": logits(VOCABULARY, n).log_softmax(0)[ids],
        "components": logits(VOCABULARY, n, r).log_softmax(-1)[ids],
        "head_child": logits(n + p, r).log_softmax(0),
        "other_child": logits(2 * (n + p), r).log_softmax(0).unflatten(0, (2, n + p)),
        "words": logits(VOCABULARY, r).log_softmax(0)[ids],
    }
    made = {name: tensor.to(dtype).requires_grad_() for name, tensor in tensors.items()}
    return BilexicalPCFG(**made, lengths=torch.tensor(lengths))


def rule_tensor(pcfg: Any, p: int, q: int, side: int) -> Tensor:
    """(n, m, m) of the only sentence: p(B, C, w_q, side of C | A, w_p)"""
    return by_component(pcfg, p, q, side).sum(0)


def by_component(pcfg: Any, p: int, q: int, side: int) -> Tensor:
    """(r, n, m, m) the same with each H."""
    head, child, other = pcfg.components[0, p].exp(), pcfg.head_child.exp(), pcfg.other_child[side].exp()
    return torch.einsum("ah,bh,ch,h->habc", head, child, other, pcfg.words[0, q].exp())


@dataclass(eq=False)
class Lexicalised:
    """A bracketing with a head word for every span."""

    tree: Bracketing
    head: dict[Span, int]

    @property
    def spans(self) -> frozenset[Span]:
        return spans_of(self.tree)

    @property
    def arcs(self) -> dict[int, int]:
        """The head of every word, from 1, or 0 for the root."""
        result = {self.head[extent(self.tree)]: 0}

        def visit(node: Bracketing) -> None:
            if isinstance(node, int):
                return
            for child in node:
                if self.head[extent(child)] != self.head[extent(node)]:
                    result[self.head[extent(child)]] = self.head[extent(node)] + 1
                visit(child)

        visit(self.tree)
        return result


def lexicalised_trees(length: int) -> Iterator[Lexicalised]:
    """Every binary tree with every choice of a head child at every node: Catalan times 2^(length - 1)."""

    def choices(node: Bracketing) -> Iterator[dict[Span, int]]:
        if isinstance(node, int):
            yield {(node, node + 1): node}
            return
        for left, right in product(list(choices(node[0])), list(choices(node[1]))):
            for child, below in ((node[0], left), (node[1], right)):
                yield {**left, **right, extent(node): below[extent(child)]}

    for tree in bracketings(0, length):
        for head in choices(tree):
            yield Lexicalised(tree, head)


def weight(pcfg: LexicalisedPCFG, found: Lexicalised, span_scores: Tensor, rules: Any = rule_tensor) -> Tensor:
    """() of the only sentence: the weight of a lexicalised tree, summed over all symbols."""
    n, m = pcfg.nonterminals, pcfg.nonterminals + pcfg.preterminals

    def symbols(node: Bracketing) -> Tensor:
        i, j = extent(node)
        score = span_scores[i, j].exp()
        if isinstance(node, int):
            return torch.cat([score.new_zeros(n), score.new_ones(m - n)]) * score
        p = found.head[i, j]
        head_on_left = found.head[extent(node[0])] == p
        kept, other = node if head_on_left else reversed(node)
        tensor = rules(pcfg, p, found.head[extent(other)], int(head_on_left))
        below = torch.einsum("abc,b,c->a", tensor, symbols(kept), symbols(other))
        return torch.cat([below * score, score.new_zeros(m - n)])

    whole = extent(found.tree)
    return symbols(found.tree)[:n] @ pcfg.start()[0, found.head[whole]].exp()


def weights(pcfg: LexicalisedPCFG, span_scores: Tensor, rules: Any = rule_tensor) -> dict[Lexicalised, Tensor]:
    """The weights of all lexicalised trees of the only sentence."""
    length = int(pcfg.lengths[0])
    trees = list(lexicalised_trees(length)) if length > 1 else []
    return {found: weight(pcfg, found, span_scores, rules) for found in trees}


Labelled = tuple[tuple[tuple[Span, int], ...], tuple[int, ...], tuple[int, ...]]
"""Spans with labels in preorder, tags, heads"""


def labelled(pcfg: LexicalisedPCFG, span_scores: Tensor, rules: Any = rule_tensor) -> dict[Labelled, float]:
    """Every labelled lexicalised tree of the only sentence with its weight: for very small grammars and sentences."""
    return {tree: sum(found) for tree, found in derivations(pcfg, span_scores, lambda *at: rules(*at)[None]).items()}


def derivations(pcfg: LexicalisedPCFG, span_scores: Tensor, rules: Any = by_component) -> dict[Labelled, list[float]]:
    """The weights of the derivations of every labelled lexicalised tree, one for each choice of H at every rule."""
    n, length, result = pcfg.nonterminals, int(pcfg.lengths[0]), {}
    pcfg = pcfg.replace(**{name: tensor.detach() for name, tensor in pcfg.tensors().items()})
    start = pcfg.start()
    for found in lexicalised_trees(length) if length > 1 else ():
        inner = sorted((s for s in found.spans if s[1] - s[0] > 1), key=lambda s: (s[0], -s[1]))
        tensors = {}
        for i, j in inner:
            k = next(k for k in range(i + 1, j) if {(i, k), (k, j)} <= found.spans)
            left, right = (i, k), (k, j)
            kept, other = (left, right) if found.head[left] == found.head[i, j] else (right, left)
            tensor = rules(pcfg, found.head[i, j], found.head[other], int(kept == left))
            tensors[i, j] = (kept, other, tensor.tolist())
        score = float(sum(span_scores[s] for s in found.spans))
        for labels in product(range(n), repeat=len(inner)):
            for tags in product(range(pcfg.preterminals), repeat=length):
                symbol = dict(zip(inner, labels, strict=True)) | {(i, i + 1): n + t for i, t in enumerate(tags)}
                values = [math.exp(score + float(start[0, found.head[0, length], symbol[0, length]]))]
                for span, (kept, other, tensor) in tensors.items():
                    of_rule = [each[symbol[span]][symbol[kept]][symbol[other]] for each in tensor]
                    values = [value * factor for value in values for factor in of_rule]
                arcs = tuple(found.arcs[q] for q in range(length))
                result[tuple(zip(inner, labels, strict=True)), tags, arcs] = values
    return result


def key(tree: Tree) -> Labelled:
    spans = map(tuple, tree.spans.tolist())
    return tuple(zip(spans, tree.labels.tolist(), strict=True)), tuple(tree.tags.tolist()), tuple(tree.heads.tolist())


def random_unilexical(
    n: int, p: int, lengths: Sequence[int], *, seed: int = 0, sharpness: float = 1.0, dtype: torch.dtype = torch.float64
) -> UnilexicalPCFG:
    """The same for rules that depend only on the parent's head word."""
    generator = torch.Generator().manual_seed(seed)
    m = n + p

    def logits(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64) * sharpness

    ids = torch.randint(VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    tensors = {
        "root": logits(n).log_softmax(0),
        "rules": logits(VOCABULARY, n, 2 * m * m).log_softmax(-1).unflatten(-1, (2, m, m))[ids],
        "words": logits(VOCABULARY, m).log_softmax(0)[ids],
    }
    made = {name: tensor.to(dtype).requires_grad_() for name, tensor in tensors.items()}
    return UnilexicalPCFG(**made, lengths=torch.tensor(lengths))


def unilexical_tensor(pcfg: Any, p: int, q: int, side: int) -> Tensor:
    """(n, m, m) of the only sentence: p(B, C, side of C | A, w_p) p(w_q | C)"""
    return pcfg.rules[0, p, :, side].exp() * pcfg.words[0, q].exp()
