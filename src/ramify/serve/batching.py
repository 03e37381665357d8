"""One thread that runs the models: all requests that wait when it is free become the next batch.

No request waits for a batch to fill. Sentences of several requests with the same model and options are parsed together,
up to a number of words. A request with more words takes turns with the others.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from ramify.corpus.sentence import Sentence
from ramify.serve.limits import Limits, RefusedError

BATCH_WORDS = 4_096
LONGEST_WAIT = 60
"""Maximum `Retry-After` for a refused client, in seconds"""


@dataclass(eq=False)
class Job:
    """The sentences of one request. Jobs with the same key may share a batch."""

    key: Hashable
    sentences: Sequence[Sentence]
    analyse: Callable[[Sequence[Sentence]], list[Any]]
    """The same function for all jobs of a key"""
    answer: Callable[[list[Any]], bytes]
    """Builds the response from the results of all sentences"""
    whole: bool = False
    """Whether its sentences must be analysed in one call, without other sentences"""
    done: Future[bytes] = field(default_factory=Future)
    results: list[Any] = field(default_factory=list)

    @property
    def words(self) -> int:
        """Number of words still to be parsed; a sentence without words counts as one."""
        return sum(max(sum(sentence.is_word), 1) for sentence in self.sentences[len(self.results) :])


class Batcher:
    """Accepts jobs from any thread and runs them in a separate one."""

    def __init__(self, limits: Limits, on_batch: Callable[[int, int, float], None] = lambda *_: None) -> None:
        self._limits, self._on_batch = limits, on_batch
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._words = 0
        """Jobs that are accepted and not yet parsed"""
        self._unfinished = 0
        self._words_per_second = 1_000.0
        self._thread = threading.Thread(target=self._run, name="ramify-models", daemon=True)

    @property
    def waiting_words(self) -> int:
        """Number of words that are accepted and not yet parsed."""
        return self._words

    @property
    def unfinished(self) -> int:
        """Number of requests that are accepted and not yet answered."""
        return self._unfinished

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Accept no more jobs, finish the accepted ones, and end."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def submit(self, job: Job) -> Future[bytes]:
        """The future response to a job; an error if too many words are waiting."""
        words = job.words
        with self._changed:
            if self._stopping:
                raise RefusedError(503, "The server is about to stop; ask another one, or try again later.", 5)
            full = self._words + words > self._limits.waiting_words or self._unfinished >= self._limits.waiting_requests
            if full and self._unfinished:  # an idle server accepts any request within the limits per request
                seconds = math.ceil(self._words / self._words_per_second)
                raise RefusedError(
                    503,
                    f"{self._unfinished:,} requests with {self._words:,} words wait already; try again later.",
                    min(max(seconds, 1), LONGEST_WAIT),
                )
            self._words += words
            self._unfinished += 1
            self._waiting.append(job)
            self._changed.notify()
        return job.done

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    if self._stopping:
                        return
                    self._changed.wait()
                batch = self._next_batch()
            self._do(batch)

    def _next_batch(self) -> list[tuple[Job, Sequence[Sentence]]]:
        """The oldest job and all jobs that can share a batch with it, in order, each with its next sentences."""
        first = self._waiting[0]
        sharing = [first] if first.whole else [job for job in self._waiting if job.key == first.key and not job.whole]
        left = BATCH_WORDS
        batch: list[tuple[Job, Sequence[Sentence]]] = []
        for job in sharing:
            upcoming = job.sentences[len(job.results) :]
            fitting = len(upcoming) if job.whole else _fitting(upcoming, left, at_least_one=not batch)
            if not fitting and upcoming:
                break
            self._waiting.remove(job)
            batch.append((job, upcoming[:fitting]))
            left -= sum(sum(sentence.is_word) for sentence in upcoming[:fitting])
        return batch

    def _do(self, batch: list[tuple[Job, Sequence[Sentence]]]) -> None:
        started = time.perf_counter()
        sentences = [sentence for _, part in batch for sentence in part]
        words = sum(max(sum(sentence.is_word), 1) for sentence in sentences)
        try:
            found = iter(batch[0][0].analyse(sentences))
            for job, part in batch:
                job.results.extend(next(found) for _ in part)
        except Exception as error:
            if len(batch) > 1:  # only one of them causes the error, so each is parsed separately
                for each in batch:
                    self._do([each])
                return
            self._finish(batch[0][0], error, words)
            return
        seconds = time.perf_counter() - started
        self._words_per_second += 0.2 * (words / max(seconds, 1e-6) - self._words_per_second)
        self._on_batch(len(sentences), words, seconds)
        for job, part in batch:
            parsed = sum(max(sum(sentence.is_word), 1) for sentence in part)
            if len(job.results) == len(job.sentences):
                self._finish(job, None, parsed)
                continue
            with self._changed:
                self._words -= parsed
                self._waiting.append(job)

    def _finish(self, job: Job, error: Exception | None, parsed: int) -> None:
        with self._changed:
            self._words -= parsed if error is None else job.words
            self._unfinished -= 1
        try:
            if error is not None:
                raise error
            job.done.set_result(job.answer(job.results))
        except Exception as wrong:
            job.done.set_exception(wrong)


def _fitting(sentences: Sequence[Sentence], words: int, at_least_one: bool) -> int:
    """Number of the first sentences that together have at most this many words."""
    total = 0
    for count, sentence in enumerate(sentences):
        total += sum(sentence.is_word)
        if total > words and not (at_least_one and count == 0):
            return count
    return len(sentences)
