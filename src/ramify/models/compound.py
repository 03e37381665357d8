"""Compound grammars: every sentence has separate rules, made from a vector z (Kim, Dyer and Rush 2019, sec. 3)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

LATENT_SIZE = 64
"""Size of z, as in Kim et al."""
ENCODER_SIZE = 512
"""Of the word embeddings and of each direction's state, as in Kim et al."""


class SentenceEncoder(nn.Module):
    """q(z | w), a Gaussian with its variances: a bidirectional LSTM, max pooling over time, a linear layer."""

    def __init__(self, words: int, latent: int, size: int = ENCODER_SIZE) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, size)
        self.states = nn.LSTM(size, size, batch_first=True, bidirectional=True)
        self.parameters_of_z = nn.Linear(2 * size, 2 * latent)

    def forward(self, word_ids: Tensor, lengths: Tensor, noise: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """z (B, latent) and KL(q(z | w) || N(0, 1)) (B,), for words (B, N) and lengths (B,).

        z is the mean, or with `noise` a sample that the mean and variance get gradients through.
        """
        packed = pack_padded_sequence(self.embedding(word_ids), lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.states(packed)[0], batch_first=True, padding_value=-torch.inf)
        mean, log_variance = self.parameters_of_z(states.amax(1)).chunk(2, -1)
        divergence = 0.5 * (mean**2 + log_variance.exp() - log_variance - 1).sum(-1)
        if noise is None:
            return mean, divergence
        drawn = torch.randn(mean.shape, generator=noise, device=noise.device, dtype=mean.dtype).to(mean.device)
        return mean + (0.5 * log_variance).exp() * drawn, divergence
