"""Whether the probabilities of a grammar sum to one."""

from __future__ import annotations

import torch

from ramify.models.grammar import Grammar


@torch.no_grad()
def normalisation_error(grammar: Grammar) -> dict[str, float]:
    """How far each family of distributions is from summing to one, at worst.

    Binary rules sum to one for every nonterminal where the rows of U and the columns of V and W do; a
    component that no nonterminal uses does not count.
    """
    tables = grammar.tabulated()
    sums = tables.rules().sums() | {"words": tables.emission_table.exp().sum(0, dtype=torch.float64)}
    return {name: float((total - 1).abs().max()) for name, total in sums.items()}
