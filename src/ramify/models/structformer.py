"""StructFormer: a masked language model whose attention follows an induced dependency graph (Shen et al. 2021).

A parser network computes a height delta_i of every word i and the distance tau_i between word i and word i + 1. They
define, for every word, a soft constituent around it and the head of that constituent (`boundaries`,
`head_probabilities`). In the Transformer, words attend only to their heads and dependents, so the prediction of masked
words trains the parser. The tree splits where the distance is largest.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, layer_norm, leaky_relu, linear, pad

from ramify.models.distances import DistanceModel
from ramify.models.networks import apply_dropout

MASKED = 0.3
"""Share of the words that a training step masks"""
ROUNDS = 3
"""Without noise every word is masked once: every third word in each of three rounds"""
CONVOLUTIONS, KERNEL = 3, 9
"""Number of convolutions of the parser network"""
WIDTH_OF_HEAD = 64
"""One attention head for this much of the width"""
POSITIONS = 500
"""Number of learnt position embeddings; later words share the last one"""


class StructFormer(DistanceModel):
    """A parser network and a Transformer over the same word embeddings, which also predict the masked words."""

    betas = (0.9, 0.999)

    @classmethod
    def default_settings(cls) -> dict[str, Any]:
        """Defaults of the small version."""
        return {"batch_size": 32, "learning_rate": 0.0005, "epochs": 20, "dropout": 0.1}

    def __init__(self, words: int, width: int = 256, layers: int = 3) -> None:
        super().__init__()
        attention_heads = max(1, width // WIDTH_OF_HEAD)
        if width % attention_heads:
            raise ValueError(f"width {width} cannot be divided among {attention_heads} attention heads")
        self.words, self.width, self.attention_heads = words, width, attention_heads
        self.embedding = nn.Embedding(words + 1, width)  # the last row is that of masked words
        self.position = nn.Parameter(torch.empty(POSITIONS, width))
        padding = KERNEL // 2
        self.convolutions = nn.ModuleList(nn.Conv1d(width, width, KERNEL, padding=padding) for _ in range(CONVOLUTIONS))
        self.distance = ScoreNetwork(2 * width, width)
        self.height = ScoreNetwork(width, width)
        self.log_scales = nn.Parameter(torch.zeros(2))
        self.layers = nn.ModuleList(DependencyLayer(width, attention_heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.word_bias = nn.Parameter(torch.zeros(words))
        for table in (self.embedding.weight, self.position):
            nn.init.uniform_(table, -0.1, 0.1)

    def objective(
        self,
        word_ids: Tensor,
        lengths: Tensor,
        noise: torch.Generator | None = None,
        dropout: float = 0.0,
        span_scores: Tensor | None = None,  # noqa: ARG002
    ) -> Tensor:
        """(B,) the sum of log p(word | the words that are not masked) over the words.

        A training step masks some words and multiplies their mean by the length of the sentence; without noise every
        word is masked in one of three rounds.
        """
        places = torch.arange(word_ids.shape[1], device=word_ids.device)
        inside = places < lengths[:, None]
        if noise is not None:
            masked = draw_masked(inside, noise)
            found = self.masked_log_probability(word_ids, lengths, masked, noise, dropout)
            return found * lengths / masked.sum(1)
        rounds = [inside & (places % ROUNDS == k) for k in range(min(ROUNDS, len(places)))]
        return torch.stack([self.masked_log_probability(word_ids, lengths, masked) for masked in rounds]).sum(0)

    def distances(self, word_ids: Tensor, lengths: Tensor) -> Tensor:
        """(B, N) the distance before every word of sentences (B, N): tau of the preceding word; no word is masked."""
        tau, _ = self.distances_and_heights(self.embedding(word_ids), lengths)
        return pad(tau[:, :-1], (1, 0))

    def masked_log_probability(
        self,
        word_ids: Tensor,
        lengths: Tensor,
        masked: Tensor,
        noise: torch.Generator | None = None,
        dropout: float = 0.0,
    ) -> Tensor:
        """(B,) the sum of log p(word | the others) over the masked words (B, N) of each sentence."""
        B, N = word_ids.shape
        embedded = self.embedding(word_ids.masked_fill(masked, self.words))
        attended = self.head_probabilities(embedded, lengths)
        places = torch.arange(N, device=word_ids.device)
        x = embedded + self.position[places.clamp(max=POSITIONS - 1)]
        for layer in self.layers:
            x = layer(x, attended, noise, dropout)
        x = apply_dropout(self.norm(x[masked]), dropout, noise)
        logits = linear(x, self.embedding.weight[: self.words], self.word_bias)
        log_p = -cross_entropy(logits, word_ids[masked], reduction="none")
        return log_p.new_zeros(B).index_add(0, masked.nonzero()[:, 0], log_p)

    def distances_and_heights(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(B, N) tau after every word and (B, N) delta, of embedded sentences (B, N, width); those of padding, and tau
        after the last word, have no meaning.
        """
        x = embedded
        padding = torch.arange(x.shape[1], device=x.device) >= lengths[:, None]
        for convolution in self.convolutions:
            x = convolution(x.masked_fill(padding[..., None], 0).mT).mT
            x = layer_norm(x, (self.width,)).tanh()
        following = pad(x[:, 1:], (0, 0, 0, 1))
        return self.distance(torch.cat([x, following], -1)), self.height(x)

    def head_probabilities(self, embedded: Tensor, lengths: Tensor) -> Tensor:
        """(B, N, N) p(word h is the head | word l), entry [b, l, h]; zero where l = h, and between words and padding.

        Words never reach other sentences, because no constituent crosses the gap after the last word.
        """
        tau, delta = self.distances_and_heights(embedded, lengths)
        closed = torch.arange(tau.shape[1], device=tau.device) >= lengths[:, None] - 1
        tau = tau - margin(tau, delta, lengths)[:, None]
        of_crossing, of_heights = self.log_scales.exp()
        crossing = (of_crossing * (delta[:, :, None] - tau[:, None])).sigmoid()
        left, right = boundaries(crossing.masked_fill(closed[:, None], 0))
        heads = head_probabilities(left, right, of_heights * delta)
        return heads.masked_fill(torch.eye(tau.shape[1], dtype=torch.bool, device=tau.device), 0)

    def draws(self) -> bool:
        """True, because the masked words are random."""
        return True

    def described(self) -> str:
        """Width and number of layers."""
        return f"a StructFormer of {len(self.layers)} layers {self.width} wide"

    def sizes(self) -> dict[str, int]:
        """Width and number of layers."""
        return {"width": self.width, "layers": len(self.layers)}

    def numbers_per_sentence(self, length: int) -> int:
        """Hidden states, the matrices of attention and of spans, and the logits of the words masked in one round."""
        attention = (self.attention_heads + 12) * length**2
        return 16 * self.width * length + attention + 2 * self.words * (length // ROUNDS + 1)

    def expected_seconds(self, length: int) -> float:
        """Estimate for the parser network: 3e-11 seconds on one core for each weight of its convolutions and word."""
        return 3e-11 * CONVOLUTIONS * KERNEL * self.width**2 * length


class ScoreNetwork(nn.Module):
    """A number for every vector: Linear, LayerNorm, tanh, Linear."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.hidden, self.score = nn.Linear(size, width), nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        """(...) from (..., size)"""
        hidden: Tensor = self.hidden(x)
        score: Tensor = self.score(layer_norm(hidden, hidden.shape[-1:]).tanh())
        return score.squeeze(-1)


class DependencyLayer(nn.Module):
    """A layer of a Transformer, normalised before each part, in which a word attends to its head and its dependents.

    The weight of a pair of words is sigmoid(q.k / sqrt(d)) times a mix of p(head | word) in both directions; every
    attention head learns a separate mix.
    """

    def __init__(self, width: int, attention_heads: int) -> None:
        super().__init__()
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.projection, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.direction = nn.Parameter(torch.empty(attention_heads, 2))
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        nn.init.normal_(self.direction, 0, 0.1)
        for matrix in (*self.projection.weight.detach().chunk(3), self.output.weight):
            nn.init.xavier_uniform_(matrix)
        for layer in (self.projection, self.output):
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor, heads: Tensor, noise: torch.Generator | None, dropout: float) -> Tensor:
        """(B, N, width) from (B, N, width) and p(head | word) (B, N, N)."""
        x = x + apply_dropout(self.attention(self.attention_norm(x), heads), dropout, noise)
        inner = leaky_relu(self.inner(self.feed_forward_norm(x)))
        return x + apply_dropout(self.outer(apply_dropout(inner, dropout, noise)), dropout, noise)

    def attention(self, x: Tensor, heads: Tensor) -> Tensor:
        """(B, N, width) from (B, N, width)."""
        query, key, value = self.projection(x).unflatten(-1, (3, len(self.direction), -1)).permute(2, 0, 3, 1, 4)
        to_head, to_dependents = self.direction.softmax(-1).T[..., None, None]
        allowed = to_head * heads[:, None] + to_dependents * heads.mT[:, None]
        weights = (query @ key.mT / math.sqrt(query.shape[-1])).sigmoid() * allowed
        mixed: Tensor = self.output((weights @ value).transpose(1, 2).flatten(2))
        return mixed


def draw_masked(inside: Tensor, noise: torch.Generator) -> Tensor:
    """(B, N) which of the words inside their sentences (B, N) are masked: a random share, but at least one each."""
    drawn = torch.rand(inside.shape, generator=noise).to(inside.device).masked_fill(~inside, 2)
    return (drawn < MASKED) | (drawn == drawn.amin(1, keepdim=True))


def margin(tau: Tensor, delta: Tensor, lengths: Tensor) -> Tensor:
    """(B,) by how much the distances (B, N) must be lowered so that the heights (B, N) fit them.

    The highest word of every span but the whole sentence must be higher than the lower one of the two distances around
    the span. Otherwise the word would be its own head, although it is not the root.
    """
    N = tau.shape[1]
    place = torch.arange(N, device=tau.device)
    after = tau.masked_fill(place >= lengths[:, None] - 1, torch.inf)
    before = pad(after[:, :-1], (1, 0), value=torch.inf)
    backwards = place < place[:, None]
    highest = delta[:, None].expand(-1, N, -1).masked_fill(backwards, -torch.inf).cummax(-1).values
    last = lengths[:, None, None] - 1
    no_part = backwards | (place > last) | ((place[:, None] == 0) & (place == last))
    lacking = torch.minimum(before[:, :, None], after[:, None]) - highest
    return lacking.masked_fill(no_part, 0).clamp(min=0).amax((1, 2))


def boundaries(crossing: Tensor) -> tuple[Tensor, Tensor]:
    """(B, N, N) p(word i is the first of word l's constituent | l), and (B, N, N) p(word j is its last | l).

    `crossing` (B, N, N) is the degree to which the constituent of word l crosses the gap after word k, entry [b, l, k].
    The degree to which it reaches a word is the minimum over the gaps on the way; differences between neighbouring
    words are probabilities.
    """
    N = crossing.shape[1]
    place = torch.arange(N, device=crossing.device)
    to_left = crossing.masked_fill(place >= place[:, None], 1)
    reached = to_left.flip(-1).cummin(-1).values.flip(-1)
    left = reached - pad(reached[..., :-1], (1, 0))
    to_right = crossing.masked_fill(place < place[:, None], 1)
    reached = pad(to_right[..., :-1], (1, 0), value=1).cummin(-1).values
    return left, reached - pad(reached[..., 1:], (0, 1))


def head_probabilities(left: Tensor, right: Tensor, logits: Tensor) -> Tensor:
    """(B, N, N) p(word h is the head of word l's constituent | l), entry [b, l, h]; it sums to one over h.

    p(h | l) = sum over i <= j of p(i | l) p(j | l) p(h | i..j), the last a softmax of `logits` (B, N) in the span.
    `left` and `right` (B, N, N) are those of `boundaries`. All spans at once would take N^3 numbers.
    """
    N = logits.shape[1]
    after_last = torch.ones(N, N, dtype=torch.bool, device=logits.device).triu(1)
    heads = []
    for i in range(N):
        in_span = logits[:, None, i:].expand(-1, N - i, -1).masked_fill(after_last[i:, i:], -torch.inf).softmax(-1)
        found = (left[:, i:, i, None] * right[:, i:, i:]) @ in_span
        heads.append(pad(found, (i, 0, i, 0)))
    return torch.stack(heads).sum(0)
