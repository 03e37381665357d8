"""Span scores that guide training in addition to the words: teachers and punctuation.

Training maximises

    log sum over trees t of p(w, t) exp(sum of the scores of the spans of t).

The score of a span is beta times that of the teachers (focusing.py), minus a penalty if the span crosses punctuation:
punctuation is a kind of partial bracketing (Pereira and Schabes 1992) that needs no annotation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ramify.corpus.breaks import crossing_spans
from ramify.corpus.tree import Parse
from ramify.training.focusing import SpanScores
from ramify.training.settings import Settings


@dataclass(frozen=True)
class Guidance:
    """Span scores of the training sentences, by their places."""

    sentences: Sequence[Parse]
    settings: Settings
    teachers: SpanScores | None = None

    def span_scores(self, places: Sequence[int], epoch: int, device: torch.device | None = None) -> Tensor | None:
        """(B, N+1, N+1) for sentences of one length; None if all scores are zero."""
        strength, penalty = self.settings.focus_in(epoch), self.settings.crossing_penalty
        scores = None
        if self.teachers is not None and strength:
            scores = strength * self.teachers.of(places)
        sentences = [self.sentences[place] for place in places]
        if penalty and any(sentence.breaks for sentence in sentences):
            crossing = np.stack([crossing_spans(len(sentence), sentence.breaks) for sentence in sentences])
            penalties = torch.from_numpy(crossing).float().mul_(-penalty)
            scores = penalties if scores is None else scores + penalties
        return None if scores is None else scores.to(device)
