"""Sentences that share a batch, and long requests that take turns with others."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ramify.corpus.sentence import Sentence
from ramify.serve.batching import BATCH_WORDS, Batcher, Job
from ramify.serve.limits import Limits, RefusedError

LONG = Sentence.from_tokens(["word"] * 150)
SHORT = Sentence.from_tokens(["a", "b"])


class Model:
    """Returns its name for each sentence, and records the batches; it waits until it is allowed to start."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.batches: list[tuple[str, int]] = []

    def job(self, key: str, sentences: list[Sentence], whole: bool = False) -> Job:
        def analyse(given):
            self.gate.wait()
            self.batches.append((key, len(given)))
            return [key] * len(given)

        return Job(key, sentences, analyse, lambda results: " ".join(results).encode(), whole)


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def batcher() -> Iterator[Batcher]:
    batcher = Batcher(Limits())
    batcher.start()
    yield batcher
    batcher.stop()
    assert batcher.waiting_words == batcher.unfinished == 0


def results(model: Model, batcher: Batcher, jobs: list[Job]) -> list[bytes]:
    """All jobs wait while another job is running."""
    first = batcher.submit(model.job("first", [SHORT]))
    waiting = [batcher.submit(job) for job in jobs]
    model.gate.set()
    first.result(60)
    return [each.result(60) for each in waiting]


def test_jobs_of_one_key_share_a_batch_and_others_do_not(model, batcher):
    jobs = [model.job(key, [SHORT] * 2) for key in ("a", "b", "a", "c", "b")]
    assert results(model, batcher, jobs) == [b"a a", b"b b", b"a a", b"c c", b"b b"]
    assert model.batches == [("first", 1), ("a", 4), ("b", 4), ("c", 2)]


def test_a_whole_job_shares_its_batch_with_none(model, batcher):
    jobs = [model.job("a", [SHORT] * 3, whole=True), model.job("a", [SHORT]), model.job("a", [SHORT])]
    assert results(model, batcher, jobs) == [b"a a a", b"a", b"a"]
    assert model.batches == [("first", 1), ("a", 3), ("a", 2)]


def test_a_long_job_takes_turns(model, batcher):
    fitting = BATCH_WORDS // 150
    jobs = [model.job("long", [LONG] * (2 * fitting + 1)), model.job("short", [SHORT])]
    found = results(model, batcher, jobs)
    assert found[0].split() == [b"long"] * (2 * fitting + 1)
    assert model.batches == [("first", 1), ("long", fitting), ("short", 1), ("long", fitting), ("long", 1)]


def test_a_sentence_larger_than_a_batch_is_still_parsed(model, batcher):
    huge = Sentence.from_tokens(["word"] * (BATCH_WORDS + 1))
    assert results(model, batcher, [model.job("huge", [huge, SHORT])]) == [b"huge huge"]
    assert model.batches == [("first", 1), ("huge", 1), ("huge", 1)]


def test_no_job_is_taken_after_the_stop_and_none_is_lost(model):
    batcher = Batcher(Limits())
    batcher.start()
    waiting = [batcher.submit(model.job("a", [SHORT])) for _ in range(5)]
    stopping = threading.Thread(target=batcher.stop)
    stopping.start()
    model.gate.set()
    stopping.join(60)
    assert [each.result(0) for each in waiting] == [b"a"] * 5
    with pytest.raises(RefusedError, match="about to stop"):
        batcher.submit(model.job("a", [SHORT]))


def test_an_empty_job_is_answered(model, batcher):
    assert results(model, batcher, [model.job("a", [])]) == [b""]
