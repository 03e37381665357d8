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
    in_log_space: bool = False
    """Whether float32 could not hold its numbers"""


TOLERANCE = 1e-4
"""How far sums of posteriors may be off in sentences of up to 200 words, in longer ones in proportion. Rounding reached
6e-6 on 200 words and 1.3e-5 on 400, whether the rules were random or trained; underflow is off by far more."""
SAFE_RANGE = 80.0
"""Log-probabilities between -80 and 0 can be scaled to fit into float32 (smallest exp(-87)); products of rules wider
than this may underflow in part. In random grammars this began at -200."""


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
    """The parses of a batch of sentences (B, N); each has its own seed, in case it is sampled."""
    rules, cost = grammar.given(word_ids, lengths)
    found, in_log_space = _robust_marginals(rules)
    by_posteriors = decoder in BY_POSTERIORS
    trees = BY_POSTERIORS[decoder if by_posteriors else "mbr"](found, lengths)
    found.log_probability.sub_(cost)
    result = [_by_posteriors(found, b, spans, bool(in_log_space[b])) for b, spans in enumerate(trees)]
    if by_posteriors:
        return result
    if bool(in_log_space.any()):
        rules = rules.to(torch.float64)
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


def _by_posteriors(found: Marginals, b: int, spans: NDArray[np.int32], in_log_space: bool) -> Decoded:
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
        in_log_space,
    )


def _by_derivation(decoded: Decoded, derivation: Derivation, labels: Tensor, tags: Tensor) -> Decoded:
    return replace(
        decoded,
        spans=derivation.spans,
        labels=derivation.labels,
        label_posteriors=labels.float().clamp(max=1).cpu().numpy(),
        tags=derivation.tags,
        tag_posteriors=tags.float().clamp(max=1).cpu().numpy(),
    )


def _robust_marginals(rules: Rules) -> tuple[Marginals, Tensor]:
    """By the fast engine, and in log space in float64 where its float32 numbers underflowed, wholly or in part.

    The mask (B,) says which sentences needed log space. Without a derivation all posteriors are zero, and each tag is
    the one that gives its word the most probability.
    """
    found = marginals(rules)
    suspect = _suspect(found, rules.lengths) & _words_have_tags(rules)
    in_log_space = torch.zeros_like(suspect)
    if bool(suspect.any()):
        again = marginals(rules.rows(suspect).to(torch.float64), engine="reference")
        in_log_space[suspect] = again.log_probability > -torch.inf
        for name, values in vars(again).items():
            getattr(found, name)[suspect] = values.to(getattr(found, name).dtype)
    for posteriors in (found.spans, found.best_label_posterior, found.best_tag_posterior):
        posteriors.clamp_(max=1)
    impossible = found.log_probability == -torch.inf
    found.best_tag[impossible] = rules.words[impossible].argmax(-1)
    return found, in_log_space


def _suspect(found: Marginals, lengths: Tensor) -> Tensor:
    """(B,) sentences of N > 1 words with p(w) = 0, or whose posteriors cannot be right.

    Every word's posterior is 1, those of longer spans sum to N - 1, and none is above 1.
    """
    tolerance = TOLERANCE * (lengths / 200).clamp(min=1)
    words = found.spans.diagonal(1, 1, 2)
    within = torch.arange(words.shape[1], device=words.device) < lengths[:, None]
    errors = (
        found.spans.amax((1, 2)) - 1,
        (words - 1).abs().where(within, 0).amax(1),
        (found.spans.triu(2).sum((1, 2)) / (lengths - 1).clamp(min=1) - 1).abs(),
    )
    right = torch.stack([error <= tolerance for error in errors]).all(0)  # not so for NaN
    return (lengths > 1) & ~(right & (found.log_probability > -torch.inf))


def _words_have_tags(rules: Rules) -> Tensor:
    """(B,) sentences of which every word has a preterminal; others have no derivation, and log space finds none."""
    beyond = torch.arange(rules.words.shape[1], device=rules.words.device) >= rules.lengths[:, None]
    return ((rules.words.amax(-1) != -torch.inf) | beyond).all(1)


@torch.no_grad()
def log_probabilities(
    grammar: Grammar, sentences: Sequence[WordIds], where: Sequence[str] = (), unknown_open: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """log p(w) of each sentence in order, minus infinity if it is empty, and whether it needed log space.

    Of a compound grammar a lower bound. With `unknown_open` any word may stand where the sentence has an unknown one:
    the probability of the known words. `where` names each sentence in warnings.
    """
    device = next(grammar.buffers() if isinstance(grammar, TableGrammar) else grammar.parameters()).device
    grammar = grammar.worked_out()
    result, in_log_space = np.full(len(sentences), -np.inf), np.zeros(len(sentences), np.bool_)
    for places in memory_batches(grammar, list(map(len, sentences)), where):
        word_ids, lengths = padded([sentences[place] for place in places], device)
        rules, cost = grammar.given(word_ids, lengths)
        if unknown_open:
            # The probabilities of all words of a preterminal add up to one.
            rules = replace(rules, words=rules.words.masked_fill((word_ids == 0)[..., None], 0.0))
        found, again = _robust_inside(rules)
        result[places], in_log_space[places] = (found - cost).cpu().numpy(), again.cpu().numpy()
    return result, in_log_space


def _robust_inside(rules: Rules) -> tuple[Tensor, Tensor]:
    """log p(w) (B,) as `_robust_marginals` finds it, without the outside pass where numbers cannot underflow in part.

    Underflow in part leaves a log p(w) that is finite and too small; only posteriors show it.
    """
    tables = (table for name, table in rules.tensors().items() if name != "lengths")
    if any(bool(((table < -SAFE_RANGE) & (table > -torch.inf)).any()) for table in tables):
        full, in_log_space = _robust_marginals(rules)
        return full.log_probability.double(), in_log_space
    found = inside(rules).double()
    lost = (found == -torch.inf) & (rules.lengths > 1) & _words_have_tags(rules)
    in_log_space = torch.zeros_like(lost)
    if bool(lost.any()):
        found[lost] = inside(rules.rows(lost).to(torch.float64), engine="reference")
        in_log_space[lost] = found[lost] > -torch.inf
    return found, in_log_space
