"""A symbol's facts as pieces of text, the same for every kind of page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ramify.lab.glossary.entries import Counted, Nonterminal, Preterminal, Probable, Symbol, percent

MOST_GOLD = 4
"""How many gold labels of a symbol are shown"""


class Piece(NamedTuple):
    """A word, phrase or label, and a number that goes with it."""

    text: str
    number: str = ""


class Fact(NamedTuple):
    """One line about a symbol."""

    name: str
    pieces: Sequence[Piece]

    @property
    def separator(self) -> str:
        """Phrases hold spaces, and may hold commas."""
        return " / " if self.name in ("phrases", "two words") else ", "


def facts_of(symbol: Nonterminal | Preterminal) -> Iterator[Fact]:
    """All but the rules; what is not known is left out."""
    for fact in _nonterminal(symbol) if isinstance(symbol, Nonterminal) else _preterminal(symbol):
        if fact.pieces:
            yield fact


def _nonterminal(symbol: Nonterminal) -> Iterator[Fact]:
    correct = sum(count for _, count in symbol.gold)
    of_how_many = [Piece("of", f"{correct:,} correct")] if correct else []
    yield Fact("gold labels", _percents(symbol.gold_shares[:MOST_GOLD]) + of_how_many)
    yield Fact("heads", _percents(symbol.heads))
    for side, words in zip(("left", "right"), symbol.dependents, strict=True):
        yield Fact(f"dependents on the {side}", _percents(words))
    yield Fact("phrases", [Piece(phrase, f"×{count:,}" if count > 1 else "") for phrase, count in symbol.phrases])
    yield Fact("two words", [Piece(phrase) for phrase, _ in symbol.pairs])
    yield Fact("first words", _shares(symbol.first_words, symbol.count))
    yield Fact("last words", _shares(symbol.last_words, symbol.count))


def _preterminal(symbol: Preterminal) -> Iterator[Fact]:
    yield Fact("gold tags", _percents(symbol.gold_shares[:MOST_GOLD]))
    yield Fact("words", _percents(symbol.words))


def share_of(symbol: Symbol) -> str:
    """How much it is used, in words; empty where that is not known."""
    if symbol.share is None:
        return ""
    what = "constituents" if isinstance(symbol, Nonterminal) else "words"
    counted = f" ({symbol.count:,})" if symbol.count is not None else ""
    return f"{percent(symbol.share)} of {what}{counted}"


def distinctive(first_words: Counted) -> str:
    """The first words of a subtype."""
    return ", ".join(f"{word} ×{count:,}" for word, count in first_words) or "nothing tells it apart"


def _percents(pairs: Probable) -> list[Piece]:
    return [Piece(name, percent(share)) for name, share in pairs]


def _shares(counts: Counted, total: int | None) -> list[Piece]:
    return _percents(tuple((word, count / (total or 1)) for word, count in counts))
