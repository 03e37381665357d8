"""Parts that several families are made of."""

from __future__ import annotations

import torch
from torch import Tensor, nn


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


def of_symbols(network: nn.Sequential, embedding: Tensor, z: Tensor | None) -> Tensor:
    """A network's output for symbols (k, e), or for each sentence (B, k, ...) with z (B, latent) behind each symbol.

    The first layer is linear, so it is a sum over symbols and sentences, and need not be made for every pair of them.
    """
    first, *others = network
    assert isinstance(first, nn.Linear)
    if z is None:
        x: Tensor = first(embedding)
    else:
        by_symbol, by_sentence = first.weight.split([embedding.shape[-1], z.shape[-1]], 1)
        x = nn.functional.linear(embedding, by_symbol, first.bias) + (z @ by_sentence.T)[:, None]
    for layer in others:
        x = layer(x)
    return x
