"""Hol-PCFG: a Simple PCFG without networks, whose children are scored by holographic binding (2026).

Binding two vectors is their circular convolution, the product of their Fourier coefficients (Plate 1995).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.fft import irfft, rfft

from ramify.models.adam import AdamLearner
from ramify.models.emission import word_log_probabilities
from ramify.models.grammar import Grammar
from ramify.models.options import TEMPERATURES
from ramify.structures.low_rank import LowRankRules


class HolPCFG(Grammar):
    """Symbols, words, the start symbol and the relations left, right and word are vectors; with * for binding

        p(B | A) ~ exp(tau <b, left * a>),   p(C | A) ~ exp(tau <c, right * a>),   p(A -> B C) = p(B | A) p(C | A),
        p(w | T) ~ exp(tau' <w, word * t>),   p(A | S) ~ exp(tau" <start, a>).

    All Fourier coefficients of a vector have modulus 1: initially, with uniformly drawn phases, and again after every
    step. All vectors, including bound ones, therefore have unit length, and the products are cosines. The temperatures
    are exp of learnt numbers; `gain` multiplies the initial temperatures.
    """

    is_simple = True

    def __init__(
        self, nonterminals: int, preterminals: int, words: int, embedding: int = 512, gain: float = 1.0
    ) -> None:
        super().__init__(nonterminals, preterminals, nonterminals, words)
        self.symbols = _vectors(nonterminals + preterminals, embedding)
        self.word_vectors = _vectors(words, embedding)
        self.start = _vectors(1, embedding)
        self.relations = _vectors(3, embedding)
        """Left child, right child, word"""
        self.log_temperatures = nn.Parameter(torch.tensor([math.log(gain * each) for each in TEMPERATURES.values()]))
        """Logarithms of the temperatures of start rules, binary rules, words"""

    def vectors(self) -> list[nn.Parameter]:
        """All parameters whose rows have Fourier coefficients of modulus 1."""
        return [self.symbols, self.word_vectors, self.start, self.relations]

    def rules(self, z: Tensor | None = None) -> LowRankRules:  # noqa: ARG002
        """Start and binary rules."""
        parents = self.symbols[: self.nonterminals]
        of_root, of_rules, _ = self.log_temperatures.exp()
        root = of_root * (parents @ self.start[0])
        left, right = (of_rules * (self.symbols @ bind(relation, parents).T) for relation in self.relations[:2])
        return LowRankRules(root.log_softmax(-1), None, left.log_softmax(-2), right.log_softmax(-2))

    def emission(self, word_ids: Tensor, z: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """log p(T -> w) (..., p) of the words given by their numbers (...)."""
        tags = self.log_temperatures[2].exp() * bind(self.relations[2], self.symbols[self.nonterminals :])
        return word_log_probabilities(tags, self.word_vectors, None, word_ids)

    def learner(self, learning_rate: float, clip: float) -> ProjectedAdam:
        """Adam, with a projection after every step."""
        return ProjectedAdam(self, learning_rate, clip)

    @classmethod
    def default_settings(cls) -> dict[str, Any]:
        """The published learning rate."""
        return {"learning_rate": 0.0025}


class ProjectedAdam(AdamLearner):
    """Adam that sets all Fourier coefficients of the grammar's vectors back to modulus 1."""

    def __init__(self, grammar: HolPCFG, learning_rate: float, clip: float) -> None:
        super().__init__(grammar.parameters(), learning_rate, grammar.betas, clip)
        self._grammar = grammar

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step of Adam, and the projection."""
        super().step(closure)
        for parameter in self._grammar.vectors():
            parameter.copy_(to_unit_modulus(parameter))


def bind(relation: Tensor, vectors: Tensor) -> Tensor:
    """A vector (e,) bound to each of (k, e): the circular convolution."""
    found: Tensor = irfft(rfft(relation) * rfft(vectors), vectors.shape[-1])
    return found


def to_unit_modulus(vectors: Tensor) -> Tensor:
    """The nearest vectors (..., e) whose Fourier coefficients have modulus 1; a coefficient of zero becomes 1."""
    coefficients = rfft(vectors)
    found: Tensor = irfft(torch.where(coefficients == 0, 1, coefficients.sgn()), vectors.shape[-1])
    return found


def _vectors(count: int, size: int) -> nn.Parameter:
    """Rows (count, size) with uniform phases; the first coefficient and, for an even size, the last are 1 or -1."""
    vectors = torch.empty(count, size)
    if vectors.device.type != "meta":  # which has only shapes; computing them would import torch's compiler
        phases = 2 * math.pi * torch.rand(count, size // 2 + 1)
        vectors = to_unit_modulus(irfft(torch.polar(torch.ones_like(phases), phases), size))
    return nn.Parameter(vectors)
