"""From words to parses of symbol numbers, with any of the decoders."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ramify.decoding.best_trees import DECODERS as BY_POSTERIORS
from ramify.decoding.best_trees import mbr
from ramify.decoding.constrained import Forbidden, mask_forbidden
from ramify.decoding.heads import HeadDecoder, decode_heads
from ramify.errors import RamifyError
from ramify.models import GenerativeModel, Model
from ramify.models.batches import WordIds, memory_batches, pad
from ramify.models.distances import BIASED, DistanceModel
from ramify.models.lexicalised import LexicalisedGrammar
from ramify.structures.distribution import Marginals, Tree, spans_not_in
from ramify.structures.fallback import reliable_log_partition, reliable_marginals
from ramify.structures.lexicalised import LexicalisedPCFG
from ramify.structures.low_rank import MOST_RULES, LowRankPCFG
from ramify.structures.pcfg import PCFG

DECODERS = (*BY_POSTERIORS, "viterbi", "viterbi-rank", "sample", BIASED)


@dataclass(frozen=True)
class Decoded:
    """The parse of one sentence of N words; symbols are numbers."""

    log_probability: float
    """log p(w); NaN if the model has no likelihood"""
    posteriors: NDArray[np.float32]
    """(N+1, N+1) posteriors of spans"""
    spans: NDArray[np.int32]
    """(N-1, 2)"""
    labels: NDArray[np.int64]
    label_posteriors: NDArray[np.float32]
    """(N-1,)"""
    tags: NDArray[np.int64]
    tag_posteriors: NDArray[np.float32]
    """(N,)"""
    in_log_space: bool = False
    """Whether it was recomputed in log space, because its numbers underflowed in float32"""
    constraint_log_probability: float | None = None
    """log p(constraints | w); None without constraints, and if the model has no likelihood"""
    heads: NDArray[np.int64] | None = None
    """(N,) for each word 0 for the root, else the place of its head counted from 1; None for models without heads"""


def check_decoder(grammar: Model, decoder: str, seed: int = 0, branching: float = 0.0) -> None:
    """Refuse a decoder that is unknown or does not work with this model."""
    check_branching(decoder, branching)
    if decoder not in DECODERS:
        raise RamifyError(f"decoder {decoder!r} is unknown; choose one of {', '.join(DECODERS)}.")
    if seed < 0:
        raise RamifyError(f"seed is {seed}, but must be at least 0.")
    if not isinstance(grammar, GenerativeModel):
        if decoder == BIASED and not (isinstance(grammar, DistanceModel) and BIASED in grammar.read_outs):
            raise RamifyError(
                f"The decoder {BIASED} works only for prpn and on-lstm, not for {type(grammar).__name__}; use the "
                "decoder mbr."
            )
        if decoder not in ("mbr", BIASED):
            raise RamifyError(
                f"The decoder {decoder} needs a grammar, but {type(grammar).__name__} has no rules; use the decoder "
                "mbr."
            )
        return
    if decoder == BIASED:
        raise RamifyError(
            f"The decoder {BIASED} works only for prpn and on-lstm, not for a grammar; use the decoder mbr."
        )
    n, m = grammar.nonterminals, grammar.nonterminals + grammar.preterminals
    if isinstance(grammar, LexicalisedGrammar) and decoder == "viterbi" and grammar.rank is not None:
        raise RamifyError(
            "The most probable tree of this lexicalised grammar cannot be computed, because every rule is a sum over a "
            "latent variable; use the decoder mbr, or viterbi-rank."
        )
    if decoder == "viterbi" and grammar.rank is not None and not grammar.is_simple and n * m * m > MOST_RULES:
        raise RamifyError(
            f"The most probable tree of this grammar needs its dense rule tensor of {n} x {m} x {m} numbers, more than "
            f"the limit of {MOST_RULES:,}; use the decoder mbr, or viterbi-rank."
        )
    if decoder == "viterbi-rank" and grammar.rank is None:
        raise RamifyError("The decoder viterbi-rank works only for low-rank grammars; use viterbi for this one.")


def check_branching(decoder: str, branching: float) -> None:
    """Refuse a branching bonus that is not finite, or that the decoder does not support."""
    if not math.isfinite(branching):
        raise RamifyError(f"branching is {branching}, but must be a finite number.")
    if branching and decoder not in BY_POSTERIORS:
        raise RamifyError(
            f"A branching bonus does not work with the decoder {decoder}; use {' or '.join(BY_POSTERIORS)}."
        )


@torch.no_grad()
def decode(
    grammar: Model,
    word_ids: Tensor,
    lengths: Tensor,
    decoder: str,
    seeds: Sequence[tuple[int, int]],
    branching: float = 0.0,
    forbidden: Forbidden | None = None,
    heads: HeadDecoder = "projective",
) -> list[Decoded]:
    """The parses of a batch of sentences (B, N). Each sentence has a seed, which the decoder `sample` uses.

    No parse has a forbidden span. The posteriors of a grammar, including those of arcs, are conditioned on this;
    log p(w) is not. `heads` says how heads are found from arc posteriors, if the model has these; sampled and most
    probable trees of lexicalised grammars include their heads.
    """
    if not isinstance(grammar, GenerativeModel):
        if decoder == BIASED:
            assert isinstance(grammar, DistanceModel)
            found = grammar.marginals(word_ids, lengths, BIASED)
        else:
            found = grammar.marginals(word_ids, lengths)
        found.spans.clamp_(max=1)
        if not grammar.has_likelihood:
            found.log_partition.fill_(math.nan)
        trees = mbr(mask_forbidden(forbidden, found), lengths, branching)
        if found.best_label is None:
            posteriors = found.spans.float().cpu().numpy()  # one call: for a fast model, calls cost more than numbers
            sentences = zip(found.log_partition.tolist(), posteriors, trees, strict=True)
            result = [_unlabelled(*each) for each in sentences]
        else:
            result = _by_posteriors(found, trees)
        return _with_heads(result, found, heads)
    unconstrained, cost = grammar.with_cost(word_ids, lengths)
    pcfg = unconstrained if forbidden is None else unconstrained.forbid(forbidden.mask)
    found, in_log_space = _marginals(pcfg)
    by_posteriors = decoder in BY_POSTERIORS
    trees = BY_POSTERIORS[decoder if by_posteriors else "mbr"](mask_forbidden(forbidden, found), lengths, branching)
    of_constraints = {} if forbidden is None else forbidden.condition(unconstrained, found)
    found.log_partition.sub_(cost)
    result = _by_posteriors(found, trees, in_log_space.tolist(), of_constraints)
    if by_posteriors:
        return _with_heads(result, found, heads)
    if bool(in_log_space.any()):
        pcfg = pcfg.to(torch.float64)
    chosen = _trees(pcfg, decoder, seeds)
    result = [
        decoded if tree is None else _with_tree_posteriors(decoded, tree, pcfg.sentence(b))
        for b, (decoded, tree) in enumerate(zip(result, chosen, strict=True))
    ]
    return _with_heads(result, found, heads)


def _with_heads(result: list[Decoded], found: Marginals, heads: HeadDecoder) -> list[Decoded]:
    """The same parses with heads from arc posteriors, if the model has these and the tree has no heads yet."""
    if found.arcs is None:
        return result
    arcs = found.arcs.float().clamp(0, 1).cpu().numpy()
    with_heads = []
    for table, decoded in zip(arcs, result, strict=True):
        N = len(decoded.tags)
        if decoded.heads is None:
            decoded = replace(decoded, heads=decode_heads(table[: N + 1, :N], decoded.spans, heads))
        with_heads.append(decoded)
    return with_heads


def _trees(pcfg: PCFG | LexicalisedPCFG, decoder: str, seeds: Sequence[tuple[int, int]]) -> list[Tree | None]:
    if decoder == "sample":
        return pcfg.sample([np.random.default_rng(seed) for seed in seeds])
    if decoder == "viterbi-rank" and isinstance(pcfg, LowRankPCFG):
        return pcfg.argmax_with_components()
    return pcfg.argmax()


@torch.no_grad()
def labels_of_trees(
    grammar: GenerativeModel, word_ids: Tensor, lengths: Tensor, trees: Sequence[NDArray[np.int32]]
) -> list[Decoded]:
    """Trees of a batch of sentences (B, N), with the most probable label of each span and tag of each word.

    Labels, tags and posteriors are conditioned on the tree.
    """
    pcfg, cost = grammar.with_cost(word_ids, lengths)
    found, in_log_space = _marginals(pcfg.forbid(spans_not_in(trees, pcfg.longest)))
    found.log_partition.sub_(cost)
    return _by_posteriors(found, trees, in_log_space.tolist())


def _unlabelled(log_probability: float, table: NDArray[np.float32], spans: NDArray[np.int32]) -> Decoded:
    """The tree of a model without labels, in which all symbols are 0.

    `table` contains the posteriors of the sentence's spans and may contain those of padding.
    """
    N = len(spans) + 1
    posteriors = table[: N + 1, : N + 1].copy()  # a view would keep the whole batch in memory
    along = posteriors[spans[:, 0], spans[:, 1]]
    no_labels, no_tags = np.zeros(N - 1, np.int64), np.zeros(N, np.int64)
    return Decoded(log_probability, posteriors, spans, no_labels, along, no_tags, np.ones(N, np.float32))


def _by_posteriors(
    found: Marginals,
    trees: Sequence[NDArray[np.int32]],
    in_log_space: Sequence[bool] | None = None,
    of_constraints: Mapping[int, float] | None = None,
) -> list[Decoded]:
    """Trees with the most probable label of each of their spans, and tag of each word."""
    assert found.best_label is not None
    assert found.best_label_posterior is not None
    assert found.best_tag is not None
    assert found.best_tag_posterior is not None
    log_z = found.log_partition.tolist()
    tables, labels, label_posteriors, tags, tag_posteriors = (
        tensor.cpu().numpy()  # one call: sentence by sentence, calls would take longer than the computation
        for tensor in (
            found.spans, found.best_label, found.best_label_posterior, found.best_tag, found.best_tag_posterior,
        )
    )  # fmt: skip
    result = []
    for b, spans in enumerate(trees):
        i, j, N = spans[:, 0], spans[:, 1], len(spans) + 1
        result.append(
            Decoded(
                log_z[b],
                tables[b, : N + 1, : N + 1],
                spans,
                labels[b, i, j],
                label_posteriors[b, i, j],
                tags[b, :N],
                tag_posteriors[b, :N],
                bool(in_log_space and in_log_space[b]),
                (of_constraints or {}).get(b),
            )
        )
    return result


def _with_tree_posteriors(decoded: Decoded, tree: Tree, pcfg: PCFG | LexicalisedPCFG) -> Decoded:
    """A given tree of one sentence, with the posteriors of its labels and tags, and its heads."""
    assert tree.labels is not None
    assert tree.tags is not None
    labels, tags = (found[0].float().clamp(max=1).cpu().numpy() for found in pcfg.symbol_posteriors())
    return replace(
        decoded,
        spans=tree.spans,
        labels=tree.labels,
        label_posteriors=labels[tree.spans[:, 0], tree.spans[:, 1], tree.labels],
        tags=tree.tags,
        tag_posteriors=tags[np.arange(len(tree.tags)), tree.tags],
        heads=tree.heads,
    )


def _marginals(pcfg: PCFG | LexicalisedPCFG) -> tuple[Marginals, Tensor]:
    """The parse with a tag for every word; without a derivation, the tag that gives the word most probability."""
    found, in_log_space = reliable_marginals(pcfg)
    impossible = found.log_partition == -torch.inf
    if isinstance(pcfg, PCFG):  # words of lexicalised grammars do not depend on their tags
        assert found.best_tag is not None
        found.best_tag[impossible] = pcfg.words[impossible].argmax(-1)
    return found, in_log_space


@torch.no_grad()
def log_probabilities(
    model: Model, sentences: Sequence[WordIds], where: Sequence[str] = (), unknown_open: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """log p(w) of each sentence in order, minus infinity if it is empty, and whether it needed log space.

    For a compound grammar, it is a lower bound. With `unknown_open`, any word may replace an unknown word, which gives
    the probability of the known words; only a grammar supports this. `where` names each sentence in warnings.
    """
    model = model.for_parsing()
    result, in_log_space = np.full(len(sentences), -np.inf), np.zeros(len(sentences), np.bool_)
    for places in memory_batches(model, list(map(len, sentences)), where):
        word_ids, lengths = pad([sentences[place] for place in places], model.device)
        if not isinstance(model, GenerativeModel):
            result[places] = model.objective(word_ids, lengths).cpu().numpy()
            continue
        pcfg, cost = model.with_cost(word_ids, lengths)
        if unknown_open:
            pcfg = pcfg.with_any_word(word_ids == 0)
        found, again = reliable_log_partition(pcfg)
        result[places], in_log_space[places] = (found - cost).cpu().numpy(), again.cpu().numpy()
    return result, in_log_space
