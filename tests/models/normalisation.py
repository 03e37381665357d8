"""Whether the probabilities of a grammar sum to one."""

from __future__ import annotations

import torch

from ramify.models.grammar import Grammar


@torch.no_grad()
def normalisation_error(grammar: Grammar) -> dict[str, float]:
    """The largest deviation from one of the sums of each set of probabilities.

    Binary rules sum to one for every nonterminal if the rows of U and the columns of V and W do; components that no
    nonterminal uses do not count.
    """
    tables = grammar.tabulated()
    sums = tables.rules().sums() | {"words": tables.emission_table.exp().sum(0, dtype=torch.float64)}
    return {name: float((total - 1).abs().max()) for name, total in sums.items()}
