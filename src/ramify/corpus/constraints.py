"""Spans of a sentence that must, or must not, be constituents of its tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ramify.errors import RamifyError

if TYPE_CHECKING:
    from ramify.corpus.sentence import Sentence

Span = tuple[int, int]

_MAX_NAMED = 3
"""Maximum number of forbidden spans that an error names"""
_LONGEST_NAME = 40
"""Maximum length of a span's words in an error, in characters"""


@dataclass(frozen=True)
class Constraints:
    """Spans (i, j) over the tokens i..j-1 of a sentence; punctuation at the ends of a span does not count."""

    must: tuple[Span, ...] = ()
    """All of these are constituents of the tree"""
    must_not: tuple[Span, ...] = ()
    """None of these is a constituent of the tree"""
    where: str = field(default="", compare=False)
    """File and line, for errors"""

    def __post_init__(self) -> None:
        for name in ("must", "must_not"):
            object.__setattr__(self, name, tuple(self._span(name, span) for span in self._list(name)))

    def __bool__(self) -> bool:
        return bool(self.must or self.must_not)

    @classmethod
    def of(cls, given: Constraints | Mapping[str, Any], where: str = "") -> Constraints:
        """From constraints, or from JSON values such as `{"must": [[0, 3]], "must_not": [[4, 6]]}`."""
        if isinstance(given, Constraints):
            return given
        if not isinstance(given, Mapping):
            raise _error(where, f"{given!r:.40} are not constraints", 'give {"must": [[0, 3]], "must_not": []}')
        unknown = set(given) - {"must", "must_not"}
        if unknown:
            raise _error(where, f"{min(map(repr, unknown)):.40} is unknown", "give must, must_not or both")
        return cls(**given, where=where)

    def _list(self, name: str) -> Sequence[Any]:
        spans = getattr(self, name)
        if not isinstance(spans, Sequence) or isinstance(spans, str):
            raise _error(self.where, f"{name} is {spans!r:.40}", "give a list of spans such as [[0, 3]]")
        return spans

    def _span(self, name: str, span: Any) -> Span:
        is_pair = isinstance(span, Sequence) and len(span) == 2 and all(type(post) is int for post in span)
        if not is_pair or not 0 <= span[0] < span[1]:
            raise _error(
                self.where,
                f"{span!r:.40} in {name} is not a span",
                "give the number of the first token, counted from 0, and of the one after the last, as in [0, 3]",
            )
        return span[0], span[1]


def forbidden_spans(sentence: Sentence) -> NDArray[np.bool_] | None:
    """(N+1, N+1) the spans of the N words that its constraints forbid; None without constraints.

    All spans that cross a required span are forbidden. This is sufficient: a binary tree has the largest possible
    number of spans that do not cross each other, so if none of its spans crosses (i, j), it contains (i, j).
    Constraints that no binary tree satisfies are an error.
    """
    if not sentence.constraints:
        return None
    words = _Words(sentence)
    must, must_not = words.spans("must"), words.spans("must_not")
    forbidden = np.zeros((words.count + 1, words.count + 1), np.bool_)
    for number, (i, j) in enumerate(must):
        if forbidden[i, j]:
            other = next(other for other in must[:number] if _cross(other, (i, j)))
            both = f"{words.name(other)} and {words.name((i, j))}"
            raise words.clash(f"{both} must be constituents but cross", "remove one of the two")
        forbidden[:i, i + 1 : j] = True
        forbidden[i + 1 : j, j + 1 :] = True
    for i, j in must_not:
        always = "a single word" if j - i < 2 else "the whole sentence" if j - i == words.count else ""
        if always:
            wrong = f"{words.name((i, j))} must not be a constituent, but {always} always is one"
            raise words.clash(wrong, "remove the constraint")
        if (i, j) in must:
            raise words.clash(f"{words.name((i, j))} both must and must not be a constituent", "remove one of the two")
        forbidden[i, j] = True
    if must_not:
        _check_some_tree(words, forbidden, must, must_not)
    return forbidden


def _check_some_tree(words: _Words, forbidden: NDArray[np.bool_], must: list[Span], must_not: list[Span]) -> None:
    """Refuse constraints that no tree satisfies; the error names the shortest span that needs a tree and has none."""
    possible = spans_with_trees(forbidden)
    for i, j in sorted({*must, (0, words.count)}, key=lambda span: (span[1] - span[0], span)):
        if possible[i, j]:
            continue
        inside = [span for span in must_not if i <= span[0] and span[1] <= j]
        named = ", ".join(map(words.name, inside[:_MAX_NAMED]))
        more = f" and {len(inside) - _MAX_NAMED:,} more" if len(inside) > _MAX_NAMED else ""
        raise words.clash(
            f"no binary tree over {words.name((i, j))} meets all its constraints; these must not be constituents: "
            f"{named}{more}",
            "remove some of them",
        )


def spans_with_trees(forbidden: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(N+1, N+1) the spans that have a binary tree without any forbidden span (N+1, N+1)."""
    posts = len(forbidden)
    possible = np.eye(posts, k=1, dtype=np.bool_)
    for width in range(2, posts):
        starts = np.arange(posts - width)[:, None]
        middles, ends = starts + np.arange(1, width), starts + width
        split = (possible[starts, middles] & possible[middles, ends]).any(1)
        possible[starts[:, 0], ends[:, 0]] = split & ~forbidden[starts[:, 0], ends[:, 0]]
    return possible


class _Words:
    """The constraints of a sentence in terms of its words, and how its spans are named in errors."""

    def __init__(self, sentence: Sentence) -> None:
        assert sentence.constraints is not None
        self._sentence, self._constraints = sentence, sentence.constraints
        self._before = list(accumulate(sentence.is_word, initial=0))
        """Number of words before each token"""
        self.count = self._before[-1]
        self._tokens: dict[Span, Span] = {}
        """The tokens of each span of words, as first given"""

    def spans(self, name: str) -> list[Span]:
        """The spans of `must` or `must_not` over words, without duplicates."""
        tokens = len(self._sentence.is_word)
        found: dict[Span, None] = {}
        for i, j in getattr(self._constraints, name):
            if j > tokens:
                wrong = f"[{i}, {j}] in {name} is outside the sentence, which has {tokens} token{'s' * (tokens != 1)}"
                raise self.clash(wrong, "give the number of a token, counted from 0, and of the one after the last")
            span = self._before[i], self._before[j]
            self._tokens.setdefault(span, (i, j))
            if span[0] == span[1]:
                raise self.clash(f"{self.name(span)} contains no word", "remove it from the constraints")
            found[span] = None
        return list(found)

    def name(self, span: Span) -> str:
        """A description such as `'the old man' (tokens 0-3)`."""
        place = [number for number, is_word in enumerate(self._sentence.is_word) if is_word]
        i, j = self._tokens.get(span) or (place[span[0]], place[span[1] - 1] + 1)
        text = " ".join(self._sentence.tokens[i:j])
        shortened = text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 3] + "..."
        return f"{shortened!r} (tokens {i}-{j})"

    def clash(self, wrong: str, advice: str) -> RamifyError:
        """An error that names the constraints and their place."""
        return _error(self._constraints.where or self._sentence.where, wrong, advice)


def _cross(one: Span, other: Span) -> bool:
    return one[0] < other[0] < one[1] < other[1] or other[0] < one[0] < other[1] < one[1]


def _error(where: str, wrong: str, advice: str) -> RamifyError:
    return RamifyError(f"{where or 'The constraints'}: {wrong}; {advice}.")
