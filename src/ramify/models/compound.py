"""Compound grammars: every sentence has separate rules, computed from a vector z (Kim, Dyer and Rush 2019, sec. 3)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ramify.runtime.parallel_autograd import Part, run_parts

LATENT_SIZE = 64
"""Size of z, as in Kim et al."""
ENCODER_SIZE = 512
"""Size of the word embeddings and of the state of each direction, as in Kim et al."""


class SentenceEncoder(nn.Module):
    """q(z | w), a Gaussian with its variances: a bidirectional LSTM, max pooling over time, a linear layer."""

    def __init__(self, words: int, latent: int, size: int = ENCODER_SIZE) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, size)
        self.states = nn.LSTM(size, size, batch_first=True, bidirectional=True)
        self.parameters_of_z = nn.Linear(2 * size, 2 * latent)

    def forward(self, word_ids: Tensor, lengths: Tensor, noise: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """z (B, latent) and KL(q(z | w) || N(0, 1)) (B,), for words (B, N) and lengths (B,).

        z is the mean or, with `noise`, a sample through which gradients reach the mean and variance.
        """
        mean, log_variance = self.parameters_of_z(self._pooled(self.embedding(word_ids), lengths)).chunk(2, -1)
        divergence = 0.5 * (mean**2 + log_variance.exp() - log_variance - 1).sum(-1)
        if noise is None:
            return mean, divergence
        drawn = torch.randn(mean.shape, generator=noise, device=noise.device, dtype=mean.dtype).to(mean.device)
        return mean + (0.5 * log_variance).exp() * drawn, divergence

    def _pooled(self, words: Tensor, lengths: Tensor) -> Tensor:
        """(B, 2 size): the largest state of each unit, of words (B, N, size)."""
        if (lengths == words.shape[1]).all():  # as in training: both directions at the same time
            return torch.cat(run_parts([self._direction(words, ""), self._direction(words.flip(1), "_reverse")]), -1)
        packed = pack_padded_sequence(words, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.states(packed)[0], batch_first=True, padding_value=-torch.inf)
        found: Tensor = states.amax(1)
        return found

    def _direction(self, words: Tensor, name: str) -> Part:
        weights = [
            getattr(self.states, f"{kind}_l0{name}") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ]
        zeros = words.new_zeros(1, len(words), self.states.hidden_size)

        def pooled() -> Tensor:
            states: Tensor = torch.lstm(words, (zeros, zeros), weights, True, 1, 0.0, False, False, True)[0]
            return states.amax(1)

        return Part(pooled, [words, *weights], 2 * words[..., 0].numel() * sum(weight.numel() for weight in weights))
