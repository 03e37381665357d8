"""Sentences of any lengths through a grammar in batches that fit into memory, results in the order given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ramify.grammars import LowRankGrammar

WordIds = NDArray[np.int64]

CHART_BYTES = 256 * 2**20
"""How large the charts of one batch may grow, roughly; a single longer sentence may exceed it."""
MOST_SENTENCES = 64


def padded(sentences: Sequence[WordIds], device: torch.device) -> tuple[Tensor, Tensor]:
    """Word numbers (B, N), zero behind each sentence's end, and the lengths (B,)."""
    lengths = torch.tensor([len(words) for words in sentences])
    word_ids = np.zeros((len(sentences), int(lengths.max())), dtype=np.int64)
    for row, words in zip(word_ids, sentences, strict=True):
        row[: len(words)] = words
    return torch.from_numpy(word_ids).to(device), lengths.to(device)


def memory_batches(grammar: LowRankGrammar, lengths: Sequence[int]) -> Iterator[list[int]]:
    """Places of the sentences, shortest first, cut into batches whose charts stay within `CHART_BYTES`."""
    cell = 4 * (4 * grammar.rank + grammar.nonterminals)
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        # Sorted: the sentence about to join is the longest, so it sets the size of the whole batch.
        if batch and (len(batch) == MOST_SENTENCES or (len(batch) + 1) * lengths[place] ** 2 * cell > CHART_BYTES):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
