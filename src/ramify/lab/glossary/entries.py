"""The entries of a glossary and the facts in them, whatever they are printed on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from ramify.evaluation.induced import Induced
from ramify.evaluation.subtypes import Subtype
from ramify.lab.templates import render
from ramify.models.delexicalised import MAX_DEPTH
from ramify.models.rule_lookup import MAX_SOLVED
from ramify.version import VERSION

Counted = tuple[tuple[str, int], ...]
"""Words, phrases or labels with how often they were found, the most frequent first"""
Probable = tuple[tuple[str, float], ...]
"""Words or phrases with their probabilities, the most probable first"""
Order = Literal["use", "expected use", "number"]


class Child(Struct, frozen=True, omit_defaults=True):
    """One of two children in a rule, and what it stands for."""

    symbol: str
    words: tuple[str, ...] = ()
    """The most probable words of a preterminal"""
    example: str | None = None
    """A typical phrase of a nonterminal; None where none is known"""

    @property
    def meaning(self) -> str:
        """In words; empty where nothing is known."""
        return ", ".join(self.words) if self.words else self.example or ""


class RuleInWords(Struct, frozen=True):
    """A binary rule of a nonterminal."""

    left: Child
    right: Child
    probability: float


class Symbol(Struct, frozen=True, kw_only=True):
    """What is known about a symbol of either kind."""

    name: str
    number: int
    """Its place in the grammar"""
    share: float | None
    """Of all constituents, or of all words, of the text or, without a text, of those expected in a derivation"""
    count: int | None
    """In the text"""
    gold: Counted
    """Gold labels of its correctly predicted constituents, or gold tags of its words"""

    @property
    def gold_shares(self) -> Probable:
        """The gold labels or tags as parts of one."""
        total = sum(count for _, count in self.gold)
        return tuple((label, count / total) for label, count in self.gold)


class Nonterminal(Symbol, frozen=True, kw_only=True):
    """A phrase of the grammar."""

    phrases: Counted
    """Its most typical constituents in the text"""
    pairs: Probable
    """Its most probable phrases of two words, where there is no text"""
    first_words: Counted
    last_words: Counted
    rules: tuple[RuleInWords, ...]
    heads: Probable = ()
    """Its most probable head words, of a lexicalised grammar"""
    dependents: tuple[Probable, Probable] = ((), ())
    """The words that most often depend on the head of its rule, on the left and on the right"""


class Preterminal(Symbol, frozen=True, kw_only=True):
    """A part of speech of the grammar."""

    words: Probable


@dataclass(frozen=True)
class Text:
    """What was parsed."""

    source: str
    induced: Induced
    not_derived: int
    """Sentences without a parse, left out"""


@dataclass(frozen=True)
class Glossary:
    """A grammar for a reader."""

    model: str
    order: Order
    """What the symbols are in the order of"""
    sizes: tuple[int, int]
    """How many nonterminals and preterminals the grammar has, shown or not"""
    nonterminals: Sequence[Nonterminal]
    preterminals: Sequence[Preterminal]
    subtypes: dict[str, list[Subtype]]
    """Of gold labels"""
    text: Text | None = None
    expected_words: float | None = None
    """Of a sentence drawn from the grammar, where that is finite and there is no text"""
    compound: bool = False
    lexicalised: bool = False

    def remarks(self) -> list[str]:
        """What a reader must know, a sentence or two each."""
        return render(
            "glossary/templates/remarks.txt", glossary=self, percent=percent, levels=MAX_DEPTH, most=MAX_SOLVED
        ).splitlines()

    def as_record(self) -> dict[str, object]:
        """As JSON values; what was counted in the text is there for all symbols, shown or not."""
        text = self.text
        return {
            "made_by": f"ramify {VERSION}",
            "model": self.model,
            "remarks": self.remarks(),
            "order": self.order,
            "text": None
            if text is None
            else {"source": text.source, "sentences": text.induced.sentences, "not_derived": text.not_derived},
            "nonterminals": [_record(symbol) for symbol in self.nonterminals],
            "preterminals": [_record(symbol) for symbol in self.preterminals],
            "induced": None if text is None else text.induced.as_record(),
        }


def percent(share: float) -> str:
    """`share`, a part of one, for a reader; written together, so that no line breaks in between."""
    if 0 < share < 0.0005:
        return "<0.1%"
    return f"{100 * share:.0f}%" if share >= 0.0995 else f"{100 * share:.1f}%"


def _record(symbol: Nonterminal | Preterminal) -> dict[str, Any]:
    """As JSON values; its number says nothing outside of the model, and most grammars have no head words."""
    gold = "gold_labels" if isinstance(symbol, Nonterminal) else "gold_tags"
    record = {gold if key == "gold" else key: value for key, value in msgspec.structs.asdict(symbol).items()}
    left_out = {"number"} if record.get("heads") else {"number", "heads", "dependents"}
    return {k: v if k == "share" else _rounded(msgspec.to_builtins(v)) for k, v in record.items() if k not in left_out}


def _rounded(value: Any) -> Any:
    """Probabilities to six digits; further ones differ from machine to machine."""
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return round(value, 6) if isinstance(value, float) else value


MAX_GOLD_LABELS = 4
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
    yield Fact("gold labels", _percents(symbol.gold_shares[:MAX_GOLD_LABELS]) + of_how_many)
    yield Fact("heads", _percents(symbol.heads))
    for side, words in zip(("left", "right"), symbol.dependents, strict=True):
        yield Fact(f"dependents on the {side}", _percents(words))
    yield Fact("phrases", [Piece(phrase, f"×{count:,}" if count > 1 else "") for phrase, count in symbol.phrases])
    yield Fact("two words", [Piece(phrase) for phrase, _ in symbol.pairs])
    yield Fact("first words", _shares(symbol.first_words, symbol.count))
    yield Fact("last words", _shares(symbol.last_words, symbol.count))


def _preterminal(symbol: Preterminal) -> Iterator[Fact]:
    yield Fact("gold tags", _percents(symbol.gold_shares[:MAX_GOLD_LABELS]))
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
