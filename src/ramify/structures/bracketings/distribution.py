"""Unlabelled binary trees weighted by the scores of their spans: a conditional random field over bracketings.

The distribution of the inference network of URNNG (Kim, Rush, Yu, Kuncoro, Dyer and Melis 2019), of span-based parsers
trained by maximum likelihood, and of uniform trees where all scores are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ramify.structures.bracketings.forest import BracketingForest
from ramify.structures.derivations import KBest, heaviest, sample_with, walk
from ramify.structures.distribution import Tree, TreeDistribution
from ramify.structures.log_space import BEST, SUM, Semiring


@dataclass(frozen=True)
class Bracketings(TreeDistribution):
    """The binary trees of each sentence; the log-weight of a tree is the sum of the potentials of all its spans.

    Single words are spans of every tree, and a sentence of one word has one tree, which is that word.
    """

    log_potentials: Tensor
    """(B, N+1, N+1) the score of words i..j-1 as a constituent; minus infinity forbids it. Only entries i < j within
    the sentence count."""
    lengths: Tensor
    span_scores: Tensor | None = None

    def __post_init__(self) -> None:
        B, posts = self.log_potentials.shape[:2]
        self.check_shapes(B, {"log_potentials": (B, posts, posts)})

    @property
    def longest(self) -> int:
        """N, the number of word positions of the batch."""
        return self.log_potentials.shape[1] - 1

    def log_weights(self) -> Tensor:
        """(B, N+1, N+1) what each span adds to the log-weight of a tree that has it, span scores included."""
        return self.log_potentials if self.span_scores is None else self.log_potentials + self.span_scores

    @torch.no_grad()
    def forest(self, b: int, semiring: Semiring = SUM) -> BracketingForest:
        """All trees of sentence b, in float64."""
        N = int(self.lengths[b])
        return BracketingForest(self.log_weights()[b, : N + 1, : N + 1].cpu().double(), semiring)

    def argmax(self) -> list[Tree | None]:
        """The heaviest tree of each sentence (CYK); None where all are forbidden."""
        return [_bracketing(walk(self.forest(b, BEST), heaviest)) for b in range(len(self))]

    def top_k(self, k: int) -> list[list[Tree]]:
        """The k heaviest trees of each sentence, best first; fewer where there are fewer."""
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        found = (KBest(self.forest(b, BEST), k).trees() for b in range(len(self)))
        return [[replace(tree, labels=None, tags=None) for tree in trees] for trees in found]

    def sample(self, generators: Sequence[np.random.Generator]) -> list[Tree | None]:
        """A tree of each sentence, drawn with its generator in proportion to its weight; None where all are forbidden.

        From the top down, each split in proportion to the total weight of the trees that have it.
        """
        if len(generators) != len(self):
            raise ValueError(f"there are {len(generators)} generators for {len(self)} sentences")
        return [_bracketing(walk(self.forest(b), sample_with(rng))) for b, rng in enumerate(generators)]


def _bracketing(tree: Tree | None) -> Tree | None:
    """Without the only symbol there is."""
    return None if tree is None else replace(tree, labels=None, tags=None)
