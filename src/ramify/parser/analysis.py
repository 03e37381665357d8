"""One sentence as the parser sees it, punctuation and all."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace

import numpy as np
from nltk.tree.prettyprinter import TreePrettyPrinter
from numpy.typing import NDArray

from ramify.corpus.brackets import write_brackets
from ramify.corpus.sentence import PUNCTUATION_TAG, Sentence
from ramify.corpus.tree import Parse
from ramify.errors import RamifyError


@dataclass(frozen=True)
class Analysis:
    """A parse with what the grammar thinks of it; everything counts tokens, punctuation among them."""

    sentence: Sentence
    parse: Parse
    log_probability: float
    """log p(w) of its words in nats; minus infinity where there is no derivation, as for every single word"""
    posteriors: NDArray[np.float32]
    """(N+1, N+1): posteriors[i, j] is the probability that tokens[i:j] are a constituent"""
    label_posteriors: NDArray[np.float32]
    """(constituents,): the probability of each constituent together with its label"""
    tag_posteriors: NDArray[np.float32]
    """(N,); punctuation is sure to be punctuation"""
    unknown: tuple[bool, ...] = ()
    """For each token whether it is a word that is not in the vocabulary; punctuation never is"""

    @classmethod
    def put_together(
        cls,
        sentence: Sentence,
        words: Parse,
        log_probability: float,
        posteriors: NDArray[np.float32],
        label_posteriors: NDArray[np.float32],
        tag_posteriors: NDArray[np.float32],
        unknown: NDArray[np.bool_],
    ) -> Analysis:
        """From the analysis of the words alone: the other tokens go back to where they stood.

        A phrase begins and ends with a word, so each of them hangs from the highest node that leaves no phrase
        with a gap: the lowest that holds the words on both its sides, or the top where there is no such word.
        """
        if all(sentence.is_word):
            known = (posteriors, label_posteriors, tag_posteriors, tuple(unknown.tolist()))
            return cls(sentence, words, log_probability, *known)
        place = np.flatnonzero(sentence.is_word)
        N = len(sentence.is_word)
        tags = np.full(N, PUNCTUATION_TAG, dtype=object)
        tags[place] = words.tags
        spans = np.stack([place[words.spans[:, 0]], place[words.spans[:, 1] - 1] + 1], axis=1).astype(np.int32)
        all_posteriors = np.zeros((N + 1, N + 1), np.float32)
        all_posteriors[place[:, None], place + 1] = posteriors[:-1, 1:]
        all_tag_posteriors = np.ones(N, np.float32)
        all_tag_posteriors[place] = tag_posteriors
        all_unknown = np.zeros(N, np.bool_)
        all_unknown[place] = unknown
        parse = Parse(sentence.tokens, tuple(tags), spans, words.labels)
        known = (all_posteriors, label_posteriors, all_tag_posteriors, tuple(all_unknown.tolist()))
        return cls(sentence, parse, log_probability, *known)

    def as_record(self, with_posteriors: bool = False) -> dict[str, object]:
        """In terms of JSON: the text, tokens and where they are in it, tags, unknown words, constituents, log p(w)."""
        parse = self.parse
        record: dict[str, object] = {
            "text": self.sentence.text,
            "tokens": list(parse.words),
            "offsets": list(map(list, self.sentence.offsets)),
            "tags": list(parse.tags),
            "unknown": list(self.unknown),
            "constituents": [[int(i), int(j), label] for (i, j), label in zip(parse.spans, parse.labels, strict=True)],
            "log_probability": self.log_probability if math.isfinite(self.log_probability) else None,
        }
        if with_posteriors:
            spans = parse.spans
            record["posteriors"] = {
                "constituents": _rounded(self.posteriors[spans[:, 0], spans[:, 1]]),
                "labels": _rounded(self.label_posteriors),
                "tags": _rounded(self.tag_posteriors),
                "spans": [
                    [int(i), int(j), round(float(self.posteriors[i, j]), 6)]
                    for i, j in np.argwhere(np.triu(self.posteriors, 2) >= 5e-7)
                ],
            }
        return record


def _rounded(values: NDArray[np.float32]) -> list[float]:
    return [round(float(value), 6) for value in values]


def _with_posteriors(analysis: Analysis) -> Parse:
    """The parse with the posterior of every label and tag written behind it, as in `NT-12:0.87`."""
    parse = analysis.parse
    labels = (f"{label}:{p:.2f}" for label, p in zip(parse.labels, analysis.label_posteriors, strict=True))
    tags = (f"{tag}:{p:.2f}" for tag, p in zip(parse.tags, analysis.tag_posteriors, strict=True))
    return replace(parse, labels=tuple(labels), tags=tuple(tags))


def as_brackets(analysis: Analysis, with_posteriors: bool = False) -> str:
    """One line; with posteriors a label reads `NT-12:0.87`."""
    return write_brackets(_with_posteriors(analysis) if with_posteriors else analysis.parse)


def as_json(analysis: Analysis, with_posteriors: bool = False) -> str:
    """One line of JSON."""
    return json.dumps(analysis.as_record(with_posteriors), ensure_ascii=False)


def as_pretty(analysis: Analysis, with_posteriors: bool = False) -> str:
    """The tree drawn with lines, top down, and a blank line behind it."""
    parse = _with_posteriors(analysis) if with_posteriors else analysis.parse
    if not len(parse):
        return ""
    try:
        return str(TreePrettyPrinter(parse.to_nltk()).text(unicodelines=True))
    except RecursionError as error:
        raise RamifyError(
            f"{analysis.sentence.where or 'sentence'}: a tree over {len(parse):,} words is too deep to be drawn; "
            "choose another --format."
        ) from error


def as_spans(analysis: Analysis, with_posteriors: bool = False) -> str:
    """One line: constituents as `i-j:label`, with the posterior of span and label behind `=` if asked for."""
    parse = analysis.parse
    return " ".join(
        f"{i}-{j}:{label}" + (f"={p:.4f}" if with_posteriors else "")
        for (i, j), label, p in zip(parse.spans, parse.labels, analysis.label_posteriors, strict=True)
    )


FORMATS = {"brackets": as_brackets, "json": as_json, "pretty": as_pretty, "spans": as_spans}
