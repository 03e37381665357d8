"""A parser's grammar as a list of rules with names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ramify.corpus.pcfg import BinaryGrammar
from ramify.errors import RamifyError
from ramify.grammars import SharedDenseRules, TableGrammar
from ramify.parser.parser import Parser


class Exported(NamedTuple):
    """A grammar of the rules above a threshold, and what each symbol lost."""

    grammar: BinaryGrammar
    left_out: dict[str, float]
    """The mass of the rules left out, by left side"""


def export(parser: Parser, threshold: float = 0.0) -> Exported:
    """The rules with at least `threshold` probability, renormalised; of each symbol the best stays in any case.

    Of a compound grammar they are the rules at z = 0. Start rules are all kept.
    """
    if not 0 <= threshold < 1:
        raise RamifyError(f"threshold is {threshold}, but must be at least 0 and less than 1.")
    symbols, words = (*parser.labels, *parser.tags), parser.vocabulary.words
    left_out: dict[str, float] = {}

    def kept(name: str, probabilities: NDArray[np.float64]) -> Iterator[tuple[int, float]]:
        total = float(probabilities.sum())
        places = np.flatnonzero((probabilities >= threshold) & (probabilities > 0))
        if not len(places):
            places = np.array([probabilities.argmax()])
        mass = float(probabilities[places].sum())
        left_out[name] = 1 - mass / total
        return zip(places.tolist(), (probabilities[places] / mass).tolist(), strict=True)

    root = parser.tables.shared_rules().root.double().exp().cpu().numpy()
    start = {parser.labels[a]: float(p) for a, p in enumerate(root / root.sum()) if p > 0}
    m = len(symbols)
    binary = tuple(
        (name, symbols[at // m], symbols[at % m], p)
        for a, name in enumerate(parser.labels)
        for at, p in kept(name, _binary_of(parser.tables, a))
    )
    emission = parser.tables.emission_table.double().exp().cpu().numpy()
    lexical = tuple((name, words[w], p) for t, name in enumerate(parser.tags) for w, p in kept(name, emission[:, t]))
    return Exported(BinaryGrammar(start, binary, lexical), left_out)


@torch.no_grad()
def _binary_of(tables: TableGrammar, parent: int) -> NDArray[np.float64]:
    """(m m,) the probabilities of one nonterminal's binary rules."""
    shared = tables.shared_rules()
    if isinstance(shared, SharedDenseRules):
        found = shared.binary[parent].double().exp()
    else:
        left, right = shared.components_of(parent)
        found = left.double().exp() @ right.double().exp().T
    result: NDArray[np.float64] = found.flatten().cpu().numpy()
    return result
