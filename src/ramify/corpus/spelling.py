"""A character model of spelling, which gives every string a probability.

For a grammar, a word outside the vocabulary is `<unk>`. If the probability of `<unk>` is multiplied by that of the
word's spelling, models with different vocabularies can be compared by the probability that they give to a text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from ramify.errors import RamifyError
from ramify.storage.files import write_atomically

ORDER = 5
"""A character depends on the four before it."""
SYMBOLS = 0x110001
"""Number of code points of Unicode, plus the end of the word."""
MAX_CHARACTERS = 250_000
"""The model is learnt from word types, the most frequent first, that together have about this many characters."""
LARGEST_FILE = 12 << 20
"""Largest size in bytes of a model learnt from this many characters."""

Counts = dict[str, int]


class Spelling:
    """Character n-grams with Witten-Bell smoothing (Witten and Bell 1991), down to a uniform distribution.

    `events` counts the characters that follow a context; an empty string is the end of the word. A context of fewer
    than four characters is the beginning of a word. The counts of shorter contexts follow from these. The model backs
    off from the beginning of a word to the same characters anywhere, and then drops one character at a time.
    """

    def __init__(self, events: Mapping[str, Mapping[str, int]], symbols: int = SYMBOLS) -> None:
        self._events = events
        self._symbols = symbols

    @classmethod
    def learnt_from(cls, words: Iterable[str], symbols: int = SYMBOLS) -> Spelling:
        """A model learnt from normalised words, each of which counts once."""
        events: dict[str, Counts] = {}
        characters = 0
        for word in words:
            if characters >= MAX_CHARACTERS:
                break
            for context, following in _contexts(word[: MAX_CHARACTERS - characters]):
                follows = events.setdefault(context, {})
                follows[following] = follows.get(following, 0) + 1
            characters += len(word) + 1
        return cls(events, symbols)

    def log_probability(self, word: str) -> float:
        """The log-probability of a normalised word and its end, in nats; finite for every string."""
        return sum(math.log(self.probability(context, following)) for context, following in _contexts(word))

    def probability(self, context: str, following: str) -> float:
        """The probability of a character, or of the end, after four characters, or fewer at the beginning of a word."""
        found = 1 / self._symbols
        counted = (self._anywhere.get(context[start:]) for start in range(len(context), -1, -1))
        at_beginning = self._events.get(context) if len(context) < ORDER - 1 else None
        for counts in chain(counted, [at_beginning]):
            if counts:
                kinds = len(counts)
                found = (counts.get(following, 0) + kinds * found) / (sum(counts.values()) + kinds)
        return found

    @cached_property
    def _anywhere(self) -> dict[str, Counts]:
        """The counts of characters after a context anywhere in a word."""
        found: dict[str, Counts] = {}
        for context, counts in self._events.items():
            for start in range(len(context) + 1):
                follows = found.setdefault(context[start:], {})
                for following, count in counts.items():
                    follows[following] = follows.get(following, 0) + count
        return found

    def save(self, path: Path) -> None:
        """As JSON; the same words give the same bytes."""
        record = {"order": ORDER, "events": self._events}
        text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        write_atomically(path, text.encode("utf-8", "backslashreplace"))

    @classmethod
    def load(cls, path: Path) -> Spelling:
        """The model that `save` wrote, checked before it is used."""
        try:
            if path.stat().st_size > LARGEST_FILE:
                raise RamifyError(
                    f"{path}: is larger than {LARGEST_FILE >> 20} MB, so it is not a spelling model; get a "
                    "complete copy of the folder."
                )
            record = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise RamifyError(
                f"{path}: cannot be read as JSON ({error}); get a complete copy of the folder."
            ) from error
        if not _is_model(record):
            raise RamifyError(
                f"{path}: is not a spelling model that this version knows; get a complete copy of the folder."
            )
        return cls(record["events"])


def _contexts(word: str) -> Iterator[tuple[str, str]]:
    """Each character, and the end, after its context."""
    for place in range(len(word) + 1):
        yield word[max(0, place - ORDER + 1) : place], word[place : place + 1]


def _is_model(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and record.get("order") == ORDER
        and isinstance(record.get("events"), dict)
        and all(
            len(context) < ORDER
            and isinstance(counts, dict)
            and all(len(each) <= 1 and type(n) is int and 0 < n <= MAX_CHARACTERS for each, n in counts.items())
            for context, counts in record["events"].items()
        )
    )
