"""One sentence as the parser sees it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace

import numpy as np
from nltk.tree.prettyprinter import TreePrettyPrinter
from numpy.typing import NDArray

from ramify.corpus.brackets import write_brackets
from ramify.corpus.tree import Parse


@dataclass(frozen=True)
class Analysis:
    """A parse with what the grammar thinks of it."""

    parse: Parse
    log_probability: float
    """log p(w) in nats; minus infinity where the grammar has no derivation, as for every single word"""
    posteriors: NDArray[np.float32]
    """(N+1, N+1): posteriors[i, j] is the probability that words[i:j] are a constituent"""
    label_posteriors: NDArray[np.float32]
    """(constituents,): the probability of each constituent together with its label"""
    tag_posteriors: NDArray[np.float32]
    """(N,)"""

    def as_record(self, with_posteriors: bool = False) -> dict[str, object]:
        """The analysis in terms of JSON: words, tags, constituents [i, j, label], log p(w)."""
        parse = self.parse
        record: dict[str, object] = {
            "words": list(parse.words),
            "tags": list(parse.tags),
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
    return str(TreePrettyPrinter(parse.to_nltk()).text(unicodelines=True))


def as_spans(analysis: Analysis, with_posteriors: bool = False) -> str:
    """One line: constituents as `i-j:label`, with the posterior of span and label behind `=` if asked for."""
    parse = analysis.parse
    return " ".join(
        f"{i}-{j}:{label}" + (f"={p:.4f}" if with_posteriors else "")
        for (i, j), label, p in zip(parse.spans, parse.labels, analysis.label_posteriors, strict=True)
    )


FORMATS = {"brackets": as_brackets, "json": as_json, "pretty": as_pretty, "spans": as_spans}
