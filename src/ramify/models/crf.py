"""A tree CRF over the span scores of a bidirectional LSTM: a parser that learns from the trees of other parsers.

It is the inference network of URNNG (Kim, Rush, Yu, Kuncoro, Dyer and Melis 2019, Unsupervised Recurrent Neural Network
Grammars) without the generative model, which trains it in that paper. Here teachers train it: it is a small and fast
student of one or several slow parsers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ramify.errors import RamifyError
from ramify.models.base import Model
from ramify.models.networks import apply_dropout
from ramify.structures.bracketings import Bracketings
from ramify.structures.distribution import Marginals

INITIAL_RANGE = 0.1
"""All parameters start out uniform between minus this and this"""
BINARY_TOLERANCE = 1e-3
"""Relative tolerance for the sum of the span posteriors, which equals the number of spans of a binary tree"""


class CRF(Model):
    """p(t | w) is proportional to exp of the sum of the scores s_ij of the spans of t (Kim et al. 2019).

    s_ij = v' relu(W [f_j - f_i; b_i - b_j] + c), where f_i is the state of the forward LSTM after a start symbol and
    the words before fence post i, and b_i that of the backward LSTM after an end symbol and the words from i on. All
    binary trees of a sentence have the same number of spans, so a constant in s_ij would have no effect. Single words
    have no score.
    """

    takes_span_scores = True
    needs_teachers = True
    betas = (0.9, 0.999)

    def __init__(self, words: int, embedding: int = 128, width: int = 128, layers: int = 1) -> None:
        super().__init__()
        for name, size in {"words": words, "embedding": embedding, "width": width, "layers": layers}.items():
            if size < 1:
                raise ValueError(f"{name} is {size}, but must be at least 1")
        self.words, self.width = words, width
        self.embedding = nn.Embedding(words + 2, embedding)  # the last two are the start and the end symbol
        self.encoder = nn.ModuleList(
            nn.LSTM(2 * width if layer else embedding, width, batch_first=True, bidirectional=True)
            for layer in range(layers)
        )
        self.hidden, self.score = nn.Linear(2 * width, width), nn.Linear(width, 1, bias=False)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -INITIAL_RANGE, INITIAL_RANGE)

    def forward(
        self, word_ids: Tensor, lengths: Tensor, noise: torch.Generator | None = None, dropout: float = 0.0
    ) -> Bracketings:
        """The distribution over the trees of sentences (B, N), padded with any valid word number.

        `dropout` applies to the embeddings and to the states of every layer.
        """
        B, N = word_ids.shape
        # W of a difference is the difference of W, so it is computed for N + 1 posts instead of all spans.
        begins = nn.functional.linear(self._fence_posts(word_ids, lengths, noise, dropout), self.hidden.weight)
        ends = begins + self.hidden.bias
        # The first row is empty, so a batch of single words also has a gradient, which is zero.
        rows = [begins[:, 0, :0]]
        rows += [(ends[:, i + 2 :] - begins[:, i, None]).relu_() @ self.score.weight[0] for i in range(N - 1)]
        scores = begins.new_zeros(B, N + 1, N + 1)
        i, j = torch.triu_indices(N + 1, N + 1, 2, device=scores.device)
        scores[:, i, j] = torch.cat(rows, 1)
        return Bracketings(scores, lengths)

    def _fence_posts(self, word_ids: Tensor, lengths: Tensor, noise: torch.Generator | None, dropout: float) -> Tensor:
        """(B, N+1, 2 width) f_i and, negated, b_i."""
        B, N = word_ids.shape
        framed = word_ids.new_full((B, N + 2), self.words)
        framed[:, 1:-1] = word_ids
        framed[torch.arange(B, device=framed.device), lengths + 1] = self.words + 1
        states, sizes = apply_dropout(self.embedding(framed), dropout, noise), (lengths + 2).cpu()
        for layer in self.encoder:
            packed = pack_padded_sequence(states, sizes, batch_first=True, enforce_sorted=False)
            states, _ = pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=N + 2)
            states = apply_dropout(states, dropout, noise)
        forward, backward = states.chunk(2, -1)
        return torch.cat([forward[:, :-1], -backward[:, 1:]], -1)

    def objective(
        self,
        word_ids: Tensor,
        lengths: Tensor,
        noise: torch.Generator | None = None,
        dropout: float = 0.0,
        span_scores: Tensor | None = None,
    ) -> Tensor:
        """(B,) E[log p(t | w)] with trees t from the teachers: minus the cross-entropy of their trees and the model's.

        `span_scores` (B, N+1, N+1) are sums over the teachers of span posteriors, at any scale. E[log p(t | w)] is the
        sum over spans of mean posterior times score, minus log Z. It is zero, without a gradient, for single words and
        for sentences that no teacher can parse.
        """
        if span_scores is None:
            raise ValueError("a CRF learns only from the trees of other parsers; give their span scores")
        trees = self(word_ids, lengths, noise, dropout)
        posteriors, is_taught = mean_posteriors(span_scores, lengths)
        expected = (posteriors * trees.log_potentials).sum((1, 2))
        return torch.where(is_taught, expected - trees.log_partition(), 0)

    @torch.no_grad()
    def marginals(self, word_ids: Tensor, lengths: Tensor) -> Marginals:
        """Span posteriors."""
        found: Marginals = self(word_ids, lengths).marginals()
        return found

    def described(self) -> str:
        """Kind and size, for messages."""
        return f"a tree CRF of width {self.width:,}"

    def sizes(self) -> dict[str, int]:
        """Width and number of layers."""
        return {"width": self.width, "layers": len(self.encoder)}

    def numbers_per_sentence(self, length: int) -> int:
        """The hidden layer of the span scores, kept for the backward pass, and the states."""
        return (length + 1) ** 2 * (self.width // 2 + 8) + 16 * (length + 2) * self.width * len(self.encoder)

    def expected_seconds(self, length: int) -> float:
        """The LSTM, the span scores and the chart."""
        per_word = 5e-10 * self.width * (self.width + self.embedding.embedding_dim) * len(self.encoder)
        return length * per_word + 5e-10 * length**2 * self.width + 4e-9 * length**3

    @classmethod
    def default_settings(cls) -> dict[str, Any]:
        """Larger batches than those of grammars, and dropout."""
        return {"batch_size": 32, "learning_rate": 0.001, "dropout": 0.3, "epochs": 10}


def mean_posteriors(span_scores: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The teachers' mean posteriors (B, N+1, N+1), and (B,) which sentences at least one teacher could parse.

    Every teacher with a parse has the whole sentence as a span, so the score of this span is the number of such
    teachers. Trees that are not binary are refused, because the cross-entropy could grow without limit.
    """
    scores = span_scores.triu(2)
    whole = scores[torch.arange(len(scores), device=scores.device), 0, lengths]
    is_taught = whole > 0
    posteriors = scores / torch.where(is_taught, whole, 1)[:, None, None]
    spans = lengths - 1
    if bool((is_taught & ((posteriors.sum((1, 2)) - spans).abs() > BINARY_TOLERANCE * spans)).any()):
        raise RamifyError(
            "crf learns only from binary trees, but a teacher has trees that are not binary; leave out this teacher, "
            "or make its trees binary."
        )
    return posteriors, is_taught
