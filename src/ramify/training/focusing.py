"""Span scores from other parsers, the teachers, on which training is focused (Park and Kim 2024).

The score of a span is the sum of its posteriors under all teachers, or the number of teachers whose tree has the span,
or 1 for the spans of the tree of the teachers' average. Training with strength beta maximises

    log sum over trees t of p(w, t) exp(beta * sum of the scores of the spans of t),

computed by the inside algorithm with span scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from ramify.parser.ensemble import Ensemble
from ramify.parser.ensemble_members import Member, table_of, without_collapsed
from ramify.storage.model_files import FOCUS, checked_file
from ramify.storage.tensors import load_tensors, save_tensors

OnTeacher = Callable[[int, int], None]
"""Called with the number of sentences that the teachers have parsed, and the total number for all teachers"""


@dataclass(frozen=True)
class SpanScores:
    """The scores of the spans of two words or more of every training sentence, by its place."""

    lengths: Sequence[int]
    """Lengths of the sentences in words"""
    values: NDArray[np.float32]
    """Scores of all sentences one after another, ordered by begin and end"""

    @cached_property
    def starts(self) -> list[int]:
        """The place of the first score of each sentence, and the end of the last."""
        return list(accumulate((N * (N - 1) // 2 for N in self.lengths), initial=0))

    def table(self, place: int) -> NDArray[np.float32]:
        """(N+1, N+1) the scores of one sentence; zero except for spans of two words or more."""
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

    def save(self, folder: Path) -> None:
        """Save them in the folder of the run, so that a resumed run has exactly the same scores."""
        save_tensors(folder / FOCUS, {"scores": torch.from_numpy(self.values)})

    @classmethod
    def load(cls, folder: Path, lengths: Sequence[int]) -> SpanScores:
        """Load the scores that `save` wrote, for sentences of these lengths."""
        size = sum(N * (N - 1) // 2 for N in lengths)
        tensors, _ = load_tensors(checked_file(folder, FOCUS), {"scores": (size,)})
        return cls(lengths, tensors["scores"].numpy())


def scores_of_teachers(
    teachers: Sequence[Member],
    corpora: Sequence[Corpus],
    focus_on: str,
    on_teacher: OnTeacher = lambda *_: None,
) -> SpanScores:
    """The span scores of the teachers, one after another, for all sentences of some corpora, given as words.

    Models that collapsed are left out. With `focus_on` "average", the scores are those of the teachers' average.
    """
    sentences = [
        Sentence.from_tokens(parse.words, where=f"{corpus.source}, sentence {place}")
        for corpus in corpora
        for place, parse in enumerate(corpus.parses, start=1)
    ]
    scores = SpanScores([len(sentence.words) for sentence in sentences], np.zeros(0, np.float32))
    values = np.zeros(scores.starts[-1], np.float32)
    teachers = without_collapsed(teachers, sentences)
    if focus_on != "average":
        passes = [_found_by(teacher, sentences, focus_on) for teacher in teachers]
    else:
        passes = [_trees_of_average(teachers, sentences)]
    for number, tables in enumerate(passes):
        for place, table in enumerate(tables):
            values[scores.starts[place] : scores.starts[place + 1]] += table[np.triu_indices(len(table), 2)]
            if (place + 1) % WINDOW == 0 or place + 1 == len(sentences):
                on_teacher(number * len(sentences) + place + 1, len(passes) * len(sentences))
    return SpanScores(scores.lengths, values)


def _found_by(teacher: Member, sentences: Sequence[Sentence], focus_on: str) -> Iterator[NDArray[np.float32]]:
    for sentence, view in zip(sentences, teacher.views(sentences), strict=True):
        yield table_of(view.spans, len(sentence.words)) if focus_on == "trees" else view.posteriors


def _trees_of_average(teachers: Sequence[Member], sentences: Sequence[Sentence]) -> Iterator[NDArray[np.float32]]:
    """The scores of the average of all teachers, with the mean of their branching bonuses."""
    for sentence, analysis in zip(sentences, Ensemble(teachers).analyse_many(sentences), strict=True):
        yield table_of(analysis.parse.spans, len(sentence.words))
