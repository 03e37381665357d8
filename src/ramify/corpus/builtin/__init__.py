"""A small English-like language with known trees, for quick tests of learning.

`grammar.txt` holds the rules, `lexicon.txt` the words; both explain their own format.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files

import numpy as np

from ramify.corpus.pcfg import BinaryGrammar
from ramify.corpus.tree import Parse
from ramify.errors import RamifyError

MAX_LENGTH = 40
START = "TOP"


@cache
def builtin_grammar() -> BinaryGrammar:
    """The grammar from which the built-in corpus is drawn."""
    start, binary = _read_rules()
    return BinaryGrammar(start, binary, _read_lexicon())


def builtin_treebank(seed: int = 0, train: int = 10_000, dev: int = 300, test: int = 500) -> dict[str, list[Parse]]:
    """The splits `train`, `dev` and `test`, drawn from `builtin_grammar()`; the same seed gives the same splits.

    Each split has a separate random stream, so `dev` and `test` do not depend on the size of the training set.
    """
    if seed < 0:
        raise RamifyError(f"The seed of the built-in corpus is {seed}, but must be at least 0.")
    grammar = builtin_grammar()
    treebank = {}
    for stream, (name, size) in enumerate({"train": train, "dev": dev, "test": test}.items()):
        rng = np.random.default_rng([seed, stream])
        treebank[name] = [grammar.sample(rng, MAX_LENGTH) for _ in range(size)]
    return treebank


def _lines(name: str) -> Iterator[str]:
    """The lines of a data file without comments and blank lines."""
    for line in files(__name__).joinpath(name).read_text(encoding="utf-8").splitlines():
        if content := line.partition("#")[0].rstrip():
            yield content


def _read_rules() -> tuple[dict[str, float], tuple[tuple[str, str, str, float], ...]]:
    start: dict[str, float] = {}
    binary: list[tuple[str, str, str, float]] = []
    for line in _lines("grammar.txt"):
        parent, _, *children, probability = line.split()
        if parent == START:
            start[children[0]] = float(probability)
        else:
            left, right = children
            binary.append((parent, left, right, float(probability)))
    return start, tuple(binary)


def _read_lexicon() -> tuple[tuple[str, str, float], ...]:
    weights: dict[str, dict[str, float]] = {}
    tag, offset, exponent = "", 0.0, 0.0
    for line in _lines("lexicon.txt"):
        if not line[0].isspace():
            tag, *parameters = line.split()
            offset, exponent = map(float, parameters)
            weights[tag] = {}
            continue
        for word in line.split():
            rank = len(weights[tag]) + 1
            weights[tag][word] = (rank + offset) ** -exponent
    return tuple(
        (tag, word, weight / sum(of_tag.values())) for tag, of_tag in weights.items() for word, weight in of_tag.items()
    )
