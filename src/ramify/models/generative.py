"""Models that give every sentence a probability, the sum over its labelled trees."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ramify.models.base import Model
from ramify.models.compound import LATENT_SIZE
from ramify.structures.distribution import Marginals, TreeDistribution
from ramify.structures.fallback import reliable_marginals

DEFAULT_PRETERMINALS = 60


class GenerativeModel(Model):
    """Called with sentences, it returns their distribution over labelled trees, whose weights are p(tree, words)."""

    has_likelihood = True
    takes_span_scores = True
    divides_work = True
    is_simple = False
    """Whether every nonterminal is one rank component (a Simple PCFG, without U)"""
    rank: int | None
    """Number of components of which rules are a sum; None for dense rules"""
    latent: int = 0
    """Size of the vector that determines the rules of a sentence; 0 if all sentences have the same rules"""

    def __init__(self, nonterminals: int, preterminals: int, rank: int | None, words: int) -> None:
        super().__init__()
        sizes = {"nonterminals": nonterminals, "preterminals": preterminals, "rank": rank, "words": words}
        for name, size in sizes.items():
            if size is not None and size < 1:
                raise ValueError(f"a grammar needs at least one of its {name}, not {size}")
        self.nonterminals, self.preterminals = nonterminals, preterminals
        self.rank, self.words = rank, words

    @abstractmethod
    def with_cost(self, word_ids: Tensor, lengths: Tensor, noise: torch.Generator | None = None) -> tuple[Any, Tensor]:
        """The distribution over the trees of sentences (B, N), and (B,) a term to subtract from log p(w)."""

    def forward(self, word_ids: Tensor, lengths: Tensor) -> Any:
        """The distribution over the trees of sentences (B, N), padded with any valid word number."""
        return self.with_cost(word_ids, lengths)[0]

    def objective(
        self,
        word_ids: Tensor,
        lengths: Tensor,
        noise: torch.Generator | None = None,
        dropout: float = 0.0,
        span_scores: Tensor | None = None,
    ) -> Tensor:
        """(B,) log p(w), or a lower bound of it; a sentence with p(w) = 0 has a zero gradient.

        With `span_scores`, every tree's probability is multiplied by exp of the sum of the scores of its spans.
        """
        distribution, cost = self.with_cost(word_ids, lengths, noise)
        return self.objective_of(distribution, noise, dropout, span_scores) - cost

    def networks(self, word_ids: Tensor, lengths: Tensor) -> TreeDistribution | None:
        """The distribution over the trees of a batch (B, N); None if every sentence has separate rules."""
        return None if self.latent else self.with_cost(word_ids, lengths)[0]

    def objective_of(
        self,
        distribution: Any,
        noise: torch.Generator | None = None,
        dropout: float = 0.0,
        span_scores: Tensor | None = None,
    ) -> Tensor:
        """(B,) log p(w) under a distribution, without the cost of separate rules for each sentence."""
        if span_scores is not None:
            distribution = distribution.with_span_scores(span_scores)
        if dropout:
            assert noise is not None
            distribution = self.thinned(distribution, dropout, noise)
        result: Tensor = distribution.log_partition()
        return result

    def thinned(self, distribution: Any, dropout: float, noise: torch.Generator) -> Any:
        """The distribution without some symbols, if the family allows dropout."""
        raise NotImplementedError

    @torch.no_grad()
    def marginals(self, word_ids: Tensor, lengths: Tensor) -> Marginals:
        """Posteriors of spans, labels and tags, and of arcs if symbols have heads."""
        return reliable_marginals(self.forward(word_ids, lengths))[0]

    def described(self) -> str:
        """Kind and size, for messages."""
        return f"a grammar with {self.nonterminals:,} + {self.preterminals:,} symbols"

    def sizes(self) -> dict[str, int]:
        """Nonterminals, preterminals and, if there is one, the rank."""
        sizes = {"nonterminals": self.nonterminals, "preterminals": self.preterminals}
        return sizes if self.rank is None or self.is_simple else sizes | {"rank": self.rank}

    def label_names(self) -> tuple[str, ...]:
        """`NT-0`, `NT-1` and so on."""
        return tuple(f"NT-{number}" for number in range(self.nonterminals))

    def tag_names(self) -> tuple[str, ...]:
        """`T-0`, `T-1` and so on."""
        return tuple(f"T-{number}" for number in range(self.preterminals))

    def for_parsing(self) -> GenerativeModel:
        """The same model, prepared for many sentences."""
        return self

    @classmethod
    def arguments(cls, options: Mapping[str, Any], words: int) -> dict[str, Any]:
        """All arguments of the constructor; by default half as many nonterminals as preterminals, and a rank of p above
        200, else 200 (Yang et al. 2021).
        """
        p = options.get("preterminals", DEFAULT_PRETERMINALS)
        sizes = {"preterminals": p, "nonterminals": max(1, p // 2), "rank": p if p > 200 else 200}
        chosen = {name: value for name, value in options.items() if value is not None}
        if chosen.pop("compound", False):
            chosen["latent"] = LATENT_SIZE
        return super().arguments(sizes | chosen, words)

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """The options of the family; `compound` stands for a latent vector of the published size."""
        return tuple("compound" if name == "latent" else name for name in super().option_names())
