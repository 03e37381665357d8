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


class SymbolLayer(nn.Linear):
    """A linear layer that sees a symbol's embedding and, in a compound grammar, a sentence's z behind it.

    It is a sum over symbol and sentence, so it is not made anew for every pair of them.
    """

    def __init__(self, embedding: int, latent: int, size: int) -> None:
        super().__init__(embedding + latent, size)

    def forward(self, embedding: Tensor, z: Tensor | None) -> Tensor:  # type: ignore[override]
        """(k, size) from symbols (k, e); with z (B, latent) one for each sentence, (B, k, size)."""
        linear = nn.functional.linear
        if z is None:
            alone: Tensor = linear(embedding, self.weight, self.bias)
            return alone
        by_symbol, by_sentence = self.weight.split([embedding.shape[-1], z.shape[-1]], 1)
        together: Tensor = linear(embedding, by_symbol, self.bias) + linear(z, by_sentence)[:, None]
        return together


class SymbolNetwork(nn.Sequential):
    """A `SymbolLayer` and what follows it."""

    def forward(self, embedding: Tensor, z: Tensor | None) -> Tensor:  # type: ignore[override]
        """As of its first layer."""
        first, *others = self
        x: Tensor = first(embedding, z)
        for layer in others:
            x = layer(x)
        return x


def state_network(embedding: int, latent: int = 0) -> list[nn.Module]:
    """The layers before the output of start and word networks: Linear, two residual blocks."""
    return [SymbolLayer(embedding, latent, embedding), Residual(embedding), Residual(embedding)]


def output_layer(embedding: int, size: int, gain: float) -> nn.Linear:
    """A linear layer with its initial weights multiplied by `gain`."""
    layer = nn.Linear(embedding, size)
    with torch.no_grad():
        layer.weight *= gain
    return layer
