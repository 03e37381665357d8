"""The analysis of one sentence, including its punctuation."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ramify.corpus.brackets import write_brackets
from ramify.corpus.conllu import write_conllu
from ramify.corpus.sentence import PUNCTUATION_TAG, Sentence
from ramify.corpus.tree import Parse, parse_of_words
from ramify.corpus.vocabulary import UnknownCount
from ramify.drawing.layout import Layout
from ramify.drawing.notebook import Svg, notebook_tree
from ramify.drawing.svg import document, layout_for, picture
from ramify.drawing.terminal import draw, with_head_words
from ramify.errors import RamifyWarning
from ramify.evaluation.coverage import Likelihood
from ramify.evaluation.failures import Failure
from ramify.parser.kept_columns import with_columns
from ramify.parser.pictures import chart_of, drawn_tree, forest_source, qtree_source

if TYPE_CHECKING:
    import nltk


@dataclass(frozen=True)
class Scored:
    """A sentence with its probability, without a parse; the fields are those of `Analysis`."""

    sentence: Sentence
    likelihood: Likelihood
    failure: Failure | None
    in_log_space: bool

    @property
    def log_probability(self) -> float:
        """log p(w) in nats; minus infinity without a derivation"""
        return self.likelihood.log_probability

    @property
    def count(self) -> UnknownCount:
        """Its words, and those that are unknown."""
        return self.likelihood.count


def _of_tokens(sentence: Sentence, unknown: NDArray[np.bool_]) -> tuple[bool, ...]:
    """For each token whether it is an unknown word, given the unknown words."""
    words = iter(unknown.tolist())
    return tuple([is_word and next(words) for is_word in sentence.is_word])


@dataclass(frozen=True)
class Analysis:
    """The parse of a sentence with its probabilities; all positions count tokens, including punctuation.

    A sentence without a parse has a flat tree: no constituents, posteriors of zero, and log p(w) minus infinity unless
    only its constraints are the reason. With constraints, all posteriors of a grammar are conditioned on them.
    """

    sentence: Sentence
    parse: Parse
    log_probability: float
    """The log-probability of its words in nats, ignoring constraints; -inf if the grammar cannot derive them, as it
    never can for a single word"""
    posteriors: NDArray[np.float32]
    """(N+1, N+1): posteriors[i, j] is the probability that tokens[i:j] are a constituent"""
    label_posteriors: NDArray[np.float32]
    """(constituents,): the probability of each constituent together with its label"""
    tag_posteriors: NDArray[np.float32]
    """(N,): the probability of each tag; 1 for punctuation"""
    unknown: tuple[bool, ...] = ()
    """For each token, whether it is a word outside the vocabulary; always false for punctuation"""
    failure: Failure | None = None
    """Why the sentence has no parse; None if it has one, or has fewer than two words"""
    in_log_space: bool = False
    """Whether it was recomputed in log space, because its probabilities underflowed in float32"""
    constraint_log_probability: float | None = None
    """log p(constraints | w) in nats; None for a sentence without constraints or a model without a likelihood"""
    member_spans: tuple[NDArray[np.int32], ...] = ()
    """For an ensemble: the constituents of the tree of each member, counted in words"""
    heads: tuple[int, ...] | None = None
    """The head of each token: 0 for the root, otherwise its position counted from 1; punctuation depends on the nearest
    word. None for models without heads and sentences without a parse"""

    @property
    def constraint_probability(self) -> float | None:
        """p(constraints | w): the total probability of the trees that meet the constraints."""
        return None if self.constraint_log_probability is None else math.exp(self.constraint_log_probability)

    @property
    def tree(self) -> nltk.Tree:
        """The parse as a tree, which notebooks show as a picture."""
        return notebook_tree(self.parse)

    @property
    def parse_with_posteriors(self) -> Parse:
        """The parse with the posterior after every label and tag, as in `NT-12:0.87`."""
        parse = self.parse
        labels = (f"{label}:{p:.2f}" for label, p in zip(parse.labels, self.label_posteriors, strict=True))
        tags = (f"{tag}:{p:.2f}" for tag, p in zip(parse.tags, self.tag_posteriors, strict=True))
        return replace(parse, labels=tuple(labels), tags=tuple(tags))

    def as_svg(self, layout: Layout | None = None, with_posteriors: bool = False, with_tags: bool = True) -> str:
        """The tree as an SVG document, constituents coloured by the posteriors of their spans, heads by thick lines.

        The layout is `horizontal`, with the words on one line, or `vertical`, with one word per line; if none is given,
        sentences of more than 25 words are vertical. A notebook displays this picture.
        """
        tree = drawn_tree(self, with_posteriors, with_tags)
        return Svg(document([picture(tree, layout_for(len(self.parse), layout))]))

    def as_chart(self) -> str:
        """The posteriors of all spans as an SVG document: a row for each first word, a column for each last one.

        A notebook displays the result as a picture.
        """
        return Svg(document([chart_of(self)]))

    def _repr_svg_(self) -> str:
        return self.as_svg()

    @property
    def count(self) -> UnknownCount:
        """Its words, and those that are unknown."""
        return UnknownCount(sum(self.sentence.is_word), sum(self.unknown))

    @classmethod
    def flat(
        cls,
        sentence: Sentence,
        unknown: NDArray[np.bool_],
        failure: Failure | None = None,
        tags: Sequence[str] | None = None,
    ) -> Analysis:
        """The analysis of a sentence without a parse or without words, with the tags of its words if they are known."""
        words = parse_of_words(sentence.words)
        parse = with_punctuation(sentence, replace(words, tags=tuple(tags or words.tags)))
        N = len(sentence.is_word)
        # Zeros that take no memory, because the charts of the sentence may not fit into it.
        posteriors = np.broadcast_to(np.float32(0), (N + 1, N + 1))
        tag_posteriors = np.array([not is_word for is_word in sentence.is_word], np.float32)
        nothing = np.zeros(0, np.float32)
        of_tokens = _of_tokens(sentence, unknown)
        return cls(sentence, parse, -math.inf, posteriors, nothing, tag_posteriors, of_tokens, failure)

    @classmethod
    def from_words(
        cls,
        sentence: Sentence,
        words: Parse,
        log_probability: float,
        posteriors: NDArray[np.float32],
        label_posteriors: NDArray[np.float32],
        tag_posteriors: NDArray[np.float32],
        unknown: NDArray[np.bool_],
        in_log_space: bool = False,
        heads: NDArray[np.int64] | None = None,
    ) -> Analysis:
        """An analysis of all tokens from an analysis of the words, which leaves out punctuation."""
        parse = with_punctuation(sentence, words)
        of_tokens = None if heads is None else heads_with_punctuation(heads.tolist(), sentence.is_word)
        if all(sentence.is_word):
            found = posteriors, label_posteriors, tag_posteriors, tuple(unknown.tolist())
            return cls(sentence, parse, log_probability, *found, in_log_space=in_log_space, heads=of_tokens)
        place = np.flatnonzero(sentence.is_word)
        N = len(sentence.is_word)
        all_posteriors = np.zeros((N + 1, N + 1), np.float32)
        all_posteriors[place[:, None], place + 1] = posteriors[:-1, 1:]
        all_tag_posteriors = np.ones(N, np.float32)
        all_tag_posteriors[place] = tag_posteriors
        found = all_posteriors, label_posteriors, all_tag_posteriors, _of_tokens(sentence, unknown)
        return cls(sentence, parse, log_probability, *found, in_log_space=in_log_space, heads=of_tokens)

    put_together = from_words  # the name in earlier versions

    def as_record(self, with_posteriors: bool = False) -> dict[str, object]:
        """As JSON values: text, tokens and their offsets, tags, unknown words, constituents [i, j, label], log p(w),
        p(constraints | w), the reason for a missing parse, and the heads of a lexicalised grammar.
        """
        parse = self.parse
        record: dict[str, object] = {
            "text": self.sentence.text,
            "tokens": list(parse.words),
            "offsets": list(map(list, self.sentence.offsets)),
            "tags": list(parse.tags),
            "unknown": list(self.unknown),
            "constituents": [[int(i), int(j), label] for (i, j), label in zip(parse.spans, parse.labels, strict=True)],
            "log_probability": self.log_probability if math.isfinite(self.log_probability) else None,
            "constraint_probability": self.constraint_probability,
            "failure": self.failure,
        }
        if self.heads is not None:
            record["heads"] = list(self.heads)
        if with_posteriors:
            spans = parse.spans
            record["posteriors"] = {
                "constituents": _rounded(self.posteriors[spans[:, 0], spans[:, 1]]),
                "labels": _rounded(self.label_posteriors),
                "tags": _rounded(self.tag_posteriors),
                "spans": []
                if self.failure
                else [
                    [int(i), int(j), round(float(self.posteriors[i, j]), 6)]
                    for i, j in np.argwhere(np.triu(self.posteriors, 2) >= 5e-7)
                ],
            }
        return record


def with_punctuation(sentence: Sentence, words: Parse) -> Parse:
    """The parse of a sentence's words with the other tokens in their places.

    A phrase begins and ends with a word, so each of these tokens is attached to the highest node that leaves no phrase
    with a gap: the lowest node that contains the words on both sides of the token, or the root if one side has none.
    """
    if all(sentence.is_word):
        return words
    place = np.array([i for i, is_word in enumerate(sentence.is_word) if is_word], np.int32)
    of_words = iter(words.tags)
    tags = tuple([next(of_words) if is_word else PUNCTUATION_TAG for is_word in sentence.is_word])
    spans = np.empty_like(words.spans)
    spans[:, 0] = place[words.spans[:, 0]]
    spans[:, 1] = place[words.spans[:, 1] - 1] + 1
    return Parse(sentence.tokens, tags, spans, words.labels)


def heads_with_punctuation(heads: Sequence[int], is_word: Sequence[bool]) -> tuple[int, ...]:
    """The heads of all tokens, counted from 1 with 0 for the root, from the heads of the words among themselves.

    Every other token depends on the nearest word; if two are equally near, on the left one. A projective tree stays
    projective: between a token and the nearest word there are only tokens that depend on that word, and an arc over the
    token has this word at one end or below it.
    """
    places = np.flatnonzero(is_word) + 1
    found = np.zeros(len(is_word), np.int64)
    found[places - 1] = np.concatenate([[0], places])[list(heads)]
    for token in np.flatnonzero(np.logical_not(is_word)) + 1:
        found[token - 1] = places[np.abs(places - token).argmin()]
    return tuple(found.tolist())


def _rounded(values: NDArray[np.float32]) -> list[float]:
    return [round(float(value), 6) for value in values]


def as_brackets(analysis: Analysis, with_posteriors: bool = False) -> str:
    """One line; with posteriors a label reads `NT-12:0.87`."""
    return write_brackets(analysis.parse_with_posteriors if with_posteriors else analysis.parse)


def as_json(analysis: Analysis, with_posteriors: bool = False) -> str:
    """One line of JSON; for a sentence from a table, with the other columns of its row."""
    return json.dumps(with_columns(analysis.as_record(with_posteriors), analysis.sentence), ensure_ascii=False)


def as_pretty(analysis: Analysis, with_posteriors: bool = False, with_ascii: bool = False) -> str:
    """The tree drawn with lines, top down, the probability of its constraints, and a blank line.

    A tree that is too deep to be drawn is written in brackets. Constituents show their head words if the model has
    heads.
    """
    return _drawn(analysis, with_posteriors, with_ascii) + _notes_below_tree(analysis)


def _drawn(analysis: Analysis, with_posteriors: bool, with_ascii: bool) -> str:
    parse = analysis.parse_with_posteriors if with_posteriors else analysis.parse
    if not len(parse):
        return ""
    if analysis.heads is not None:
        parse = with_head_words(parse, analysis.heads)
    try:
        return draw(parse.to_nltk(), with_ascii)
    except RecursionError:
        warnings.warn(
            f"{analysis.sentence.where or 'sentence'}: a tree over {len(parse):,} words is too deep to draw and is "
            "printed in brackets.",
            RamifyWarning,
            stacklevel=2,
        )
        return write_brackets(parse) + "\n"


def _notes_below_tree(analysis: Analysis) -> str:
    p = analysis.constraint_probability
    return "" if p is None else f"p(constraints | sentence) = {p:.4g}\n"


def as_spans(analysis: Analysis, with_posteriors: bool = False) -> str:
    """One line: constituents as `i-j:label`, with the posterior of span and label after `=` if requested."""
    parse = analysis.parse
    return " ".join(
        f"{i}-{j}:{label}" + (f"={p:.4f}" if with_posteriors else "")
        for (i, j), label, p in zip(parse.spans, parse.labels, analysis.label_posteriors, strict=True)
    )


def as_conllu(analysis: Analysis, with_posteriors: bool = False) -> str:
    """A line for each token, with heads if the model has them, the tree in a comment, and a blank line."""
    tree = analysis.parse_with_posteriors if with_posteriors else analysis.parse
    return write_conllu(analysis.sentence, analysis.parse.tags, tree, analysis.heads)


FORMATS: dict[str, Callable[..., str]] = {
    "brackets": as_brackets,
    "json": as_json,
    "pretty": as_pretty,
    "ascii": partial(as_pretty, with_ascii=True),
    "spans": as_spans,
    "conllu": as_conllu,
    "forest": forest_source,
    "qtree": qtree_source,
}
"""Formats with one block of output per sentence."""
