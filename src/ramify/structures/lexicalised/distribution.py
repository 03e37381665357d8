"""Lexicalised PCFGs: every symbol of a tree has the position of its head word.

A rule A[p] -> B[p] C[q] has a head child B, which keeps the head word p of its parent, and another child C with
another head word q, on one of two sides. Word q is generated together with its arc from p. README.md in this folder
describes the algorithms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ramify.structures.derivations import heaviest, sample_with, walk
from ramify.structures.distribution import Tree, TreeDistribution
from ramify.structures.log_space import BEST, SUM, Semiring, log_matmul, logsumexp

if TYPE_CHECKING:
    from ramify.structures.lexicalised.forest import LexicalisedForest

LEFT, RIGHT = 0, 1
"""The side of the head child on which the other child stands."""


class LexicalisedPCFG(TreeDistribution, ABC):
    """A batch of sentences under lexicalised rules. All tensors share dtype and device.

    Children are counted as the n nonterminals and then the p preterminals (m = n + p). Nothing is as large as the
    vocabulary: what depends on words is given for the words of the batch.
    """

    root: Tensor
    """(n,) log p(A), of the whole sentence"""
    words: Tensor
    """(B, N, k) the log-probability of each word as the head of the other child of a rule"""

    @property
    def longest(self) -> int:
        """N, the number of word positions of the batch."""
        return self.words.shape[1]

    @property
    def nonterminals(self) -> int:
        """n, the number of nonterminals; child symbol n + t is preterminal t."""
        return self.root.shape[-1]

    @property
    @abstractmethod
    def preterminals(self) -> int:
        """p, the number of preterminals."""

    @abstractmethod
    def start(self) -> Tensor:
        """(B, N, n) log p(A) p(w_p | A), of the whole sentence as an A headed by word p."""

    @abstractmethod
    def with_any_word(self, places: Tensor) -> Self:
        """The weight of sentences with any word at some places (B, N), which heads phrases as the given one does."""

    def beyond(self) -> Tensor:
        """(B, N) which positions lie after the end of their sentence."""
        return torch.arange(self.longest, device=self.root.device) >= self.lengths.to(self.root.device)[:, None]

    def arc_posteriors(self, engine: str = "auto") -> Tensor:
        """(B, N+1, N): entry [b, h, q] is the posterior that word q depends on word h - 1 or, in row 0, is the root.

        The columns of the words of a sentence that has trees sum to one; all others are zero.
        """
        arcs = self.marginals(engine).arcs
        assert arcs is not None
        return arcs

    @property
    @abstractmethod
    def other_size(self) -> int:
        """y, the number of alternatives between which rules distinguish the other child."""

    @torch.no_grad()
    def symbol_posteriors(self) -> tuple[Tensor, Tensor]:
        """The posterior of every nonterminal over every span (B, N+1, N+1, n), and of every tag (B, N, p)."""
        from ramify.structures.lexicalised import symbol_posteriors

        return symbol_posteriors(self)

    @abstractmethod
    def as_heads(self, symbols: Tensor, numbers: slice, semiring: Semiring) -> Tensor:
        """The weights of symbols (..., n or p) of the given numbers as head children, (..., x) in log space."""

    @abstractmethod
    def as_others(self, symbols: Tensor, numbers: slice, words: Tensor, semiring: Semiring) -> Tensor:
        """The weights of symbols (..., n or p) headed by words (..., k) as other children on each side, (..., 2, y)."""

    def prepared(self) -> Tensor | None:
        """A tensor that `joined` needs for all widths, if any."""
        return None

    @abstractmethod
    def joined(
        self, heads: Sequence[Tensor], others: Sequence[Tensor], semiring: Semiring, prepared: Tensor | None
    ) -> Tensor:
        """The parents (B, starts, w, n) of all spans of one width w and all their heads, in log space.

        For each split v = 1 .. w-1 there are head children (B, starts, w, x) and other children (B, starts, w, y): the
        other child of a head at offset o stands on the right if o < v, else on the left.
        """

    @abstractmethod
    def log_rules(self, parents: Tensor, rules: Tensor) -> Tensor:
        """(k,) log p of rules (k, 4) [B, C, q, side of C] below parents (k, 2) [A, p] of the only sentence."""

    @abstractmethod
    def _forest(self, semiring: Semiring) -> LexicalisedForest[Any]:
        """All derivations of the only sentence of this batch, which has no padding."""

    def forest(self, semiring: Semiring = SUM) -> LexicalisedForest[Any]:
        """All derivations of the only sentence of this batch, in float64."""
        return self.without_padding().to(torch.float64).to("cpu")._forest(semiring)

    def without_padding(self) -> Self:
        """The same distribution with as many word positions as its longest sentence has words."""
        N = int(self.lengths.max())
        cut = {name: tensor[:, :N] for name, tensor in self.tensors().items() if name in self.batched}
        if self.span_scores is not None:
            cut["span_scores"] = self.span_scores[:, : N + 1, : N + 1]
        return self.replace(**cut)

    def argmax(self) -> list[Tree | None]:
        """The tree of the heaviest derivation of each sentence, with heads; None where it has no derivation."""
        return [walk(self.sentence(b).forest(BEST), heaviest) for b in range(len(self))]

    def sample(self, generators: Sequence[np.random.Generator]) -> list[Tree | None]:
        """A tree of each sentence with labels and heads, drawn from the posterior with its own generator."""
        if len(generators) != len(self):
            raise ValueError(f"there are {len(generators)} generators for {len(self)} sentences")
        return [walk(self.sentence(b).forest(SUM), sample_with(rng)) for b, rng in enumerate(generators)]

    def log_weight(self, tree: Tree) -> Tensor:
        """() log p(tree, words) of the only sentence, plus the scores of the tree's spans."""
        if tree.heads is None or tree.labels is None or tree.tags is None:
            raise ValueError("a labelled tree of a lexicalised grammar needs the head of every word; give heads")
        spans = [(int(i), int(j)) for i, j in tree.spans]
        symbol = {(i, i + 1): self.nonterminals + int(tag) for i, tag in enumerate(tree.tags)}
        symbol |= dict(zip(spans, map(int, tree.labels), strict=True))
        head = {span: head_of_span(tree.heads, *span) for span in symbol}
        parents, rules = [], []
        for i, j in spans:
            k = next(k for k in range(i + 1, j) if (i, k) in symbol and (k, j) in symbol)
            side = RIGHT if head[i, j] < k else LEFT
            kept, other = ((i, k), (k, j)) if side == RIGHT else ((k, j), (i, k))
            parents.append((symbol[i, j], head[i, j]))
            rules.append((symbol[kept], symbol[other], head[other], side))
        device = self.root.device
        log_rules = self.log_rules(torch.tensor(parents, device=device), torch.tensor(rules, device=device))
        whole = (0, len(tree.tags))
        i, j = torch.tensor(list(symbol), device=device).T
        return self.start()[0, head[whole], symbol[whole]] + log_rules.sum() + self.scores()[0, i, j].sum()


def head_of_span(heads: NDArray[np.int64], i: int, j: int) -> int:
    """The word of i..j-1 that depends on a word outside; `heads` are 1-based, 0 for the root."""
    outside = [q for q in range(i, j) if not i < heads[q] <= j]
    if len(outside) != 1:
        raise ValueError(f"words {i} to {j} have {len(outside)} heads, so they are not a constituent of such a tree")
    return outside[0]


@dataclass(frozen=True)
class BilexicalPCFG(LexicalisedPCFG):
    """Rules that depend on both head words through a latent H of size r (Yang, Zhao and Tu 2021b, NBL-PCFG).

    p(B, C, w_q, D | A, w_p) = sum_H p(H | A, w_p) p(B | H) p(C, D | H) p(w_q | H), D the side on which C stands. A
    derivation has an H at every rule, and the weights and entropy of derivations are those with H.
    """

    root: Tensor
    """(n,) log p(A)"""
    root_words: Tensor
    """(B, N, n) log p(w_p | A) of the head word of the whole sentence"""
    components: Tensor
    """(B, N, n, r) log p(H | A, w_p)"""
    head_child: Tensor
    """(m, r) log p(B | H)"""
    other_child: Tensor
    """(2, m, r) log p(C, D | H), on the left and on the right of the head child"""
    words: Tensor
    """(B, N, r) log p(w_q | H)"""
    lengths: Tensor
    """(B,) number of words of each sentence"""
    span_scores: Tensor | None = None
    """(B, N+1, N+1) added to the log-weight of every tree with the span; None for zeros"""

    def __post_init__(self) -> None:
        (B, N, r), n, m = self.words.shape, self.nonterminals, self.head_child.shape[0]
        shapes: dict[str, tuple[int, ...]] = {"root_words": (B, N, n), "components": (B, N, n, r)}
        self.check_shapes(len(self.words), shapes | {"head_child": (m, r), "other_child": (2, m, r)})

    @property
    def preterminals(self) -> int:
        """p, the number of preterminals."""
        return self.head_child.shape[0] - self.nonterminals

    @property
    def rank(self) -> int:
        """r, the number of values of H."""
        return self.words.shape[-1]

    @property
    def batched(self) -> frozenset[str]:
        """The fields with a leading batch dimension; the others are shared by all sentences."""
        return frozenset({"root_words", "components", "words", "lengths", "span_scores"})

    def start(self) -> Tensor:
        """(B, N, n)"""
        return self.root + self.root_words

    def with_any_word(self, places: Tensor) -> Self:
        """See `LexicalisedPCFG`: the probabilities of all words of an H, or of a root, add up to one."""
        anything = places.to(self.words.device)[..., None]
        root_words, words = (table.masked_fill(anything, 0.0) for table in (self.root_words, self.words))
        return self.replace(root_words=root_words, words=words)

    @property
    def other_size(self) -> int:
        """r, as the other child depends on H."""
        return self.rank

    def _forest(self, semiring: Semiring) -> LexicalisedForest[Any]:
        from ramify.structures.lexicalised.forest import BilexicalForest

        return BilexicalForest(self, semiring)

    def as_heads(self, symbols: Tensor, numbers: slice, semiring: Semiring) -> Tensor:
        """(..., r)"""
        return semiring.matmul(symbols, self.head_child[numbers])

    def as_others(self, symbols: Tensor, numbers: slice, words: Tensor, semiring: Semiring) -> Tensor:
        """(..., 2, r)"""
        table = self.other_child[:, numbers].transpose(0, 1).flatten(1)
        of_side: Tensor = semiring.matmul(symbols, table).unflatten(-1, (2, -1))
        return of_side + words.unsqueeze(-2)

    def joined(
        self,
        heads: Sequence[Tensor],
        others: Sequence[Tensor],
        semiring: Semiring,
        prepared: Tensor | None = None,  # noqa: ARG002
    ) -> Tensor:
        """(B, starts, w, n)"""
        of_component = semiring.add(torch.stack([head + other for head, other in zip(heads, others, strict=True)]), 0)
        starts, width = of_component.shape[1:3]
        windows = self.components.unfold(1, width, 1)[:, :starts].movedim(-1, 2)  # (B, starts, w, n, r)
        if semiring is SUM:
            return log_matmul(of_component.unsqueeze(-2), windows.mT).squeeze(-2)
        return semiring.add(of_component.unsqueeze(-2) + windows, -1)

    def log_rules(self, parents: Tensor, rules: Tensor) -> Tensor:
        """(k,)"""
        (a, p), (b, c, q, side) = parents.T, rules.T
        return logsumexp(
            self.components[0, p, a] + self.head_child[b] + self.other_child[side, c] + self.words[0, q], -1
        )
