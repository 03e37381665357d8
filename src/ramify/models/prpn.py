"""PRPN: a language model that looks back only as far as learnt distances between words allow (Shen et al. 2018).

The parsing network computes the distance d_t before every word from the word and those just before it. At word t, an
earlier state is visible only if no distance in between is larger than d_t. The reading network is an LSTM whose cell
takes its previous state from the visible states; the predict network chooses among them again for the next word, using
a prediction of the next distance.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from ramify.models.next_word import NextWordModel, drop_units

SLOTS = 15
"""Number of previous states that can be visible; published"""
LOOK_BACK = 5
"""Number of preceding words on which the distance of a word depends; published"""
RESOLUTION = 0.1
"""A distance that is larger by this amount closes a gate; published"""
EPSILON = 1e-8
"""Added to the sum of gated attention, which is zero if all gates are closed"""


class PRPN(NextWordModel):
    """`width` is the size of the hidden states and of the features of the parsing network."""

    def __init__(self, words: int, embedding: int = 200, width: int = 400) -> None:
        super().__init__(words, embedding)
        self.width = width
        self.parsing = ParsingNetwork(embedding, width)
        self.of_input = nn.Linear(embedding, 5 * width)
        self.key_of_state = nn.Linear(width, width, bias=False)
        self.cell_of_state = nn.Linear(width, 4 * width, bias=False)
        self.key_of_next = nn.Linear(width, width)
        self.output = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, embedding))

    def read(self, inputs: Tensor, noise: torch.Generator | None = None, dropout: float = 0.0) -> tuple[Tensor, Tensor]:
        """See `NextWordModel`; dropout applies to the embeddings and to the hidden states that predict."""
        inputs = drop_units(inputs, dropout, noise)
        distances, next_distances = self.parsing(inputs)
        window = visible(inputs.shape[1], inputs.device)
        hidden = self._hidden_states(inputs, slot_gates(distances, distances) * window)
        before = nn.functional.pad(hidden[:, :-1], (0, 0, 1, 0))
        scores = self.key_of_next(hidden) @ before.transpose(1, 2) / math.sqrt(self.width)
        gates = slot_gates(next_distances, distances) * window
        summary = gated_softmax(scores.masked_fill(~window, -torch.inf), gates) @ before
        states: Tensor = self.output(drop_units(torch.cat([hidden, summary], -1), dropout, noise))
        return states, distances

    def _hidden_states(self, inputs: Tensor, gates: Tensor) -> Tensor:
        """(B, T, width) states of the reading network, from inputs (B, T, e) and the gates of slots (B, T, T).

        Slot i contains the state before input i, hidden state and memory cell side by side; slot 0 is zero.
        """
        width = self.width
        key_weight, cell_weight = self.key_of_state.weight.T / math.sqrt(width), self.cell_of_state.weight.T
        of_cell, of_key = self.of_input(inputs.transpose(0, 1)).split([4 * width, width], -1)
        of_key = of_key / math.sqrt(width)
        memory = [inputs.new_zeros(len(inputs), 2 * width)]
        for t in range(inputs.shape[1]):
            slots = torch.stack(memory[-SLOTS:], 1)
            key = torch.addmm(of_key[t], memory[-1][:, :width], key_weight)
            scores = (slots[..., :width] @ key.unsqueeze(-1)).squeeze(-1)
            attention = gated_softmax(scores, gates[:, t, t + 1 - slots.shape[1] : t + 1])
            h, c = (attention.unsqueeze(1) @ slots).squeeze(1).split(width, 1)
            cell = torch.addmm(of_cell[t], h, cell_weight)
            f, i, o = cell[:, : 3 * width].sigmoid().split(width, 1)
            c = torch.addcmul(f * c, i, cell[:, 3 * width :].tanh())
            memory.append(torch.cat([o * c.tanh(), c], 1))
        return torch.stack(memory[1:], 1)[..., :width]

    def sizes(self) -> dict[str, int]:
        """Size of the hidden states."""
        return {"width": self.width}

    def described(self) -> str:
        """Kind and size, for messages."""
        return f"a PRPN, {self.width:,} wide"

    def numbers_per_sentence(self, length: int) -> int:
        """As for every language model, and the gates and attention between all steps."""
        return super().numbers_per_sentence(length) + 12 * (length + 1) ** 2

    @classmethod
    def default_settings(cls) -> dict[str, Any]:
        """Defaults of the version that two cores train in about an hour on 20,000 sentences."""
        return {"batch_size": 32, "learning_rate": 0.001, "dropout": 0.2, "epochs": 20}


class ParsingNetwork(nn.Module):
    """A convolution over a word and those before it; distances lie between 0 and 1."""

    def __init__(self, embedding: int, width: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(embedding, width, LOOK_BACK + 1)
        self.normalise = nn.LayerNorm(width)
        self.distance = nn.Linear(width, 2)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T) the distance before each input (B, T, e), and a prediction of the distance before the next one."""
        padded = nn.functional.pad(inputs, (0, 0, LOOK_BACK, 0))
        features = self.normalise(self.convolution(padded.transpose(1, 2)).transpose(1, 2)).relu()
        own, following = self.distance(features).sigmoid().unbind(-1)
        return own, following


def visible(steps: int, device: torch.device) -> Tensor:
    """(T, T) whether slot i is one of the last at step t."""
    lag = torch.arange(steps, device=device)[:, None] - torch.arange(steps, device=device)
    return (lag >= 0) & (lag < SLOTS)


def slot_gates(of_step: Tensor, distances: Tensor) -> Tensor:
    """(B, T, T) the gate of slot i <= t at step t: the product over inputs j = i .. t of
    (hardtanh(2 (of_step_t - distances_j) / RESOLUTION + 1) + 1) / 2, from distances (B, T).

    Slot i contains the state before input i. When reading, `of_step` is the distance of the input itself, so the factor
    of j = t is one; when predicting, it is that of the next input.
    """
    T = distances.shape[1]
    factors = (nn.functional.hardtanh(2 * (of_step[:, :, None] - distances[:, None]) / RESOLUTION + 1) + 1) / 2
    passed = torch.ones(T, T, dtype=torch.bool, device=distances.device).tril()
    return factors.where(passed, 1).flip(-1).cumprod(-1).flip(-1)


def gated_softmax(scores: Tensor, gates: Tensor) -> Tensor:
    """(..., k) attention with scores (..., k) times gates (..., k), normalised; zero if all gates are closed."""
    weights = (scores - scores.detach().amax(-1, keepdim=True)).exp() * gates
    return weights / (weights.sum(-1, keepdim=True) + EPSILON)
