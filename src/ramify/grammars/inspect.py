"""Whether a grammar sums to one."""

from __future__ import annotations

import torch

from ramify.grammars.base import Grammar, SharedDenseRules


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
