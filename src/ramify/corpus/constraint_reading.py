"""Constraints from brackets among the words, from a file with a line for each sentence, or from punctuation."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from ramify.corpus.breaks import phrase_breaks
from ramify.corpus.constraints import Constraints, Span
from ramify.corpus.lines import LineReader, open_input, read_text_lines
from ramify.corpus.reading import CONTENTS
from ramify.corpus.sentence import Sentence
from ramify.corpus.streaming import Pause, SentenceStream
from ramify.corpus.table_rows import TABLES
from ramify.corpus.text import TextRules
from ramify.errors import RamifyError

_CLOSED_BY = {"[": "]", "{": "}"}
_SIGN = re.compile(r"\\[][{}]|[][{}]")
_ESCAPE = "put a backslash before brackets that are part of the text"


@dataclass(frozen=True)
class InlineRules(TextRules):
    """Text with square brackets around words that must be a constituent, and braces around words that must not.

    The brackets are not part of the sentence, which is read as without them. A bracket after a backslash is part of
    the text.
    """

    plain: TextRules = field(default_factory=TextRules)
    """Rules for the text without brackets"""

    @classmethod
    def of(cls, rules: TextRules) -> InlineRules:
        """The same rules for text with brackets."""
        return cls(rules.tokenise, rules.punctuation, rules.normal_form, rules.splitter, rules)

    def sentence(self, text: str, where: str = "") -> Sentence:
        """One sentence, given as a string with brackets in it."""
        plain, bracketed = _without_brackets(text, where)
        sentence = self.plain.sentence(plain, where)
        spans: dict[str, list[Span]] = {sign: [] for sign in _CLOSED_BY}
        for sign, start, end in bracketed:
            spans[sign].append(_tokens_between(sentence, start, end))
        constraints = Constraints(tuple(spans["["]), tuple(spans["{"]), where)
        return replace(sentence, constraints=constraints) if constraints else sentence


class ConstrainedStream:
    """The sentences of a stream, each with the constraints on its line of a file of JSON lines.

    A line contains `{"must": [[0, 3]], "must_not": [[4, 6]]}` or `{}`, or is blank. Each sentence needs a line.
    """

    def __init__(self, stream: SentenceStream, file: Path) -> None:
        self._stream, self._file = stream, file

    def __iter__(self) -> Iterator[Sentence | Pause]:
        file, sentences = self._file, 0
        with open_input(file) as raw:
            lines = read_text_lines(LineReader(raw, str(file)), str(file))
            for item in self._stream:
                if isinstance(item, Pause):
                    yield item
                    continue
                sentences += 1
                line = next(lines, None)
                if line is None:
                    raise self._mismatch(f"only {sentences - 1:,} lines", f"at least {sentences:,} sentences")
                yield replace(item, constraints=_read_line(line, f"{file}, line {sentences}"))
            if next(lines, None) is not None:
                raise self._mismatch(f"more than {sentences:,} lines", f"{sentences:,} sentences")

    def _mismatch(self, lines: str, sentences: str) -> RamifyError:
        return RamifyError(
            f"{self._file}: has {lines}, but {self._stream.source} has {sentences}; give one line for each, blank for "
            "a sentence without constraints."
        )


def constrain_by_punctuation(sentence: Sentence) -> Sentence:
    """With the constraint that the words between two punctuation marks are a constituent.

    Then no constituent crosses punctuation in the sense of breaks.py.
    """
    places = [place for place, is_word in enumerate(sentence.is_word) if is_word]
    breaks = phrase_breaks(sentence.tokens, ("",) * len(sentence.is_word), sentence.is_word)
    fragments = [(i, j) for i, j in pairwise((0, *breaks, len(places))) if j - i > 1]
    if not breaks or not fragments:
        return sentence
    must = tuple((places[i], places[j - 1] + 1) for i, j in fragments)
    return replace(sentence, constraints=Constraints(must, where=sentence.where))


def text_sentences(stream: SentenceStream) -> Iterator[Sentence | Pause]:
    """The sentences of a stream of text; trees and CoNLL-U are refused, since brackets in them are not constraints."""
    for item in stream:
        if stream.kind not in (None, "text", *TABLES):
            raise RamifyError(
                f"{stream.source}: contains {CONTENTS[stream.kind]}, but inline constraints need text; give them in a "
                "file."
            )
        yield item


def _read_line(line: str, where: str) -> Constraints | None:
    if not line.strip():
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        example = '{"must": [[0, 3]], "must_not": []}'
        raise RamifyError(f"{where}: this line is not JSON; give {example} or a blank line.") from error
    return Constraints.of(record, where) or None


def _without_brackets(text: str, where: str) -> tuple[str, list[tuple[str, int, int]]]:
    """The text without its brackets, and for each pair its kind and the places where it opens and closes."""
    pieces: list[str] = []
    found: list[tuple[str, int, int]] = []
    open_at: list[tuple[str, int, int]] = []
    read = length = 0
    for match in _SIGN.finditer(text):
        sign = match[0]
        pieces.append(text[read : match.start()])
        length += match.start() - read
        read = match.end()
        place = match.start() + 1
        if sign.startswith("\\"):
            pieces.append(sign[1])
            length += 1
        elif sign in _CLOSED_BY:
            open_at.append((sign, length, place))
        elif not open_at:
            raise _unbalanced(where, sign, place, "does not close any bracket")
        elif _CLOSED_BY[open_at[-1][0]] != sign:
            raise _unbalanced(where, sign, place, f"does not close the {open_at[-1][0]!r} before it")
        else:
            opening, start, _ = open_at.pop()
            found.append((opening, start, length))
    if open_at:
        raise _unbalanced(where, open_at[-1][0], open_at[-1][2], "is not closed")
    return "".join([*pieces, text[read:]]), found


def _unbalanced(where: str, sign: str, place: int, wrong: str) -> RamifyError:
    return RamifyError(f"{where or 'The sentence'}: the {sign!r} at character {place:,} {wrong}; {_ESCAPE}.")


def _tokens_between(sentence: Sentence, start: int, end: int) -> Span:
    """The tokens between two places of the text, neither of which may be inside a token."""
    first = bisect_left(sentence.offsets, start, key=lambda token: token[0])
    last = bisect_right(sentence.offsets, end, key=lambda token: token[1])
    for place in (start, end):
        before = bisect_left(sentence.offsets, place, key=lambda token: token[0]) - 1
        if before >= 0 and sentence.offsets[before][1] > place:
            raise RamifyError(
                f"{sentence.where or 'The sentence'}: a bracket is inside the token {sentence.tokens[before][:40]!r}; "
                f"put it between tokens, or {_ESCAPE}."
            )
    if first >= last:
        raise RamifyError(f"{sentence.where or 'The sentence'}: a pair of brackets contains no token; {_ESCAPE}.")
    return first, last
