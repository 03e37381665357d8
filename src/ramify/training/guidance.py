"""What guides the search for trees in training besides the words: teachers and punctuation.

Training maximises

    log sum over trees t of p(w, t) exp(sum of the scores of the spans of t).

The score of a span is beta times what teachers say (focusing.py), less a penalty if the span crosses punctuation:
bracketing by punctuation is a kind of partial bracketing (Pereira and Schabes 1992), and costs no annotation.
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

    def span_scores(self, places: Sequence[int], epoch: int) -> Tensor | None:
        """(B, N+1, N+1) of sentences of one length; None where nothing guides, so that all scores are zero."""
        strength = self.settings.focus_in(epoch)
        taught = strength * self.teachers.of(places) if self.teachers is not None and strength else None
        penalty = self.settings.crossing_penalty
        if not penalty or not any(self.sentences[place].breaks for place in places):
            return taught
        crossing = np.stack(
            [crossing_spans(len(each), each.breaks) for each in map(self.sentences.__getitem__, places)]
        )
        scores = torch.from_numpy(crossing).float().mul_(-penalty)
        return scores if taught is None else taught + scores
