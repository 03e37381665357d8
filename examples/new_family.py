"""A new kind of distribution and a family of models that uses it, defined outside the package.

The distribution is over unlabelled binary trees whose spans have scores. The family learns these scores from raw text
by contrastive estimation (Smith and Eisner 2005): the words in their order should have more weight, summed over all
trees, than the same words with two neighbours swapped. It has no likelihood and no labels. An entry point in the group
`ramify.models` would make it available to the command line too.

    python examples/new_family.py
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

import ramify
from ramify.models import Model, register
from ramify.structures.distribution import Marginals, TreeDistribution
from ramify.structures.engines import Engine, register_engine


@dataclass(frozen=True)
class SpanTrees(TreeDistribution):
    """Binary trees weighted by the scores of their spans."""

    spans: Tensor
    """(B, N+1, N+1)"""
    lengths: Tensor
    span_scores: Tensor | None = None

    @property
    def longest(self) -> int:
        """N, the number of word positions of the batch."""
        return self.spans.shape[1] - 1


def log_partition(trees: SpanTrees) -> Tensor:
    """The inside algorithm without labels: O(N^3)."""
    scores, N = trees.spans + trees.scores(), trees.longest
    chart = {(i, i + 1): scores.new_zeros(len(trees)) for i in range(N)}
    for width in range(2, N + 1):
        for i in range(N - width + 1):
            j = i + width
            splits = torch.stack([chart[i, k] + chart[k, j] for k in range(i + 1, j)])
            chart[i, j] = splits.logsumexp(0) + scores[:, i, j]
    whole = torch.stack([chart[0, n] for n in range(1, N + 1)])
    return whole.gather(0, trees.lengths[None] - 1)[0]


register_engine(SpanTrees, "reference", Engine(log_partition))


@register("contrastive")
class ContrastiveBrackets(Model):
    """The score of a span depends on its first and its last word."""

    def __init__(self, words: int, size: int = 16) -> None:
        super().__init__()
        self.words = words
        self.first, self.last = nn.Embedding(words, size), nn.Embedding(words, size)

    def forward(self, word_ids: Tensor, lengths: Tensor) -> SpanTrees:
        """The distribution over the trees of sentences (B, N)."""
        B, N = word_ids.shape
        spans = self.first.weight.new_zeros(B, N + 1, N + 1)
        spans[:, :N, 1:] = self.first(word_ids) @ self.last(word_ids).mT
        return SpanTrees(spans, lengths)

    def objective(self, word_ids, lengths, noise=None, dropout=0.0) -> Tensor:  # noqa: ARG002
        """(B,) the log of the sentence's share of the weight of itself and all versions with two words swapped."""
        candidates = [word_ids]
        for i in range(word_ids.shape[1] - 1):
            order = torch.arange(word_ids.shape[1])
            order[[i, i + 1]] = order[[i + 1, i]]
            candidates.append(word_ids[:, order])
        log_z = torch.stack([self(candidate, lengths).log_partition() for candidate in candidates])
        return log_z.log_softmax(0)[0]

    @torch.no_grad()
    def marginals(self, word_ids: Tensor, lengths: Tensor) -> Marginals:
        """Span posteriors."""
        return self(word_ids, lengths).marginals()


SENTENCES = [
    "the dog saw a cat",
    "a cat saw the dog",
    "the old man saw a dog",
    "a dog saw the old man",
    "the man saw it",
    "it saw the old cat",
]

if __name__ == "__main__":
    parser = ramify.fit([line.split() for line in SENTENCES], model="contrastive", epochs=30, size=8)
    print(parser("the old dog saw a man").tree)
