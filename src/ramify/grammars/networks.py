"""Parts that several families are made of."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ramify.inference import emission


class Residual(nn.Module):
    """x + relu(W2 relu(W1 x))"""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(size, size), nn.Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        """(..., size) to (..., size)"""
        update: Tensor = self.second(self.first(x).relu()).relu()
        return x + update


def state_network(embedding: int, latent: int = 0) -> list[nn.Module]:
    """The layers before the output of start and word networks: Linear, two residual blocks."""
    return [nn.Linear(embedding + latent, embedding), Residual(embedding), Residual(embedding)]


def output_layer(embedding: int, size: int, gain: float) -> nn.Linear:
    """A linear layer with its initial weights multiplied by `gain`."""
    layer = nn.Linear(embedding, size)
    with torch.no_grad():
        layer.weight *= gain
    return layer


def word_log_probabilities(states: Tensor, layer: nn.Linear, word_ids: Tensor) -> Tensor:
    """log p(T -> w) (..., p), softmax over all words, for the words given by their numbers (...).

    `states` are (p, e), or (B, p, e) with word numbers (B, N) where each sentence has its own.
    """
    if states.dim() == 2:
        return emission.word_log_probabilities(states, layer.weight, layer.bias, word_ids)
    weights = nn.functional.embedding(word_ids, layer.weight)
    logits = weights @ states.mT + layer.bias[word_ids][..., None]
    vocabulary_logits: Tensor = layer(states)  # (..., p, q)
    return logits - vocabulary_logits.logsumexp(-1).unsqueeze(-2)
