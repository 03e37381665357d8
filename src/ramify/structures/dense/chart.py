"""The input and the result of the inside pass of dense rules, for all engines."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ramify.runtime.fast_exp import exp
from ramify.structures.dense.distribution import DensePCFG
from ramify.structures.scaling import Scaled, by_start_and_width, empty_chart, scale_dtype


@dataclass(frozen=True)
class Blocks:
    """The rule tensor as probabilities, cut by kinds of children and laid out as the passes multiply.

    Shapes are those of shared rules; rules per sentence have a leading dimension B. In the comments a is the parent,
    b and c are children that are phrases, t and s children that are words.
    """

    root: Tensor
    """(n,)"""
    parents: Tensor
    """(n n, n) [bc, a]"""
    left: Tensor
    """(n n, n) [ac, b]"""
    right: Tensor
    """(n n, n) [ab, c]"""
    word_left: Tensor
    """(p, n n) [t, ac]"""
    word_right: Tensor
    """(p, n n) [t, ab]"""
    words: Tensor
    """(p p, n) [ts, a]"""

    @classmethod
    def of(cls, pcfg: DensePCFG) -> Blocks:
        """Cut the rule tensor up."""
        n, tensor = pcfg.nonterminals, exp(pcfg.binary)
        phrases, word_left = tensor[..., :n, :n], tensor[..., n:, :n]
        word_right, words = tensor[..., :n, n:], tensor[..., n:, n:]
        return cls(
            exp(pcfg.root),
            phrases.movedim(-3, -1).flatten(-3, -2),
            phrases.transpose(-2, -1).flatten(-3, -2),
            phrases.flatten(-3, -2),
            word_left.movedim(-2, -3).flatten(-2),
            word_right.movedim(-1, -3).flatten(-2),
            words.movedim(-3, -1).flatten(-3, -2),
        )


@dataclass(frozen=True)
class Chart:
    """All inside vectors, and their inputs."""

    blocks: Blocks
    leaves: Scaled
    """(B, N, p)"""
    word_left: Tensor
    """(B, N, n, n) [a, c] the rules A -> w C with the word's probabilities summed in; scale as the leaves'"""
    word_right: Tensor
    """(B, N, n, n) [a, b] the same for A -> B w"""
    symbols: Scaled
    """(B, N, N, n) span scores included; zero vectors with the leaves' scales over single words"""
    scores: Tensor
    """(B, N, N) span scores by start and width"""
    lengths: Tensor
    log_z: Tensor
    """(B,) log p(w), once the chart is full"""

    @classmethod
    def of_words(cls, blocks: Blocks, pcfg: DensePCFG) -> Chart:
        """A chart that is empty except for the words."""
        B, N, _ = pcfg.words.shape
        n, device = pcfg.nonterminals, pcfg.words.device
        scores = by_start_and_width(pcfg.scores().to(scale_dtype(device)))
        words = pcfg.masked_words()
        peak = words.amax(-1)
        emission = (words - torch.where(peak == -torch.inf, 0, peak)[..., None]).exp()
        leaf_scale = peak.to(scores.dtype) + scores[:, :, 0]
        word_left = (emission @ blocks.word_left).unflatten(-1, (n, n))
        word_right = (emission @ blocks.word_right).unflatten(-1, (n, n))
        symbols = empty_chart(B, N, n, words, scores)
        symbols[1][:, :, 0] = leaf_scale
        lengths = pcfg.lengths.to(device)
        log_z = scores.new_full((B,), -torch.inf)
        return cls(blocks, (emission, leaf_scale), word_left, word_right, symbols, scores, lengths, log_z)

    def pairs_of_words(self) -> Scaled:
        """(B, N-1, n) the weights of two neighbouring words for each parent, without the score of their span."""
        emission, scale = self.leaves
        both = (emission[:, :-1, :, None] * emission[:, 1:, None, :]).flatten(2)
        return both @ self.blocks.words, scale[:, :-1] + scale[:, 1:]

    def complete(self) -> Chart:
        """The full chart, with log p(w) from the spans over whole sentences."""
        vectors, scales = self.symbols
        whole = torch.arange(len(vectors), device=vectors.device), torch.zeros_like(self.lengths), self.lengths - 1
        log_z = scales[whole] + (vectors[whole] * self.blocks.root).sum(-1).to(scales.dtype).log()
        # A sentence of one word has no derivation: every start rule leads to a binary rule.
        return replace(self, log_z=torch.where(self.lengths > 1, log_z, -torch.inf))


def count(a: Tensor, b: Tensor, per_sentence: bool) -> Tensor:
    """The sum of outer products a_s b_s of vectors (B, S, k) and (B, S, l): (B, k, l), or (k, l) over the batch."""
    return a.mT @ b if per_sentence else a.flatten(0, 1).T @ b.flatten(0, 1)
