"""Sentences/s of real training steps on a treebank or text, and the time of an epoch with the lengths of the WSJ.

    python benchmarks/epoch.py DATA --preterminals 500 --batch-size 16 --seconds 60

Trains on batches of DATA in the order of training for the given number of seconds, and prints the rate and that of
`ramify bench` for the same mix of lengths. Then it does the same for the lengths of DATA, reweighted exponentially to
the mean length of the WSJ, 21.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
import torch

from ramify.bench.timing import sgemm_peak, time_repetitions
from ramify.models import FAMILIES
from ramify.models.batches import WordIds
from ramify.runtime.compilation import on_compilation
from ramify.training.data import prepare
from ramify.training.loop import equal_length_batches, train_step
from ramify.training.settings import Settings

WSJ_SENTENCES, WSJ_MEAN_LENGTH = 38_213, 21.0
LENGTHS_TIMED = (5, 10, 15, 20, 25, 30, 35, 40)


def tilted(lengths: np.ndarray, mean: float) -> np.ndarray:
    """Weights proportional to exp(t length) under which the mean length is `mean`."""
    low, high = -1.0, 1.0
    for _ in range(100):
        t = (low + high) / 2
        weights = np.exp(t * (lengths - lengths.max()))
        weights /= weights.sum()
        low, high = (t, high) if weights @ lengths < mean else (low, t)
    return weights


class Trainer:
    def __init__(self, settings: Settings, words: int) -> None:
        torch.manual_seed(0)
        self.settings = settings
        self.grammar = FAMILIES[settings.model](**settings.model_arguments(words))
        self.learner = self.grammar.learner(settings.learning_rate, settings.clip)
        self.words = words

    def step(self, word_ids: torch.Tensor) -> None:
        train_step(self.grammar, self.learner, word_ids)

    def sustained(self, sentences: list[WordIds], seconds: float) -> tuple[float, Counter[tuple[int, int]]]:
        """Sentences/s over whole batches in random order, and the number of batches of each shape."""
        shapes: Counter[tuple[int, int]] = Counter()
        batches = self._batches(sentences)
        self.step(next(batches))
        started = time.perf_counter()
        for word_ids in batches:
            self.step(word_ids)
            shapes[tuple(word_ids.shape)] += 1
            if time.perf_counter() - started > seconds:
                break
        taken = time.perf_counter() - started
        return sum(B * count for (B, _), count in shapes.items()) / taken, shapes

    def _batches(self, sentences: list[WordIds]) -> Iterator[torch.Tensor]:
        for epoch in range(1000):
            rng = np.random.default_rng(epoch)
            for places in equal_length_batches(sentences, self.settings.batch_size, rng, self.settings.batch_tokens):
                yield torch.from_numpy(np.stack([sentences[place] for place in places]))

    def predicted(self, shapes: Iterable[tuple[tuple[int, int], int]]) -> float:
        """Sentences/s by the fastest step of each shape, as in `ramify bench`; other lengths are interpolated."""
        seconds = {}
        for length in LENGTHS_TIMED:
            word_ids = torch.randint(self.words, (self.settings.batch_size, length))
            seconds[length] = min(time_repetitions(lambda ids=word_ids: self.step(ids), 1.0))
        sentences = total = 0.0
        for (B, length), count in shapes:
            if self.settings.batch_size == B:
                sentences += B * count
                total += count * float(np.interp(length, list(seconds), list(seconds.values())))
        return sentences / total


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data")
    options.add_argument("--preterminals", type=int, default=60)
    options.add_argument("--batch-size", type=int, default=16)
    options.add_argument("--seconds", type=float, default=60.0)
    given = options.parse_args()
    on_compilation(print)
    settings = Settings(preterminals=given.preterminals, batch_size=given.batch_size)
    data = prepare(given.data, None, settings)
    sentences = [data.vocabulary.encode(parse.words) for parse in data.train.parses]
    trainer = Trainer(settings, len(data.vocabulary))
    rate, shapes = trainer.sustained(sentences, given.seconds)
    print(f"{len(sentences):,} sentences, {torch.get_num_threads()} threads, peak {sgemm_peak():.0f} GFLOP/s")
    print(f"sustained {rate:.1f} sentences/s, bench for these lengths {trainer.predicted(shapes.items()):.1f}")
    lengths = np.array([len(words) for words in sentences])
    drawn = np.random.default_rng(0).choice(len(sentences), WSJ_SENTENCES, p=tilted(lengths, WSJ_MEAN_LENGTH))
    rate, shapes = trainer.sustained([sentences[i] for i in drawn], given.seconds)
    done = sum(B * count for (B, _), count in shapes.items())
    print(
        f"{WSJ_SENTENCES:,} sentences of mean length {lengths[drawn].mean():.1f}: {rate:.1f} sentences/s, "
        f"{WSJ_SENTENCES / rate / 60:.1f} minutes an epoch ({done:,} of them trained on)"
    )


if __name__ == "__main__":
    main()
