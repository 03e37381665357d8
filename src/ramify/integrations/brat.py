"""brat's stand-off format: a text, and a file of annotations with the offsets of each constituent.

Offsets count characters (code points) of the whole text, as brat does; a character outside the Basic Multilingual Plane
counts as one. See https://brat.nlplab.org/standoff.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ramify.parser.analysis import Analysis

_LINE_ENDS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_NOT_IN_A_TYPE = re.compile(r"[^A-Za-z0-9_-]")


def standoff(analyses: Iterable[Analysis], with_posteriors: bool = False) -> Iterator[tuple[str, str]]:
    """For each sentence its line of the text and its lines of annotations, all with their line ends.

    A sentence is one line: line ends inside it become spaces, so offsets do not change. With posteriors, each
    constituent has a note with the posterior of its span.
    """
    offset = number = 0
    for analysis in analyses:
        text = _LINE_ENDS.sub(" ", analysis.sentence.text)
        tokens, lines = analysis.sentence.offsets, []
        for (first, after), label in zip(analysis.parse.spans.tolist(), analysis.parse.labels, strict=True):
            number += 1
            start, end = tokens[first][0], tokens[after - 1][1]
            kind = _NOT_IN_A_TYPE.sub("_", label) or "_"
            lines.append(f"T{number}\t{kind} {offset + start} {offset + end}\t{text[start:end]}\n")
            if with_posteriors:
                lines.append(
                    f"#{number}\tAnnotatorNotes T{number}\tposterior {analysis.posteriors[first, after]:.4f}\n"
                )
        offset += len(text) + 1
        yield f"{text}\n", "".join(lines)
