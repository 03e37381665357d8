"""Looking into a grammar: does it sum to one, which rules and words are the strongest."""

from __future__ import annotations

from typing import NamedTuple

import torch

from ramify.grammars.base import Grammar, SharedDenseRules


class Rule(NamedTuple):
    """Children are numbered as in `LowRankRules` and `DenseRules`: preterminal t is symbol n + t."""

    parent: int
    left: int
    right: int
    probability: float


@torch.no_grad()
def normalisation_error(grammar: Grammar) -> dict[str, float]:
    """How far each family of distributions is from summing to one, at worst.

    Binary rules sum to one for every nonterminal where the rows of U and the columns of V and W do; a
    component that no nonterminal uses does not count.
    """
    tables = grammar.tabulated()
    words = tables.emission_table.exp().sum(0, dtype=torch.float64)
    shared = tables.shared_rules()
    if isinstance(shared, SharedDenseRules):
        binary = shared.binary.exp().sum((1, 2), dtype=torch.float64)
        sums = {"start rules": shared.root.double().exp().sum(), "binary rules": binary, "words": words}
        return {name: float((total - 1).abs().max()) for name, total in sums.items()}
    root, left, right = (table.double().exp() for table in (shared.root, shared.left, shared.right))
    sums = {"start rules": root.sum(), "left (V)": left.sum(0), "right (W)": right.sum(0), "words": words}
    if shared.head is not None:
        head = shared.head.double().exp()
        used = head.amax(0) > 0
        sums |= {"head (U)": head.sum(1), "left (V)": sums["left (V)"][used], "right (W)": sums["right (W)"][used]}
    return {name: float((total - 1).abs().max()) for name, total in sums.items()}


@torch.no_grad()
def strongest_rules(grammar: Grammar, parent: int, count: int = 10, block: int = 512) -> list[Rule]:
    """The most probable binary rules of one nonterminal, best first, in O(m^2 d) time and O(m block) memory."""
    shared = grammar.tabulated().shared_rules()
    if isinstance(shared, SharedDenseRules):
        found = shared.binary[parent].exp()
        top = found.flatten().topk(min(count, found.numel()))
        m = len(found)
        return [
            Rule(parent, at // m, at % m, value)
            for at, value in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        ]
    weighted, right = (table.exp() for table in shared.components_of(parent))  # (m, k)
    m = right.shape[0]
    best = right.new_zeros(0), torch.zeros(0, dtype=torch.long, device=right.device)
    for start in range(0, m, block):
        found = (weighted[start : start + block] @ right.T).flatten()
        values, places = found.topk(min(count, found.numel()))
        values, places = torch.cat([best[0], values]), torch.cat([best[1], places + start * m])
        kept = values.topk(min(count, values.numel()))
        best = kept.values, places[kept.indices]
    return [Rule(parent, int(at) // m, int(at) % m, float(value)) for value, at in zip(*best, strict=True)]
