"""The base classes of PCFGs, for any shape of the rule tensor: symbols, words, labelled trees.

Each shape of the rule tensor has two classes: `Rules` are the start and binary rules of a grammar; a `PCFG` has these
rules and the words of a batch, so it is a distribution over the trees of the sentences.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ramify.structures.derivations import Forest, KBest, heaviest, sample_with, walk
from ramify.structures.distribution import Tree, TreeDistribution
from ramify.structures.log_space import BEST, SUM, Semiring


class Rule(NamedTuple):
    """A binary rule; child symbol n + t is preterminal t."""

    parent: int
    left: int
    right: int
    probability: float


@dataclass(frozen=True)
class Rules(ABC):
    """Start and binary rules as log-probabilities, shared by a batch or, as in a compound grammar, separate for each
    sentence, with a leading dimension B.

    Children are numbered as the n nonterminals and then the p preterminals (m = n + p). Shapes are those of shared
    rules.
    """

    root: Tensor
    """(n,) log p(S -> A)"""

    @property
    def nonterminals(self) -> int:
        """n, the number of nonterminals; child symbol n + t is preterminal t."""
        return self.root.shape[-1]

    @property
    def rank(self) -> int | None:
        """The number of components of the rule tensor; None if it is dense."""
        return None

    @property
    def is_simple(self) -> bool:
        """Whether every nonterminal is its own rank component."""
        return False

    @property
    def per_sentence(self) -> bool:
        """Whether every sentence has separate rules."""
        return self.root.dim() == 2

    @classmethod
    def rule_names(cls) -> tuple[str, ...]:
        """The names of the tables of rules."""
        return tuple(field.name for field in fields(cls) if field.name not in ("words", "lengths", "span_scores"))

    def rule_tables(self) -> dict[str, Tensor]:
        """The existing tables, by name."""
        named = {name: getattr(self, name) for name in self.rule_names()}
        return {name: table for name, table in named.items() if table is not None}

    def of_sentence(self, b: int) -> Self:
        """The rules of one sentence, if each has separate rules."""
        tables = {name: getattr(self, name) for name in self.rule_names()}
        chosen: dict[str, Any] = {name: None if table is None else table[b] for name, table in tables.items()}
        return type(self)(**chosen)

    @abstractmethod
    def with_words(self, words: Tensor, lengths: Tensor) -> PCFG:
        """The distribution over the trees of a batch, given log p(T -> w) of its words (B, N, p)."""

    @abstractmethod
    def binary_of(self, parent: int) -> Tensor:
        """(m, m) p(A -> B C) of one nonterminal, in float64."""

    @abstractmethod
    def expected_children(self) -> Tensor:
        """(n, m) the expected number of children of each nonterminal with each symbol, in float64."""

    @torch.no_grad()
    def rule_cosine(self) -> float | None:
        """The mean cosine between the rules p(children | A) of two nonterminals: 1 if all have the same rules.

        None if fewer than two nonterminals have rules. The cosines of all pairs sum to the square of the sum of unit
        vectors, minus one for each vector with itself.
        """
        total, count = torch.zeros_like(self.binary_of(0)), 0
        for parent in range(self.nonterminals):
            rules = self.binary_of(parent)
            length = float(rules.norm())
            if length > 0:
                total += rules / length
                count += 1
        return mean_cosine(float(total.square().sum()), count)

    @abstractmethod
    def strongest(self, parent: int, count: int = 10, weights: Tensor | None = None, block: int = 128) -> list[Rule]:
        """The most probable rules of one nonterminal, best first; rules without probability are left out.

        With `weights` (m,), rules are ordered by their probability times the weights of their two children. `block` is
        the number of children that are compared at a time.
        """

    @abstractmethod
    def child_sampler(self) -> Callable[[int, np.random.Generator], tuple[int, int]]:
        """A function that draws the two children of a nonterminal."""

    @abstractmethod
    def sums(self) -> dict[str, Tensor]:
        """The sums of each set of probabilities; in a proper grammar all are one."""

    @abstractmethod
    def restricted_rules(self, nonterminals: Tensor, preterminals: Tensor) -> dict[str, Any]:
        """The tables with only these symbols, given by number; each distribution is renormalised."""


class PCFG(Rules, TreeDistribution, ABC):
    """Rules with the words of a batch: a distribution over labelled trees. All tensors share dtype and device.

    The words are the log-probabilities of the words of the batch under each preterminal, so no tensor is as large as
    the vocabulary.
    """

    words: Tensor
    """(B, N, p) log p(T -> w); entries after the end of a sentence are ignored"""

    def _check(self, shapes: dict[str, tuple[int, ...]]) -> None:
        """Refuse tensors of other shapes; the given ones are those of shared rules."""
        B = len(self.words)
        leading = (B,) if self.per_sentence else ()
        self.check_shapes(B, {name: (*leading, *shape) for name, shape in shapes.items()})

    @property
    def longest(self) -> int:
        """N, the number of word positions of the batch."""
        return self.words.shape[1]

    @property
    def preterminals(self) -> int:
        """p, the number of preterminals."""
        return self.words.shape[-1]

    @property
    def batched(self) -> frozenset[str]:
        """The fields with a leading batch dimension; the others are shared by all sentences."""
        of_batch = frozenset({"words", "lengths", "span_scores"})
        return of_batch | frozenset(self.rule_names()) if self.per_sentence else of_batch

    def sentence(self, b: int) -> Self:
        """Sentence b as a batch of one, its rules without a batch dimension."""
        alone = self.select(slice(b, b + 1))
        if not self.per_sentence:
            return alone
        return alone.replace(**{name: table[0] for name, table in alone.rule_tables().items()})

    def masked_words(self) -> Tensor:
        """(B, N, p) the word log-probabilities, minus infinity after each sentence's end."""
        positions = torch.arange(self.longest, device=self.words.device)
        beyond = positions >= self.lengths.to(self.words.device)[:, None]
        return self.words.masked_fill(beyond[..., None], -torch.inf)

    def may_have_trees(self) -> Tensor:
        """(B,) sentences in which every word has a preterminal."""
        beyond = torch.arange(self.longest, device=self.words.device) >= self.lengths.to(self.words.device)[:, None]
        return ((self.words.amax(-1) != -torch.inf) | beyond).all(1)

    def with_any_word(self, places: Tensor) -> Self:
        """The distribution with any word at some places (B, N): the words of a preterminal sum to one."""
        return self.replace(words=self.words.masked_fill(places.to(self.words.device)[..., None], 0.0))

    def restrict(self, nonterminals: Tensor, preterminals: Tensor) -> Self:
        """The distribution with only these symbols, given by number; rules are renormalised.

        This is the state dropout of Chiu and Rush (2020), which Yang et al. (2021) suggest for grammars that use few of
        their symbols. Other symbols are unreachable, so they are removed from the tables.
        """
        kept = nonterminals.to(self.words.device), preterminals.to(self.words.device)
        return self.replace(**self.restricted_rules(*kept), words=self.words.index_select(-1, kept[1]))

    @abstractmethod
    def symbol_posteriors(self) -> tuple[Tensor, Tensor]:
        """The posterior of every nonterminal over every span (B, N+1, N+1, n), and of every tag (B, N, p)."""

    @abstractmethod
    def _forest(self, semiring: Semiring) -> Forest:
        """All derivations of the only sentence of this batch, which has no padding."""

    @torch.no_grad()
    def forest(self, semiring: Semiring = SUM) -> Forest:
        """All derivations of the only sentence of this batch, in float64."""
        N = int(self.lengths[0])
        scores = None if self.span_scores is None else self.span_scores[:, : N + 1, : N + 1]
        return self.replace(words=self.words[:, :N], span_scores=scores).to(torch.float64).to("cpu")._forest(semiring)

    @abstractmethod
    def one_derivation_per_tree(self) -> PCFG:
        """The same distribution in a shape whose derivations are labelled trees."""

    @abstractmethod
    def log_rules(self, parents: Tensor, lefts: Tensor, rights: Tensor) -> Tensor:
        """(k,) log p(A -> B C) of some rules of the only sentence of this batch, differentiable."""

    def argmax(self) -> list[Tree | None]:
        """The most probable labelled tree of each sentence (Viterbi, CYK); None if it has no derivation."""
        return [walk(alone.forest(BEST), heaviest) for alone in self._alone()]

    def top_k(self, k: int) -> list[list[Tree]]:
        """The k most probable labelled trees of each sentence, best first, or all if it has fewer."""
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        return [KBest(alone.forest(BEST), k).trees() for alone in self._alone()]

    def sample(self, generators: Sequence[np.random.Generator]) -> list[Tree | None]:
        """A labelled tree of each sentence drawn from the posterior p(tree | words), with a separate generator.

        Exact (Johnson, Griffiths and Goldwater 2007, sec. 4). For low-rank rules, rank components are drawn too, and
        `log_weight` is that of the tree together with its components.
        """
        if len(generators) != len(self):
            raise ValueError(f"there are {len(generators)} generators for {len(self)} sentences")
        return [walk(self.sentence(b).forest(SUM), sample_with(rng)) for b, rng in enumerate(generators)]

    def log_weight(self, tree: Tree) -> Tensor:
        """() log p(tree, words) of the only sentence, plus the scores of the tree's spans."""
        assert tree.labels is not None
        assert tree.tags is not None
        symbol = {(i, i + 1): self.nonterminals + int(tag) for i, tag in enumerate(tree.tags)}
        spans = [(int(i), int(j)) for i, j in tree.spans]
        symbol |= dict(zip(spans, map(int, tree.labels), strict=True))
        splits = [next(k for k in range(i + 1, j) if (i, k) in symbol and (k, j) in symbol) for i, j in spans]
        used = [(symbol[i, j], symbol[i, k], symbol[k, j]) for (i, j), k in zip(spans, splits, strict=True)]
        device = self.words.device
        rules = self.log_rules(*torch.tensor(used, device=device).T)
        words = self.words[0, torch.arange(len(tree.tags)), torch.from_numpy(tree.tags).to(device)]
        i, j = torch.tensor(list(symbol), device=device).T
        return self.root[symbol[0, len(tree.tags)]] + rules.sum() + words.sum() + self.scores()[0, i, j].sum()

    def _alone(self) -> list[PCFG]:
        """The sentences one by one, in a shape whose derivations are labelled trees."""
        if not self.per_sentence:
            once = self.one_derivation_per_tree()
            return [once.sentence(b) for b in range(len(self))]
        return [self.sentence(b).one_derivation_per_tree() for b in range(len(self))]


def rules_at(parent: int, probabilities: Tensor, places: Tensor, m: int) -> list[Rule]:
    """The rules at some places of a table (m, m) of one nonterminal, without those of probability zero."""
    pairs = zip(probabilities.tolist(), places.tolist(), strict=True)
    return [Rule(parent, at // m, at % m, value) for value, at in pairs if value > 0]


def mean_cosine(square: float, vectors: int) -> float | None:
    """The mean cosine between pairs of unit vectors, from the squared length of their sum."""
    return None if vectors < 2 else min(1.0, max(-1.0, (square - vectors) / (vectors * (vectors - 1))))


def cumulative(log_probabilities: Tensor) -> NDArray[np.float64]:
    """Cumulative probabilities along the last dimension, to draw from."""
    return log_probabilities.double().exp().cumsum(-1).cpu().numpy()


def draw(running: NDArray[np.float64], rng: np.random.Generator) -> int:
    """An index drawn with its probability, given cumulative probabilities."""
    return int(np.searchsorted(running, rng.random() * running[-1], side="right"))


def renormalised(log_probabilities: Tensor, *dims: int) -> Tensor:
    """Normalise over some dimensions; if all probabilities are zero, they stay zero."""
    total = log_probabilities.logsumexp(dims, keepdim=True)
    return log_probabilities - torch.where(total == -torch.inf, 0, total)
