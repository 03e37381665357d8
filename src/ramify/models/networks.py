"""Building blocks that several families share."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from ramify.models.linear import Linear, linear
from ramify.models.options import INITIALISATIONS


class Residual(nn.Module):
    """x + relu(W2 relu(W1 x))"""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.first, self.second = Linear(size, size), Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        """(..., size) to (..., size)"""
        update: Tensor = self.second(self.first(x).relu_()).relu_()
        return x + update


class PreNormResidual(nn.Module):
    """x + W2 gelu(W1 rmsnorm(x))"""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(size)
        self.first, self.second = nn.Linear(size, size), nn.Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        """(..., size) to (..., size)"""
        update: Tensor = self.second(nn.functional.gelu(self.first(self.norm(x))))
        return x + update


class CosineLayer(nn.Linear):
    """tau times the cosine of its input with each row of its matrix; tau is exp of a learnt number.

    The length of a vector therefore cannot make some outputs more probable than others.
    """

    def __init__(self, size: int, outputs: int, temperature: float) -> None:
        super().__init__(size, outputs, bias=False)
        self.log_temperature = nn.Parameter(torch.tensor(math.log(temperature)))

    def factors(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs (..., size) and rows (outputs, size) whose products are the outputs."""
        unit = nn.functional.normalize
        return self.log_temperature.exp() * unit(x, dim=-1), unit(self.weight, dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        """(..., size) to (..., outputs)"""
        return nn.functional.linear(*self.factors(x))


class SymbolLayer(nn.Linear):
    """A linear layer for the embedding of a symbol, followed by z of the sentence in a compound grammar.

    It is a sum of a term for the symbol and a term for the sentence, so nothing is computed for every pair of them.
    """

    def __init__(self, embedding: int, latent: int, size: int) -> None:
        super().__init__(embedding + latent, size)

    def forward(self, embedding: Tensor, z: Tensor | None) -> Tensor:  # type: ignore[override]
        """(k, size) from symbols (k, e); with z (B, latent) separate for each sentence, (B, k, size)."""
        if z is None:
            return linear(embedding, self.weight, self.bias)
        by_symbol, by_sentence = self.weight.split([embedding.shape[-1], z.shape[-1]], 1)
        return linear(embedding, by_symbol, self.bias) + linear(z, by_sentence)[:, None]


class SymbolNetwork(nn.Sequential):
    """A `SymbolLayer` and the layers after it."""

    def forward(self, embedding: Tensor, z: Tensor | None) -> Tensor:  # type: ignore[override]
        """Shapes as in its first layer."""
        first, *others = self
        x: Tensor = first(embedding, z)
        for layer in others:
            x = layer(x)
        return x


def state_network(embedding: int, latent: int = 0, blocks: int = 2, pre_norm: bool = False) -> list[nn.Module]:
    """The layers before the output of start and word networks: Linear, residual blocks and, if `pre_norm`, a norm."""
    kind = PreNormResidual if pre_norm else Residual
    last = [nn.RMSNorm(embedding)] if pre_norm else []
    return [SymbolLayer(embedding, latent, embedding), *(kind(embedding) for _ in range(blocks)), *last]


def apply_dropout(x: Tensor, share: float, noise: torch.Generator | None) -> Tensor:
    """Dropout: set a share of the numbers to zero and scale the others, so that the expectation stays the same.

    It uses the noise of the training step, so that a resumed run draws the same; without noise, it changes nothing.
    """
    if not share or noise is None:
        return x
    kept = torch.empty(x.shape).bernoulli_(1 - share, generator=noise)
    return x * kept.div_(1 - share).to(x.device)


def initialise(network: nn.Module, how: str) -> None:
    """Initialise every matrix, including embeddings; `own` keeps the initial values of the layers."""
    if how not in INITIALISATIONS:
        raise ValueError(f"initialisation {how!r} is not one of {', '.join(INITIALISATIONS)}")
    if how != "own":
        draw = nn.init.xavier_normal_ if how == "xavier-normal" else nn.init.xavier_uniform_
        for parameter in network.parameters():
            if parameter.dim() > 1:
                draw(parameter)


def multiply_weights(layers: Iterable[nn.Module], gain: float) -> None:
    """Multiply the initial outputs of linear layers, except the bias, by scaling their weights or temperatures."""
    with torch.no_grad():
        for layer in layers:
            assert isinstance(layer, nn.Linear)
            if isinstance(layer, CosineLayer):
                layer.log_temperature.add_(math.log(gain))
            else:
                layer.weight *= gain
