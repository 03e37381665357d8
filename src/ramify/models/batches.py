"""Runs sentences of any lengths through a grammar in batches that fit into memory; results keep the order."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
import psutil
import torch
from numpy.typing import NDArray
from torch import Tensor

from ramify.errors import RamifyError, RamifyWarning
from ramify.models import Model

WordIds = NDArray[np.int64]

CHART_BYTES = 256 * 2**20
"""Approximate limit for the charts of one batch; a single long sentence may exceed it."""
MIN_SENTENCES, MAX_SENTENCES = 4, 64
SLOW_SECONDS = 90.0
"""A sentence that is expected to take more seconds is announced."""


def pad(sentences: Sequence[WordIds], device: torch.device) -> tuple[Tensor, Tensor]:
    """Word numbers (B, N), zero after each sentence's end, and the lengths (B,)."""
    lengths = torch.tensor([len(words) for words in sentences])
    word_ids = np.zeros((len(sentences), int(lengths.max())), dtype=np.int64)
    for row, words in zip(word_ids, sentences, strict=True):
        row[: len(words)] = words
    return torch.from_numpy(word_ids).to(device), lengths.to(device)


def chart_bytes(grammar: Model, length: int) -> int:
    """Approximate bytes of the charts of one sentence."""
    return 4 * grammar.numbers_per_sentence(length)


def check_tables_fit(grammar: Model, where: str = "") -> None:
    """Refuse a grammar whose probabilities do not fit into the free memory."""
    needed = 4 * grammar.table_numbers
    free = psutil.virtual_memory().available
    if needed > free:
        raise RamifyError(
            f"{where}the tables of {grammar.described()} "
            f"need {needed / 2**30:.1f} GB of memory, but only {free / 2**30:.1f} GB are free; use fewer symbols "
            "or a lower rank."
        )


def fits(grammar: Model, length: int) -> bool:
    """Whether the charts of a sentence fit into the free memory."""
    needed = chart_bytes(grammar, length)
    return needed <= CHART_BYTES or needed <= psutil.virtual_memory().available


def check_fits(grammar: Model, length: int, where: str = "") -> None:
    """Refuse a sentence whose charts do not fit into the free memory."""
    if not fits(grammar, length):
        needed, free = chart_bytes(grammar, length), psutil.virtual_memory().available
        raise RamifyError(
            f"{where}{': ' if where else ''}a sentence of {length:,} words needs about {needed / 2**30:.1f} GB of "
            f"memory for its charts, but only {free / 2**30:.1f} GB are free; split it into shorter ones, or use "
            "a smaller grammar."
        )


def peak_bytes(model: Model, lengths: Sequence[int], cores: int) -> int:
    """Peak memory for parsing sentences of these lengths, without the model: charts, and the results of all.

    As many batches as there are cores are parsed at a time, but only as many as fit into `CHART_BYTES` together.
    """
    batches = memory_batches(model, lengths, most=max_batch_size(len(lengths)))
    needed = sorted((model.working_bytes([lengths[place] for place in places]) for places in batches), reverse=True)
    if not needed:
        return 0
    return max(needed[0], min(sum(needed[:cores]), CHART_BYTES)) + sum(4 * (length + 1) ** 2 for length in lengths)


def max_batch_size(sentences: int) -> int:
    """The batch size for this number of sentences with which every core gets some; the same for all cores."""
    return min(max(-(-sentences // 4), MIN_SENTENCES), MAX_SENTENCES)


def memory_batches(
    grammar: Model, lengths: Sequence[int], where: Sequence[str] = (), most: int = MAX_SENTENCES
) -> Iterator[list[int]]:
    """Places of the sentences with words, shortest first, in batches whose charts stay within `CHART_BYTES`.

    `where` names the sentences, each of which is announced before it starts if it will take minutes.
    """
    batch: list[int] = []
    for place in sorted((i for i, length in enumerate(lengths) if length), key=lambda i: lengths[i]):
        # Sentences are sorted, so the next one is the longest and determines the size of the whole batch.
        if batch and (len(batch) == most or (len(batch) + 1) * chart_bytes(grammar, lengths[place]) > CHART_BYTES):
            yield batch
            batch = []
        batch.append(place)
        seconds = grammar.expected_seconds(lengths[place])
        if seconds > SLOW_SECONDS:
            warnings.warn(
                f"{where[place] + ': ' if where and where[place] else ''}a sentence of {lengths[place]:,} words will "
                f"take about {seconds / 60:.0f} minutes.",
                RamifyWarning,
                stacklevel=2,
            )
    if batch:
        yield batch
