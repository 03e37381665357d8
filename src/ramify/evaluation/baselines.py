"""Trees without learning: baselines that a grammar should beat, and the oracle, the best that it can reach.

Each is a binary tree over `n` words as (n - 1, 2) spans in preorder, the whole sentence first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ramify.corpus.tree import Parse
from ramify.errors import RamifyError
from ramify.evaluation.gold import Gold, Prediction, unlabelled_parse
from ramify.evaluation.spans import Spans

RANDOM_RUNS = 5
"""Number of draws of random trees."""


def left_branching(n: int) -> Spans:
    """((a b) c) d"""
    return _spans(np.zeros(_nodes(n)), np.arange(n, 1, -1))


def right_branching(n: int) -> Spans:
    """a (b (c d))"""
    return _spans(np.arange(_nodes(n)), np.full(_nodes(n), n))


def balanced(n: int) -> Spans:
    """(a b) (c d): every span is halved; if its length is odd, the left half is longer."""
    return _split_by(n, lambda start, end: (start + end + 1) // 2)


def random_tree(n: int, rng: np.random.Generator) -> Spans:
    """Every span, from the whole sentence down, is split at a place drawn uniformly."""
    return _split_by(n, lambda start, end: start + 1 + int(rng.random() * (end - start - 1)))


def oracle(gold: Spans, n: int) -> Spans:
    """The binary tree that agrees best with the gold spans (constituents, 2).

    It contains all gold spans; inside a flat constituent it branches to the right.
    """
    spans = {(start, end) for start, end in [(0, n), *gold.tolist()] if end - start >= 2}
    # Between words p - 1 and p lies a boundary between children of the innermost constituent around both, and
    # branching to the right makes everything from p to the end of that constituent one span.
    innermost_end = [0] * n
    for start, end in sorted(spans, key=_preorder):
        innermost_end[start + 1 : end] = [end] * (end - start - 1)
    spans |= {(start, end) for start, end in enumerate(innermost_end) if end - start >= 2}
    return np.array(sorted(spans, key=_preorder), dtype=np.int32).reshape(-1, 2)


BASELINES: dict[str, Callable[[Parse, np.random.Generator], Spans]] = {
    "left": lambda parse, _rng: left_branching(len(parse)),
    "right": lambda parse, _rng: right_branching(len(parse)),
    "balanced": lambda parse, _rng: balanced(len(parse)),
    "random": lambda parse, rng: random_tree(len(parse), rng),
    "oracle": lambda parse, _rng: oracle(parse.spans, len(parse)),
}
"""Functions of a gold parse (of which all but `oracle` use only the length) and a random generator, by name."""


def check_baseline(name: str) -> None:
    """Refuse an unknown baseline."""
    if name.endswith("-chain"):
        raise RamifyError(f"baseline {name!r} has heads but no trees; score it against a CoNLL-U file.")
    if name not in BASELINES:
        raise RamifyError(f"baseline {name!r} is unknown; choose one of {', '.join(BASELINES)}.")


def baseline_predictions(
    name: str, gold: Gold, seed: int = 0, on_sentence: Callable[[], None] = lambda: None
) -> list[Prediction]:
    """The trees of a baseline for every gold sentence: one prediction, or several draws of random trees."""
    check_baseline(name)
    if seed < 0:
        raise RamifyError(f"seed is {seed}, but must be at least 0.")
    system = f"{name} branching" if name in ("left", "right") else name
    predictions = []
    for run in range(RANDOM_RUNS if name == "random" else 1):
        rng = np.random.default_rng([seed, run])
        parses = []
        for parse in gold.parses:
            parses.append(unlabelled_parse(parse.words, BASELINES[name](parse, rng)))
            on_sentence()
        predictions.append(Prediction(system, parses))
    return predictions


def _nodes(n: int) -> int:
    return max(n - 1, 0)


def _spans(starts: NDArray[np.generic], ends: NDArray[np.generic]) -> Spans:
    return np.stack([starts, ends], axis=1).astype(np.int32)


def _preorder(span: tuple[int, int]) -> tuple[int, int]:
    return span[0], -span[1]


def _split_by(n: int, split: Callable[[int, int], int]) -> Spans:
    spans: list[tuple[int, int]] = []
    waiting = [(0, n)]
    while waiting:
        start, end = waiting.pop()
        if end - start < 2:
            continue
        spans.append((start, end))
        middle = split(start, end)
        waiting += [(middle, end), (start, middle)]
    return np.array(spans, dtype=np.int32).reshape(-1, 2)
