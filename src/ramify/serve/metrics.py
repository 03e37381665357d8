"""Counters of a server, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_WORDS = (8, 32, 128, 512, 2048, 8192)


class Metrics:
    """All counters of one server; labels never contain text from clients."""

    def __init__(self, waiting_words: Callable[[], float], unfinished: Callable[[], float]) -> None:
        self._registry = registry = CollectorRegistry()
        self._answers = Counter("ramify_answers", "Answers", ["route", "status"], registry=registry)
        self._seconds = Histogram(
            "ramify_answer_seconds", "Time to answer", ["route"], buckets=_SECONDS, registry=registry
        )
        self._sentences = Counter("ramify_sentences", "Sentences that went through a model", registry=registry)
        self._words = Counter("ramify_words", "Words that went through a model", registry=registry)
        self._busy = Counter("ramify_model_seconds", "Time spent in models", registry=registry)
        self._batches = Histogram("ramify_batch_words", "Words of a batch", buckets=_WORDS, registry=registry)
        Gauge("ramify_waiting_words", "Words accepted and not parsed yet", registry=registry).set_function(
            waiting_words
        )
        Gauge("ramify_unfinished_requests", "Requests accepted and not answered", registry=registry).set_function(
            unfinished
        )
        self.ready = Gauge("ramify_ready", "1 after the first compiled parse", registry=registry)
        ProcessCollector(registry=registry)

    def on_answer(self, route: str, status: int, seconds: float) -> None:
        """Count a response."""
        self._answers.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def on_batch(self, sentences: int, words: int, seconds: float) -> None:
        """Count a batch."""
        self._sentences.inc(sentences)
        self._words.inc(words)
        self._busy.inc(seconds)
        self._batches.observe(words)

    def text(self) -> bytes:
        """The counters in the format of Prometheus."""
        return generate_latest(self._registry)
