"""Sentences of any lengths through a grammar in batches that fit into memory, results in the order given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import psutil
import torch
from numpy.typing import NDArray
from torch import Tensor

from ramify.errors import RamifyError
from ramify.grammars import Grammar
from ramify.grammars.base import LARGEST_TABLE

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


def chart_bytes(grammar: Grammar, length: int) -> int:
    """Roughly what inside and outside charts of one sentence take: spans times numbers a span."""
    return 4 * (length * (length + 1) // 2 * grammar.numbers_a_span + grammar.numbers_a_sentence)


def check_tables_fit(grammar: Grammar, where: str = "") -> None:
    """Refuse a grammar whose probabilities alone are larger than the memory that is free."""
    needed = 4 * (grammar.rule_numbers + min(grammar.preterminals * grammar.words, LARGEST_TABLE))
    free = psutil.virtual_memory().available
    if needed > free:
        raise RamifyError(
            f"{where}the tables of a grammar with {grammar.nonterminals:,} + {grammar.preterminals:,} symbols "
            f"need {needed / 2**30:.1f} GB of memory, and {free / 2**30:.1f} GB are free; take fewer symbols "
            "or a lower rank."
        )


def check_fits(grammar: Grammar, length: int, where: str = "") -> None:
    """Refuse a sentence whose charts are larger than the memory that is free."""
    needed = chart_bytes(grammar, length)
    if needed <= CHART_BYTES:
        return
    free = psutil.virtual_memory().available
    if needed > free:
        raise RamifyError(
            f"{where}{': ' if where else ''}a sentence of {length:,} words needs about {needed / 2**30:.1f} GB of "
            f"memory for its charts, and {free / 2**30:.1f} GB are free; split it into shorter ones, or take "
            "a smaller grammar."
        )


def memory_batches(grammar: Grammar, lengths: Sequence[int]) -> Iterator[list[int]]:
    """Places of the sentences, shortest first, cut into batches whose charts stay within `CHART_BYTES`."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        # Sorted: the sentence about to join is the longest, so it sets the size of the whole batch.
        if batch and (
            len(batch) == MOST_SENTENCES or (len(batch) + 1) * chart_bytes(grammar, lengths[place]) > CHART_BYTES
        ):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
