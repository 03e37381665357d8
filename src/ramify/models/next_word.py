"""Language models that read a sentence from left to right and have a distance before every word."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn

from ramify.models.distances import BIASED, UNBIASED, DistanceModel
from ramify.models.networks import apply_dropout

INITIAL_RANGE = 0.1
"""Initial embeddings are uniform between minus this and this."""


class NextWordModel(DistanceModel):
    """p(w) = product over t = 1 .. N + 1 of p(w_t | w_1 .. w_{t-1}), where w_{N+1} is the end symbol.

    One table is both input embedding and output layer. Its last row is the sentence boundary: the start symbol as
    input, the end symbol as output.
    """

    has_likelihood = True
    read_outs = (UNBIASED, BIASED)
    betas = (0.9, 0.999)

    def __init__(self, words: int, embedding: int) -> None:
        super().__init__()
        self.words = words
        self.symbol_embedding = nn.Parameter(torch.empty(words + 1, embedding).uniform_(-INITIAL_RANGE, INITIAL_RANGE))
        self.symbol_bias = nn.Parameter(torch.zeros(words + 1))

    @abstractmethod
    def read(self, inputs: Tensor, noise: torch.Generator | None = None, dropout: float = 0.0) -> tuple[Tensor, Tensor]:
        """From the embeddings (B, T, e) of the start symbol and the words: (B, T, e) vectors that predict the next
        symbol, and (B, T) the distance before each input. Neither may depend on later inputs.
        """

    def objective(
        self,
        word_ids: Tensor,
        lengths: Tensor,
        noise: torch.Generator | None = None,
        dropout: float = 0.0,
        span_scores: Tensor | None = None,  # noqa: ARG002
    ) -> Tensor:
        """(B,) log p(w)."""
        states, _ = self.read(self._inputs(word_ids), noise, dropout)
        return self._log_probability(states, word_ids, lengths)

    def distances(self, word_ids: Tensor, lengths: Tensor) -> Tensor:  # noqa: ARG002
        """(B, N) see `DistanceModel`."""
        return self.read(self._inputs(word_ids))[1][:, 1:]

    def distances_and_objective(self, word_ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Distances and log p(w) from one pass."""
        states, distances = self.read(self._inputs(word_ids))
        return distances[:, 1:], self._log_probability(states, word_ids, lengths)

    def _inputs(self, word_ids: Tensor) -> Tensor:
        """(B, N + 1, e) embeddings of the start symbol and the words."""
        symbols = nn.functional.pad(word_ids, (1, 0), value=self.words)
        return nn.functional.embedding(symbols, self.symbol_embedding)

    def _log_probability(self, states: Tensor, word_ids: Tensor, lengths: Tensor) -> Tensor:
        """(B,) log p(w) from the predicting vectors (B, N + 1, e); the softmax is computed without padding."""
        steps = torch.arange(states.shape[1], device=lengths.device)
        targets = nn.functional.pad(word_ids, (0, 1)).masked_fill(steps == lengths[:, None], self.words)
        real = steps <= lengths[:, None]
        logits = nn.functional.linear(states[real], self.symbol_embedding, self.symbol_bias)
        loss = nn.functional.cross_entropy(logits, targets[real], reduction="none")
        return -torch.zeros_like(states[..., 0]).masked_scatter(real, loss).sum(1)

    def numbers_per_sentence(self, length: int) -> int:
        """The logits of every step and their gradients, and an estimate of what the layers keep."""
        return (length + 1) * (3 * self.words + 40 * self.symbol_embedding.shape[1])

    def expected_seconds(self, length: int) -> float:
        """Estimate, measured on one core: 0.1 ns for each parameter and word."""
        return 1e-10 * length * sum(parameter.numel() for parameter in self.parameters())


def drop_units(x: Tensor, share: float, noise: torch.Generator | None) -> Tensor:
    """(B, T, k) with dropout of a share of the k units of each sentence, the same units at all steps (Gal and
    Ghahramani 2016); see `apply_dropout`.
    """
    if not share or noise is None:
        return x
    return x * apply_dropout(torch.ones(len(x), 1, x.shape[2], dtype=x.dtype, device=x.device), share, noise)
