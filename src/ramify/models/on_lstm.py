"""ON-LSTM: a language model whose memory units are ordered by how long they keep their content (Shen et al. 2019).

Two master gates decide how many units, counted from one end, a step forgets and overwrites. Much is forgotten where a
long constituent ends, so the forgotten share is the distance before the word that is read.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from ramify.models.networks import apply_dropout
from ramify.models.next_word import NextWordModel, drop_units

CHUNK = 10
"""Number of neighbouring units that share a value of the master gates; published"""
PARSING_LAYER = 2
"""The layer whose gates are the distances, counted from 1; published"""


class ONLSTM(NextWordModel):
    """Layers of `width` units; the last is as wide as the embeddings, which are also the output layer."""

    def __init__(self, words: int, embedding: int = 400, width: int = 400, layers: int = 2) -> None:
        super().__init__(words, embedding)
        for name, size in (("embedding", embedding), ("width", width)):
            if size % CHUNK:
                raise ValueError(f"the {name} of on-lstm is {size}, but must be a multiple of {CHUNK}")
        self.width = width
        sizes = [embedding, *[width] * (layers - 1), embedding]
        self.layers = nn.ModuleList(OrderedLayer(*pair) for pair in pairwise(sizes))

    def read(self, inputs: Tensor, noise: torch.Generator | None = None, dropout: float = 0.0) -> tuple[Tensor, Tensor]:
        """See `NextWordModel`; dropout applies to the input and output of every layer, and to recurrent weights."""
        x, distances = drop_units(inputs, dropout, noise), []
        for layer in self.layers:
            x, forgotten = layer(x, noise, dropout)
            x = drop_units(x, dropout, noise)
            distances.append(forgotten)
        return x, distances[min(PARSING_LAYER, len(distances)) - 1]

    def sizes(self) -> dict[str, int]:
        """Number and width of the layers."""
        return {"layers": len(self.layers), "width": self.width}

    def described(self) -> str:
        """Kind and size, for messages."""
        return f"an ON-LSTM of {len(self.layers)} layers, {self.width:,} wide"

    @classmethod
    def default_settings(cls) -> dict[str, Any]:
        """Defaults of the small version that two cores train in about an hour on 20,000 sentences."""
        return {"batch_size": 32, "learning_rate": 0.001, "dropout": 0.3, "epochs": 15}


class OrderedLayer(nn.Module):
    """One layer; `width` must be a multiple of `chunk`."""

    def __init__(self, inputs: int, width: int, chunk: int = CHUNK) -> None:
        super().__init__()
        self.width, self.chunk, self.chunks = width, chunk, width // chunk
        gates = 2 * self.chunks + 4 * width
        self.of_input = nn.Linear(inputs, gates)
        self.of_state = nn.Linear(width, gates, bias=False)

    def forward(self, x: Tensor, noise: torch.Generator | None = None, dropout: float = 0.0) -> tuple[Tensor, Tensor]:
        """(B, T, width) hidden states and (B, T) shares of the memory that each step forgets, from x (B, T, inputs).

        With f~ and 1 - i~ cumulative sums of softmaxes and w = f~ i~, the gates of a unit are f^ = f w + f~ - w and
        i^ = i w + i~ - w (section 4 of the paper). Rows of the weights: those of f~, i~, f, i, o and the new content.
        """
        by_chunk = (self.chunks, self.chunk)
        weight = apply_dropout(self.of_state.weight, dropout, noise).T
        h, c = x.new_zeros(len(x), self.width), x.new_zeros(len(x), *by_chunk)
        states, kept = [], []
        for of_input in self.of_input(x.transpose(0, 1)).unbind():
            gates = torch.addmm(of_input, h, weight)
            of_masters, of_units = gates.split([2 * self.chunks, 4 * self.width], 1)
            keep, skip = of_masters.unflatten(1, (2, self.chunks)).softmax(-1).cumsum(-1).unbind(1)
            f, i, o = of_units[:, : 3 * self.width].sigmoid().unflatten(1, (3, *by_chunk)).unbind(1)
            new = of_units[:, 3 * self.width :].tanh().unflatten(1, by_chunk)
            write = 1 - skip
            overlap = keep * write
            forget = torch.addcmul((keep - overlap).unsqueeze(-1), f, overlap.unsqueeze(-1))
            enter = torch.addcmul((write - overlap).unsqueeze(-1), i, overlap.unsqueeze(-1))
            c = torch.addcmul(forget * c, enter, new)
            h = (o * c.tanh()).flatten(1)
            states.append(h)
            kept.append(keep)
        return torch.stack(states, 1), 1 - torch.stack(kept, 1).mean(-1)
