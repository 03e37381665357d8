"""DIORA: an inside-outside recursive autoencoder (Drozdov, Verga, Yadav, Iyyer and McCallum 2019).

The inside pass computes a vector h and an energy e of every span, which are averages over its splits. The outside pass
computes a vector o of the context of every span, an average over its parents. The loss of a word measures how badly o
distinguishes it from other words.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ramify.models.base import Model
from ramify.models.diora_charts import (
    Cells,
    Chart,
    Weights,
    best_spans,
    fill_chart,
    inside_plan,
    outside_plan,
    unit_length,
)
from ramify.models.networks import initialise
from ramify.structures.distribution import Marginals

NEGATIVES = 100
"""Negatives per word"""
FLATTENING = 0.75
"""Negatives are drawn in proportion to their frequency to this power"""


class Composition(nn.Module):
    """The network of one pass for the two parts x and y of an option: relu(W1 relu(W0 [x; y])) and the score x' S y."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(2 * width, width), nn.Linear(width, width)
        self.score = nn.Parameter(torch.empty(width, width))
        """S"""

    def weights(self) -> Weights:
        """The weights in the form that charts need."""
        of_x, of_y = self.first.weight.T.chunk(2)
        return Weights(of_x, self.first.bias, of_y, self.second.weight.T, self.second.bias, self.score)


class DIORA(Model):
    """Leaves are h = unit(tanh(V x + b)) with e = 0, x the embedding of the word. A span (i, j) has

        e_k = h_ik' S h_kj + e_ik + e_kj,    p = softmax over k of e_k,
        h_ij = unit(sum_k p_k relu(W1 relu(W0 [h_ik; h_kj]))),    e_ij = sum_k p_k e_k.

    Outside, the two vectors are h of the sibling and o of the parent, with separate weights: [sibling; parent] if the
    sibling is on the left, else [parent; sibling]. For the whole sentence, o is a learnt vector of unit length. The
    score of word w at t is o_t' M x_w. The objective of a sentence is the mean over its words of the log-softmax of
    this score among the word and `NEGATIVES` others. It is not a likelihood.
    """

    has_posteriors = False
    allows_dropout = False
    betas = (0.9, 0.999)

    def __init__(self, words: int, embedding: int = 64, width: int = 64) -> None:
        super().__init__()
        self.words, self.width = words, width
        self.embedding = nn.Embedding(words, embedding)
        self.leaf = nn.Linear(embedding, width)
        self.inside, self.outside = Composition(width), Composition(width)
        self.root = nn.Parameter(torch.empty(1, width))
        self.to_words = nn.Linear(embedding, width, bias=False)
        """M"""
        self._initialise()

    def _initialise(self) -> None:
        """Matrices are Xavier-uniform, biases zero.

        Xavier's bound for a table of thousands of words is small. With a random bias, all words would have nearly the
        same leaf, split scores would depend only on the widths of the parts, and S would choose left or right branching
        for all sentences. Without a bias, leaves point in different directions, and their length does not matter.
        """
        initialise(self, "xavier-uniform")
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)

    def objective(
        self,
        word_ids: Tensor,
        lengths: Tensor,
        noise: torch.Generator | None = None,
        dropout: float = 0.0,  # noqa: ARG002
        span_scores: Tensor | None = None,  # noqa: ARG002
    ) -> Tensor:
        """(B,) with negatives that all sentences share, drawn with the noise; without noise always the same ones."""
        negatives = self.negatives(torch.Generator().manual_seed(0) if noise is None else noise).to(word_ids.device)
        parts, places = [], []
        for length in lengths.unique().tolist():  # the cell of the whole sentence depends on the length
            of_length = (lengths == length).nonzero().squeeze(1)
            places.append(of_length)
            parts.append(self._of_one_length(word_ids[of_length, :length], negatives))
        return torch.cat(parts)[torch.cat(places).argsort()]

    def negatives(self, noise: torch.Generator) -> Tensor:
        """Different words (k,), drawn by frequency; the number of a word is its frequency rank (Zipf's law)."""
        weights = torch.arange(1, self.words + 1, dtype=torch.float64) ** -FLATTENING
        return torch.multinomial(weights, min(NEGATIVES, self.words), generator=noise)

    def _of_one_length(self, word_ids: Tensor, negatives: Tensor) -> Tensor:
        """(B,) objectives of sentences (B, N) without padding."""
        _, (vectors, _) = self.charts(word_ids)
        words = word_ids.T
        around = vectors[-len(words) :]  # spans of one word come last
        own = torch.linalg.vecdot(around, self.to_words(self.embedding(words)))
        others = around @ self.to_words(self.embedding(negatives)).T
        others = others.masked_fill(negatives == words[..., None], -torch.inf)
        log_p: Tensor = own - torch.cat([own[..., None], others], -1).logsumexp(-1)
        return log_p.mean(0)

    def charts(self, word_ids: Tensor) -> tuple[Cells, Cells]:
        """The inside and the outside of all spans of sentences (B, N) without padding.

        In the inside, the narrowest spans come first, in the outside the widest; spans of one width are ordered from
        left to right.
        """
        leaves, energies = self._leaves(word_ids)
        N, B, _ = leaves.shape
        inside = fill_chart(inside_plan(N, leaves.device), leaves, energies, self.inside.weights())
        known = torch.cat([inside[0], unit_length(self.root).expand(1, B, -1)])
        known_energies = torch.cat([inside[1], energies[:1]])
        plan = outside_plan(N, leaves.device)
        both = fill_chart(plan, known, known_energies, self.outside.weights())
        begin = len(inside[0])
        return inside, (both[0][begin:], both[1][begin:])

    def _leaves(self, word_ids: Tensor) -> Cells:
        vectors = unit_length(self.leaf(self.embedding(word_ids.T)).tanh())
        return vectors, vectors.new_zeros(vectors.shape[:2])

    @torch.no_grad()
    def marginals(self, word_ids: Tensor, lengths: Tensor) -> Marginals:
        """1 for the spans of the best tree by split scores h_ik' S h_kj, each counted once; 0 for all others."""
        plan = inside_plan(word_ids.shape[1], word_ids.device)
        chart = Chart(plan, *self._leaves(word_ids), self.inside.weights())
        no_likelihood = chart.energy.new_full((len(word_ids),), torch.nan)
        return Marginals(no_likelihood, best_spans(plan, chart.scores, lengths))

    def draws(self) -> bool:
        """The negatives."""
        return True

    @classmethod
    def default_settings(cls) -> dict[str, Any]:
        """Defaults with which 20,000 sentences take an hour on two cores."""
        return {"batch_size": 32, "learning_rate": 0.002, "epochs": 20}

    def described(self) -> str:
        """Kind and width."""
        return f"this DIORA of width {self.width}"

    def sizes(self) -> dict[str, int]:
        """Its width."""
        return {"width": self.width}

    def numbers_per_sentence(self, length: int) -> int:
        """Memory of a training step, as measured: both charts, their gradients, the options of a stage, scores, plans.

        The loss without gradients needs half of it, parsing less than a third.
        """
        return 36 * self.width * (length + 1) ** 2 + length**3

    def expected_seconds(self, length: int) -> float:
        """Time of the inside pass, as measured."""
        return 1.2e-11 * length**3 * self.width * (self.width + 50)
