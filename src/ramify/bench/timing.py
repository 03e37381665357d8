"""Speed relative to matrix products on the same machine, memory, and the log-space reference on the same words."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ramify.bench.case import Case, flop
from ramify.corpus.sentence import Sentence
from ramify.corpus.vocabulary import UNKNOWN, Vocabulary
from ramify.models import GenerativeModel
from ramify.models.batches import peak_bytes
from ramify.parser import Parser
from ramify.runtime.memory import forget_peak_memory, peak_memory
from ramify.structures.distribution import TreeDistribution
from ramify.training.loop import train_step

SQUARES = (1024, 2048, 4096)
REFERENCE_SENTENCES = 4
"""Sentences of the batch on which the log-space reference is timed: it keeps every split in memory."""
REFERENCE_LENGTH = 60
"""Longer sentences are not given to the reference: at 200 words, it would take minutes and gigabytes."""


@dataclass(frozen=True)
class Measurement:
    """One case, measured; rates are those of the fastest repetition."""

    case: Case
    seconds: float
    seconds_median: float
    sentences_per_second: float
    tokens_per_second: float
    gflop: float
    """Per repetition, counted as docs/speed.md describes"""
    peak_gflop_per_second: float
    """Speed of torch's float32 matrix product with the same threads in the same run"""
    share_of_peak: float
    sentences_per_second_per_peak_gflop: float
    peak_memory_mb: float
    """Peak of the process up to the end of the measurement"""
    task_memory_mb: float
    """Peak of the task, without the memory that the process held before"""
    predicted_memory_mb: float | None
    """The estimate before the task runs, for parsing; None for other tasks"""
    reference_sentences_per_second: float | None
    """Inside and outside in log space by autograd on the same words; None for long sentences or if not requested"""
    threads: int

    def as_record(self) -> dict[str, Any]:
        """As JSON values: the sizes of the case, and the figures."""
        record = asdict(self)
        case: dict[str, Any] = record.pop("case")
        return case | record


def work(case: Case, grammar: GenerativeModel) -> Callable[[], object]:
    """The task as a function to be timed."""
    word_ids = case.word_ids()
    if case.task == "train":
        settings = case.settings()
        learner = grammar.learner(settings.learning_rate, settings.clip)
        noise = torch.Generator() if grammar.latent else None
        return lambda: train_step(grammar, learner, word_ids, noise)
    if case.task == "inside":
        pcfg = leaf_distribution(grammar, word_ids)
        return lambda: pcfg.log_partition().sum().backward()
    letters = str.maketrans("0123456789", "abcdefghij")  # numbers would all become the same word
    names = [UNKNOWN, *(str(i).translate(letters) for i in range(1, case.vocabulary))]
    parser = Parser(grammar, Vocabulary(names))
    sentences = [Sentence.from_tokens([names[i] for i in row]) for row in word_ids.tolist()]
    list(parser.analyse_many([names[:2]]))  # loads the loops, which take memory too
    return lambda: list(parser.analyse_many(sentences))


def predicted_memory(case: Case, grammar: GenerativeModel) -> float | None:
    """Peak memory of parsing, in MB."""
    if case.task != "parse":
        return None
    return peak_bytes(grammar, [case.length] * case.batch, torch.get_num_threads()) / 2**20


def leaf_distribution(grammar: GenerativeModel, word_ids: Tensor) -> TreeDistribution:
    """The grammar's distribution for these words, detached from its networks, with tensors that require gradients."""
    B, N = word_ids.shape
    with torch.no_grad():
        pcfg: TreeDistribution = grammar.forward(word_ids, torch.full((B,), N))
    return pcfg.replace(**{name: value.clone().requires_grad_() for name, value in pcfg.tensors().items()})


def time_repetitions(run: Callable[[], object], seconds: float, least: int = 3) -> list[float]:
    """The time of each repetition, after a first one that may compile and does not count."""
    run()
    found: list[float] = []
    end = time.perf_counter() + seconds
    while len(found) < least or time.perf_counter() < end:
        started = time.perf_counter()
        run()
        found.append(time.perf_counter() - started)
    return found


def sgemm_peak(seconds: float = 0.5) -> float:
    """GFLOP/s of the fastest float32 product of square matrices."""
    best = 0.0
    for size in SQUARES:
        a, b, out = torch.rand(size, size), torch.rand(size, size), torch.empty(size, size)
        taken = min(time_repetitions(lambda a=a, b=b, out=out: torch.mm(a, b, out=out), seconds))  # type: ignore[misc]
        best = max(best, 2 * size**3 / taken / 1e9)
    return best


def measure(case: Case, reference: bool = True, peak: float | None = None) -> Measurement:
    """Time one case; the machine's peak is measured before and after unless it is given."""
    grammar = case.grammar()
    run = work(case, grammar)
    held = forget_peak_memory()
    times = time_repetitions(run, case.seconds)
    memory = peak_memory()
    if peak is None:
        peak = sgemm_peak()
        times += time_repetitions(run, case.seconds)  # again, in case the machine became slower or faster
    reference = reference and case.length <= REFERENCE_LENGTH
    rate, gflop = case.batch / min(times), flop(case, grammar) / 1e9
    return Measurement(
        case=replace(case, rank=grammar.rank, compound=grammar.latent > 0),
        seconds=min(times),
        seconds_median=statistics.median(times),
        sentences_per_second=rate,
        tokens_per_second=rate * case.length,
        gflop=gflop,
        peak_gflop_per_second=peak,
        share_of_peak=gflop / min(times) / peak,
        sentences_per_second_per_peak_gflop=rate / peak,
        peak_memory_mb=memory,
        task_memory_mb=max(memory - held, 0.0),
        predicted_memory_mb=predicted_memory(case, grammar),
        reference_sentences_per_second=reference_rate(case, grammar) if reference else None,
        threads=torch.get_num_threads(),
    )


def reference_rate(case: Case, grammar: GenerativeModel) -> float:
    """Sentences/s of the inside and outside passes in log space, by autograd."""
    word_ids = case.word_ids()[:REFERENCE_SENTENCES]
    pcfg = leaf_distribution(grammar, word_ids)
    times = time_repetitions(lambda: pcfg.log_partition("reference").sum().backward(), 0, least=2)
    return len(word_ids) / min(times)
