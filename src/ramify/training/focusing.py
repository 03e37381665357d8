"""Span scores from other parsers, the teachers, on which training is focused (Park and Kim 2024).

The score of a span is the sum over the teachers of its posterior or, where a teacher counts by its trees, the number
of teachers whose tree has the span. Training with strength beta maximises

    log sum over trees t of p(w, t) exp(beta * sum of the scores of the spans of t),

which is the inside algorithm with span scores.

Teachers attach phrases too high; `favour_branching` corrects this in their scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ramify.corpus.reading import Corpus
from ramify.corpus.sentence import Sentence
from ramify.corpus.streaming import WINDOW
from ramify.corpus.word_order import branching_side
from ramify.decoding.best_trees import add_branching
from ramify.parser.ensemble_members import Member, table_of, without_collapsed
from ramify.storage.model_files import FOCUS, checked_file
from ramify.storage.tensors import load_tensors, save_tensors

OnTeacher = Callable[[int, int], None]
"""Called with the number of sentences that the teachers have parsed, and the number there are for all of them"""


@dataclass(frozen=True)
class SpanScores:
    """The scores of the spans of two words or more of every training sentence, by its place."""

    lengths: Sequence[int]
    """In words"""
    values: NDArray[np.float32]
    """Those of each sentence, by begin and end, one sentence after another"""

    @cached_property
    def starts(self) -> list[int]:
        """Where the scores of each sentence begin, and where the last ones end."""
        return list(accumulate((N * (N - 1) // 2 for N in self.lengths), initial=0))

    def table(self, place: int) -> NDArray[np.float32]:
        """(N+1, N+1) the scores of one sentence; zero for what is not a span of two words or more."""
        N = self.lengths[place]
        table = np.zeros((N + 1, N + 1), np.float32)
        table[np.triu_indices(N + 1, 2)] = self.values[self.starts[place] : self.starts[place + 1]]
        return table

    def of(self, places: Sequence[int]) -> Tensor:
        """(B, N+1, N+1) the tables of several sentences of at most N words."""
        N = max(self.lengths[place] for place in places)
        scores = np.zeros((len(places), N + 1, N + 1), np.float32)
        for padded, place in zip(scores, places, strict=True):
            table = self.table(place)
            padded[: len(table), : len(table)] = table
        return torch.from_numpy(scores)

    def favour_branching(self, bonus: float) -> SpanScores:
        """With `bonus` added to the spans at one end of the sentence, as in `add_branching`."""
        if not bonus:
            return self
        values = self.values.copy()
        for place, length in enumerate(self.lengths):
            table = self.table(place)
            add_branching(table, bonus)
            values[self.starts[place] : self.starts[place + 1]] = table[np.triu_indices(length + 1, 2)]
        return SpanScores(self.lengths, values)

    def save(self, folder: Path) -> None:
        """Beside the run that uses them, so that a resumed run has the same to the last bit."""
        save_tensors(folder / FOCUS, {"scores": torch.from_numpy(self.values)})

    @classmethod
    def load(cls, folder: Path, lengths: Sequence[int]) -> SpanScores:
        """What `save` wrote, for sentences of these lengths."""
        size = sum(N * (N - 1) // 2 for N in lengths)
        tensors, _ = load_tensors(checked_file(folder, FOCUS), {"scores": (size,)})
        return cls(lengths, tensors["scores"].numpy())


def scores_of_teachers(
    teachers: Sequence[Member],
    corpora: Sequence[Corpus],
    focus_on: str,
    branching: float = 0.0,
    on_teacher: OnTeacher = lambda *_: None,
) -> SpanScores:
    """What the teachers, one after another, find in all sentences of some corpora, given as words alone.

    Models that collapsed are left out. `branching` is a bonus at that end of the sentence to which the language
    branches, as far as the text shows it; it counts once for every teacher.
    """
    sentences = [
        Sentence.from_tokens(parse.words, where=f"{corpus.source}, sentence {place}")
        for corpus in corpora
        for place, parse in enumerate(corpus.parses, start=1)
    ]
    scores = SpanScores([len(sentence.words) for sentence in sentences], np.zeros(0, np.float32))
    values = np.zeros(scores.starts[-1], np.float32)
    teachers = without_collapsed(teachers, sentences)
    total = len(teachers) * len(sentences)
    for number, teacher in enumerate(teachers):
        place = 0
        while place < len(sentences):
            for view in teacher.views(sentences[place : place + WINDOW]):
                N = scores.lengths[place]
                table = table_of(view.spans, N) if focus_on == "trees" else view.posteriors
                values[scores.starts[place] : scores.starts[place + 1]] += table[np.triu_indices(N + 1, 2)]
                place += 1
            on_teacher(number * len(sentences) + place, total)
    side = branching_side([sentence.words for sentence in sentences]) if branching else 0
    return SpanScores(scores.lengths, values).favour_branching(side * branching * len(teachers))
