"""Constituents as attributes of spaCy's spans and tokens, with the names that benepar uses.

Only plain lists (`doc._.ramify`, a record for each sentence) and a span group (`doc.spans["ramify"]`) are stored, so
docs can be saved and sent to other processes. Everything else is computed from them on access. A doc that was saved
without its user data still has the span group, from which everything but tags and numbers can be computed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any, TypedDict

import numpy as np
from spacy.tokens import Doc, Span, Token

from ramify.corpus.brackets import write_brackets
from ramify.corpus.tree import ROOT, UNTAGGED, Parse
from ramify.errors import RamifyError

KEY = "ramify"
"""Name of the span group, and of the records in `doc._`"""
WHITE_SPACE_TAG = "SPACE"
Ends = tuple[int, int]


class Record(TypedDict):
    """One sentence as JSON values; places are counted in tokens of the doc."""

    start: int
    end: int
    constituents: list[list[Any]]
    """[first, after last, label, posterior of the span], in preorder, without the root"""
    tags: list[str]
    """Tags of all tokens of the sentence"""
    log_probability: float | None
    failure: str | None


def install_extensions() -> None:
    """Register the attributes; a name that is already registered gets the prefix `ramify_` instead."""
    if not Doc.has_extension(KEY):
        Doc.set_extension(KEY, default=None)
    for name, getter in _OF_SPANS.items():
        _install(Span, name, getter)
    for name, getter in _OF_TOKENS.items():
        _install(Token, name, getter)


def _install(owner: Any, name: str, getter: Callable[[Any], Any]) -> None:
    for chosen in (name, f"ramify_{name}"):
        if not owner.has_extension(chosen):
            owner.set_extension(chosen, getter=getter)
            return
        if owner.get_extension(chosen)[2] is getter:
            return


def store(doc: Doc, records: list[Record]) -> None:
    """Store the records of all sentences, and their constituents including roots as a span group."""
    doc._.set(KEY, records)
    spans = []
    for record in records:
        if record["start"] < record["end"]:
            spans.append(Span(doc, record["start"], record["end"], ROOT))
        spans.extend(Span(doc, start, end, label) for start, end, label, _ in record["constituents"])
    doc.spans[KEY] = spans


def labels(span: Span) -> tuple[str, ...]:
    """The labels of a constituent, outermost first; empty for a single word, and for other spans."""
    record, ends = _place(span)
    found = [label for start, end, label, _ in record["constituents"] if (start, end) == ends]
    return (ROOT, *found) if ends == (record["start"], record["end"]) else tuple(found)


def posterior(span: Span) -> float | None:
    """The probability that the words of the span are a constituent; None if the span is not in the tree."""
    record, ends = _place(span)
    return next((p for start, end, _, p in record["constituents"] if (start, end) == ends), None)


def constituents(span: Span) -> Iterator[Span]:
    """Every constituent inside the span in preorder, including single words and, first, the span itself."""
    record, ends = _place(span)
    return (span.doc[start:end] for start, end in _inside(span.doc, record, ends))


def children(span: Span) -> Iterator[Span]:
    """The largest constituents inside the span, other than itself."""
    record, ends = _place(span)
    after = ends[0]
    for start, end in _inside(span.doc, record, ends):
        if (start, end) != ends and start >= after:
            after = end
            yield span.doc[start:end]


def parent(span: Span) -> Span | None:
    """The smallest constituent around the span; None for a whole sentence."""
    record, (first, after) = _place(span)
    around = [
        (end - start, start, end)
        for start, end in _nodes(record)
        if start <= first and after <= end and end - start > after - first
    ]
    return span.doc[min(around)[1] : min(around)[2]] if around else None


def parse_string(span: Span) -> str:
    """A constituent in brackets, on one line; empty for other spans."""
    record, (first, after) = _place(span)
    places = [place for place in range(first, after) if not span.doc[place].is_space]
    words = tuple(bracket_word(span.doc[place].text) for place in places)
    tags = tuple(record["tags"][place - record["start"]] for place in places)
    names = labels(span)
    if not names:
        return write_brackets(Parse(words, tags, np.zeros((0, 2), np.int32), ()), "")[2:-1] if len(places) == 1 else ""
    number = {place: number for number, place in enumerate(places)}
    inside = [
        ((number[start], number[end - 1] + 1), label)
        for start, end, label, _ in record["constituents"]
        if first <= start and end <= after and ((start, end) != (first, after) or names[0] == ROOT)
    ]
    # Several labels over the same words: the outermost is the root of the brackets, the others are inside it.
    again = [] if names[0] == ROOT else [((0, len(places)), label) for label in names[1:]]
    nodes = [*again, *inside]
    spans = np.array([ends for ends, _ in nodes], np.int32).reshape(-1, 2)
    return write_brackets(Parse(words, tags, spans, tuple(label for _, label in nodes)), names[0])


def bracket_word(text: str) -> str:
    """A token as written in brackets, where white space would end the word."""
    return text if not any(map(str.isspace, text)) else "\u00a0".join(text.split())


def _alone(token: Token) -> Span:
    return token.doc[token.i : token.i + 1]


# spaCy sends the getters to its worker processes, so each is a function with a name.
def token_labels(token: Token) -> tuple[str, ...]:
    """Empty: a single word has a tag, and labels only if it is the whole sentence."""
    return labels(_alone(token))


def token_parse_string(token: Token) -> str:
    """The tag and the word in brackets."""
    return parse_string(_alone(token))


def token_constituents(token: Token) -> Iterator[Span]:
    """The word itself."""
    return constituents(_alone(token))


def token_parent(token: Token) -> Span | None:
    """The smallest constituent around the word."""
    return parent(_alone(token))


_OF_SPANS: dict[str, Callable[[Any], Any]] = {
    "labels": labels,
    "parse_string": parse_string,
    "constituents": constituents,
    "children": children,
    "parent": parent,
    "posterior": posterior,
}
_OF_TOKENS: dict[str, Callable[[Any], Any]] = {
    "labels": token_labels,
    "parse_string": token_parse_string,
    "constituents": token_constituents,
    "parent": token_parent,
}


def _place(span: Span) -> tuple[Record, Ends]:
    """The sentence that the span is in, and the span without white space at its ends."""
    doc, first, after = span.doc, span.start, span.end
    while first < after and doc[first].is_space:
        first += 1
    while after > first and doc[after - 1].is_space:
        after -= 1
    if first == after:
        return _bare(-1, -1, []), (first, after)  # white space is not part of any tree
    records = _records(doc)
    at = bisect_right(records, first, key=lambda record: record["start"]) - 1
    if at < 0 or after > records[at]["end"]:
        raise RamifyError(
            f"The span {span.text[:40]!r} is not inside one sentence that was parsed; give a smaller one."
        )
    return records[at], (first, after)


def _records(doc: Doc) -> list[Record]:
    found: list[Record] | None = doc._.get(KEY)
    if found is not None:
        return found
    if KEY not in doc.spans:
        raise RamifyError('This doc was not parsed by ramify; add it with nlp.add_pipe("ramify").')
    rebuilt: list[Record] = []
    for span in doc.spans[KEY]:
        if span.label_ == ROOT:
            tags = [WHITE_SPACE_TAG if token.is_space else UNTAGGED for token in span]
            rebuilt.append(_bare(span.start, span.end, tags))
        else:
            rebuilt[-1]["constituents"].append([span.start, span.end, span.label_, None])
    return rebuilt


def _bare(start: int, end: int, tags: list[str]) -> Record:
    return Record(start=start, end=end, constituents=[], tags=tags, log_probability=None, failure=None)


def _nodes(record: Record) -> Iterator[Ends]:
    yield record["start"], record["end"]
    yield from ((start, end) for start, end, _, _ in record["constituents"])


def _inside(doc: Doc, record: Record, ends: Ends) -> list[Ends]:
    """Constituents and words inside a span, in preorder, each once."""
    first, after = ends
    words = ((place, place + 1) for place in range(first, after) if not doc[place].is_space)
    found = {(start, end) for start, end in _nodes(record) if first <= start and end <= after}
    return sorted({*found, *words}, key=lambda each: (each[0], -each[1]))
