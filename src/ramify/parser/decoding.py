"""From words to the numbers of a parse, by whichever decoder was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ramify.errors import RamifyError
from ramify.grammars import Grammar, TableGrammar
from ramify.inference import derivations
from ramify.inference.decode import DECODERS as BY_POSTERIORS
from ramify.inference.derivations import MOST_RULES, Derivation
from ramify.inference.dispatch import inside, marginals
from ramify.inference.entropy import derivation_entropy
from ramify.inference.rules import LowRankRules, Marginals, Rules
from ramify.parser.batches import WordIds, memory_batches, padded

DECODERS = (*BY_POSTERIORS, "viterbi", "viterbi-rank", "sample")


@dataclass(frozen=True)
class Decoded:
    """The parse of one sentence of N words, symbols by their numbers."""

    log_probability: float
    """log p(w)"""
    posteriors: NDArray[np.float32]
    """(N+1, N+1) of spans"""
    spans: NDArray[np.int32]
    """(N-1, 2)"""
    labels: NDArray[np.int64]
    label_posteriors: NDArray[np.float32]
    """(N-1,)"""
    tags: NDArray[np.int64]
    tag_posteriors: NDArray[np.float32]
    """(N,)"""


def check_decoder(grammar: Grammar, decoder: str, seed: int = 0) -> None:
    """Refuse a decoder that is unknown or that this grammar cannot have."""
    if decoder not in DECODERS:
        raise RamifyError(f"decoder {decoder!r} is unknown; choose one of {', '.join(DECODERS)}.")
    if seed < 0:
        raise RamifyError(f"seed is {seed}, but must be at least 0.")
    n, m = grammar.nonterminals, grammar.nonterminals + grammar.preterminals
    if decoder == "viterbi" and grammar.rank is not None and not grammar.is_simple and n * m * m > MOST_RULES:
        raise RamifyError(
            f"The best parse of this grammar needs its {n} x {m} x {m} rules written out, more than {MOST_RULES:,} "
            "numbers; use the decoder mbr, or viterbi-rank."
        )
    if decoder == "viterbi-rank" and grammar.rank is None:
        raise RamifyError("The decoder viterbi-rank is for low-rank grammars; use viterbi for this one.")


@torch.no_grad()
def decode(
    grammar: Grammar, word_ids: Tensor, lengths: Tensor, decoder: str, seeds: Sequence[tuple[int, int]]
) -> list[Decoded]:
    """The parses of a batch of sentences (B, N); each has a seed of its own, should it be drawn."""
    rules, cost = grammar.given(word_ids, lengths)
    found = _robust_marginals(rules)
    by_posteriors = decoder in BY_POSTERIORS
    trees = BY_POSTERIORS[decoder if by_posteriors else "mbr"](found, lengths)
    found.log_probability.sub_(cost)
    result = [_by_posteriors(found, b, spans) for b, spans in enumerate(trees)]
    if by_posteriors:
        return result
    chosen = _derivations(rules, decoder, seeds)
    along = derivations.posteriors_along(rules, chosen)
    return [
        decoded if derivation is None else _by_derivation(decoded, derivation, *posteriors)
        for decoded, derivation, posteriors in zip(result, chosen, along, strict=True)
    ]


def _derivations(rules: Rules, decoder: str, seeds: Sequence[tuple[int, int]]) -> list[Derivation | None]:
    if decoder == "sample":
        return derivations.sampled_derivations(rules, [np.random.default_rng(seed) for seed in seeds])
    if decoder == "viterbi-rank" and isinstance(rules, LowRankRules):
        return derivations.best_rank_derivations(rules)
    return derivations.best_derivations(rules)


@torch.no_grad()
def best_derivations(grammar: Grammar, sentence: tuple[Tensor, Tensor], count: int) -> list[Derivation]:
    """The most probable labelled trees of one sentence, best first."""
    return derivations.k_best_derivations(grammar.rules(*sentence), count)[0]


def entropy(grammar: Grammar, sentence: tuple[Tensor, Tensor]) -> float:
    """The entropy of one sentence's posterior over derivations, in nats."""
    return float(derivation_entropy(grammar.rules(*sentence).to(torch.float64)))


def _by_posteriors(found: Marginals, b: int, spans: NDArray[np.int32]) -> Decoded:
    """A tree with the most probable label of each of its spans, and tag of each word."""
    i, j = spans[:, 0], spans[:, 1]
    N = len(spans) + 1
    return Decoded(
        float(found.log_probability[b]),
        found.spans[b, : N + 1, : N + 1].cpu().numpy(),
        spans,
        found.best_label[b].cpu().numpy()[i, j],
        found.best_label_posterior[b].cpu().numpy()[i, j],
        found.best_tag[b, :N].cpu().numpy(),
        found.best_tag_posterior[b, :N].cpu().numpy(),
    )


def _by_derivation(decoded: Decoded, derivation: Derivation, labels: Tensor, tags: Tensor) -> Decoded:
    return Decoded(
        decoded.log_probability,
        decoded.posteriors,
        derivation.spans,
        derivation.labels,
        labels.cpu().numpy(),
        derivation.tags,
        tags.cpu().numpy(),
    )


def _robust_marginals(rules: Rules) -> Marginals:
    """The scaled path; log space where its numbers underflowed; words alone where no derivation exists.

    The stated rule for a sentence without a derivation, such as one of a single word: all posteriors are zero,
    so decoding gives a right-branching tree, and each tag is the one that gives its word the most probability.
    """
    found = marginals(rules)
    lost = (found.log_probability == -torch.inf) & (rules.lengths > 1)
    if bool(lost.any()):
        again = marginals(rules.rows(lost).to(torch.float64), engine="reference")
        for name, values in vars(again).items():
            getattr(found, name)[lost] = values.to(getattr(found, name).dtype)
    impossible = found.log_probability == -torch.inf
    found.best_tag[impossible] = rules.words[impossible].argmax(-1)
    return found


@torch.no_grad()
def log_probabilities(
    grammar: Grammar, sentences: Sequence[WordIds], unknown_open: bool = False
) -> NDArray[np.float64]:
    """log p(w) of each sentence, in order; an empty one has no derivation. Of a compound grammar a lower bound.

    With `unknown_open` any word may stand where the sentence has an unknown one: the probability of the known words.
    """
    device = next(grammar.buffers() if isinstance(grammar, TableGrammar) else grammar.parameters()).device
    grammar = grammar.worked_out()
    result = np.full(len(sentences), -np.inf)
    nonempty = [place for place, words in enumerate(sentences) if len(words)]
    for batch in memory_batches(grammar, [len(sentences[place]) for place in nonempty]):
        places = [nonempty[i] for i in batch]
        word_ids, lengths = padded([sentences[place] for place in places], device)
        rules, cost = grammar.given(word_ids, lengths)
        if unknown_open:
            # The probabilities of all words of a preterminal add up to one.
            rules = replace(rules, words=rules.words.masked_fill((word_ids == 0)[..., None], 0.0))
        found = inside(rules).double()
        lost = (found == -torch.inf) & (rules.lengths > 1)
        if bool(lost.any()):
            found[lost] = inside(rules.rows(lost).to(torch.float64), engine="reference")
        result[places] = (found - cost).cpu().numpy()
    return result
