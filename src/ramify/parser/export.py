"""The grammar of a parser as a list of named rules."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ramify.corpus.pcfg import BinaryGrammar
from ramify.errors import RamifyError
from ramify.models import TableGrammar
from ramify.parser.parser import Parser
from ramify.storage.model_files import BRANCHING, LEARNT_FROM_TEXT
from ramify.version import VERSION

DEFAULT_MASS = 0.999
"""The default share of probability to keep. With it, a TN-PCFG of 30 + 60 symbols, trained for two epochs on 3,200
sentences, derives all 350 test sentences with the same S-F1 as its source, and 99.9 % of its brackets are the same.
With 0.99, 98.9 % are; with 0.9, one sentence is not derived, and the file is half as large."""
MAX_RULES = 2**24
"""Maximum number of rules that are written: a file of about a gigabyte."""


class Exported(NamedTuple):
    """A grammar without its least probable rules, and the probability that each symbol lost."""

    grammar: BinaryGrammar
    left_out: dict[str, float]
    """The total probability of the rules left out, by left side"""


def export(parser: Parser, mass: float = DEFAULT_MASS) -> Exported:
    """The fewest rules that keep `mass` of the probability, renormalised; for a compound grammar those at z = 0.

    The most probable binary rules of each nonterminal are kept, and the most probable preterminals of each word, so
    that every word of the vocabulary can still be derived. All start rules are kept.
    """
    if not 0 < mass <= 1:
        raise RamifyError(f"mass is {mass}, but must be more than 0 and at most 1.")
    symbols, words = (*parser.labels, *parser.tags), parser.vocabulary.words
    m = len(symbols)
    left_out: dict[str, float] = {}
    binary: list[tuple[str, str, str, float]] = []
    for parent, name in enumerate(parser.labels):
        probabilities = _binary_of(parser.tables, parent)
        kept = _covering(probabilities, mass)
        if len(binary) + len(kept) > MAX_RULES:
            raise RamifyError(
                f"More than {MAX_RULES:,} rules are needed to keep {mass:.6g} of the probability; lower mass."
            )
        share = float(probabilities[kept].sum())
        left_out[name] = 1 - share / float(probabilities.sum())
        binary += (
            (name, symbols[at // m], symbols[at % m], p)
            for at, p in zip(kept.tolist(), (probabilities[kept] / share).tolist(), strict=True)
        )
    used = {child for rule in binary for child in rule[1:3]}
    lexical = _lexical(parser, mass, [tag in used for tag in parser.tags], left_out)
    root = parser.tables.rules().root.double().exp().cpu().numpy()
    start = {parser.labels[a]: float(p) for a, p in enumerate(root / root.sum()) if p > 0}
    named = tuple((tag, words[word], p) for tag, word, p in lexical)
    return Exported(BinaryGrammar(start, tuple(binary), named), left_out)


def _lexical(parser: Parser, mass: float, used: list[bool], left_out: dict[str, float]) -> list[tuple[str, int, float]]:
    """(tag, word, probability) of the kept rules, without preterminals that no binary rule uses."""
    emission = parser.tables.emission_table.double().exp().cpu().numpy()
    kept = np.where(used, emission, 0)
    for row in kept:
        chosen = _covering(row, mass)
        row[np.setdiff1d(np.arange(len(row)), chosen)] = 0
    result = []
    for tag, name in enumerate(parser.tags):
        share = float(kept[:, tag].sum())
        left_out[name] = 1 - share / float(emission[:, tag].sum())
        places = np.flatnonzero(kept[:, tag])
        result += [(name, int(word), float(kept[word, tag] / share)) for word in places]
    return result


def text_record(parser: Parser) -> dict[str, Any]:
    """How the parser reads text and decodes trees, as JSON values, to be written with its rules.

    The sentence splitter is left out, because it is too large.
    """
    rule = LEARNT_FROM_TEXT if parser.word_rule is None else str(parser.word_rule)
    return {
        "ramify": VERSION,
        "words": rule,
        "text": parser.text_rules.as_record() | {"split_sentences": False},
        BRANCHING: parser.branching,
    }


def _covering(probabilities: NDArray[np.float64], mass: float) -> NDArray[np.int64]:
    """The places of the fewest numbers that sum to at least `mass` of the total, in order, without zeros."""
    order = np.argsort(-probabilities, kind="stable")
    sums = np.cumsum(probabilities[order])
    # The last numbers may be too small to change the sum, but a mass of 1 means all numbers.
    enough = len(order) if mass == 1 else int(np.searchsorted(sums, mass * sums[-1])) + 1
    kept: NDArray[np.int64] = np.sort(order[:enough])
    return kept[probabilities[kept] > 0]


@torch.no_grad()
def _binary_of(tables: TableGrammar, parent: int) -> NDArray[np.float64]:
    """(m m,) the probabilities of one nonterminal's binary rules."""
    result: NDArray[np.float64] = tables.rules().binary_of(parent).flatten().cpu().numpy()
    return result
