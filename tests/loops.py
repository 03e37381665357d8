"""`python -m tests.loops`: compile the loops of the package, each kind in a separate process.

In a new clone, every process of a test run would compile most loops, because all need them at the same time. Therefore
they are compiled before the tests (tests/conftest.py). Loops that are missing here are compiled by the first test that
needs them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch

from ramify.decoding.best_trees import best_trees
from ramify.decoding.heads import projective_heads
from ramify.models.adam import AdamLearner
from ramify.models.emission import word_log_probabilities
from ramify.models.linear import linear
from ramify.structures.bracketings import Bracketings
from ramify.structures.distribution import TreeDistribution
from tests.structures.lexicalised_trees import random_bilexical
from tests.structures.random_rules import random_dense_rules, random_rules

LENGTHS = [5, 3]


def build(make: Callable[[torch.dtype], TreeDistribution], dtype: torch.dtype) -> None:
    """Compile the loops of one kind of distribution."""
    distribution = make(dtype)
    distribution.log_partition("compiled").sum().backward()
    distribution.replace(**{name: x.detach() for name, x in distribution.tensors().items()}).marginals("compiled")


def low_rank(dtype: torch.dtype) -> None:
    build(lambda dtype: random_rules(3, 4, 5, LENGTHS, dtype=dtype), dtype)


def dense(dtype: torch.dtype) -> None:
    build(lambda dtype: random_dense_rules(3, 4, LENGTHS, dtype=dtype), dtype)


def lexicalised(dtype: torch.dtype) -> None:
    build(lambda dtype: random_bilexical(3, 4, 5, LENGTHS, dtype=dtype), dtype)


def layers(dtype: torch.dtype) -> None:
    """Compile the loops of the vocabulary, of symbols and of training steps."""
    ids = torch.tensor([[0, 1, 2]])
    states, weight = (torch.randn(rows, 16, dtype=dtype).requires_grad_() for rows in (9, 20))
    word_log_probabilities(states.detach(), weight.detach(), None, ids)
    found = word_log_probabilities(linear(states, torch.ones(16, 16, dtype=dtype)), weight, None, ids)
    found.sum().backward()
    AdamLearner([states, weight], 0.1, (0.9, 0.99), 1.0).step()


def decoding(dtype: torch.dtype) -> None:
    best_trees(torch.rand(2, 5, 5, dtype=dtype), torch.tensor([4, 3]))
    if dtype == torch.float64:
        projective_heads(torch.rand(5, 4, dtype=dtype).numpy())
        table = torch.rand(2, 6, 6, dtype=dtype)
        build(lambda _: Bracketings(table.requires_grad_(), torch.tensor(LENGTHS), torch.zeros_like(table)), dtype)


KINDS = (low_rank, lexicalised, layers, dense, decoding)
"""Longest compilation first"""
MOST_PROCESSES = 4
"""As of `make test`; each takes about half a gigabyte"""


def call(kind: Callable[[torch.dtype], None], dtype: torch.dtype) -> None:
    torch.set_num_threads(1)
    kind(dtype)


def main() -> None:
    with ProcessPoolExecutor(min(os.cpu_count() or 1, MOST_PROCESSES), get_context("spawn")) as pool:
        waiting = [pool.submit(call, kind, dtype) for kind in KINDS for dtype in (torch.float32, torch.float64)]
        for each in waiting:
            each.result()


if __name__ == "__main__":
    main()
