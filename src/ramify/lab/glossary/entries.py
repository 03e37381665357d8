"""The entries of a glossary, whatever they are printed on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ramify.evaluation.induced import Induced
from ramify.evaluation.subtypes import Subtype
from ramify.models.delexicalised import LEVELS
from ramify.models.lookup import MOST_SOLVED
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

    def remarks(self) -> Iterator[str]:
        """What a reader must know, a sentence or two each."""
        n, p = self.sizes
        shown = f"Shown are {_of(self.nonterminals, n, 'nonterminal')} and {_of(self.preterminals, p, 'preterminal')}"
        if self.text is None:
            yield f"{shown}, {_ORDERS[self.order]}."
            if self.expected_words is not None:
                yield f"A sentence drawn from the grammar has {self.expected_words:,.1f} words on average."
        else:
            yield from self._remarks_on_text(self.text, shown)
        if self.compound:
            yield (
                "The rules of a compound grammar differ from sentence to sentence; rules and words of preterminals "
                "are those at z = 0."
            )
        if self.lexicalised:
            yield (
                "The rules of a lexicalised grammar depend on head words; those shown are averages over the head words "
                "that a nonterminal has in derivations drawn from the grammar. Heads, and words of preterminals, are "
                f"those found in the first {LEVELS} levels of such derivations."
            )

    def _remarks_on_text(self, text: Text, shown: str) -> Iterator[str]:
        induced = text.induced
        usage, tag_usage = induced.usage, induced.tag_usage
        yield (
            f"{_counted(induced.sentences, 'sentence')} of {text.source} {'has' if induced.sentences == 1 else 'have'} "
            f"{_counted(sum(usage.values()), 'constituent')} of two words or more and "
            f"{_counted(sum(tag_usage.values()), 'word')}; {_counted(len(usage), 'nonterminal')} and "
            f"{_counted(len(tag_usage), 'preterminal')} are used. {shown}, {_ORDERS[self.order]}."
        )
        if text.not_derived:
            yield f"Sentences left out because the grammar cannot derive them: {text.not_derived:,}."
        if induced.purity is not None and induced.entropy is not None:
            yield (
                f"Of the correctly predicted constituents {percent(induced.purity)} have the gold label that their "
                f"nonterminal goes with most often (purity); H(label | nonterminal) is {induced.entropy:.2f} bits."
            )

    def as_record(self) -> dict[str, object]:
        """In terms of JSON; what was counted in the text is there for all symbols, shown or not."""
        text = self.text
        return {
            "made_by": f"ramify {VERSION}",
            "model": self.model,
            "remarks": list(self.remarks()),
            "order": self.order,
            "text": None
            if text is None
            else {"source": text.source, "sentences": text.induced.sentences, "not_derived": text.not_derived},
            "nonterminals": [_record(symbol) for symbol in self.nonterminals],
            "preterminals": [_record(symbol) for symbol in self.preterminals],
            "induced": None if text is None else text.induced.as_record(),
        }


_ORDERS = {
    "use": "the most used first",
    "expected use": "in the order of their expected use in a sentence drawn from the grammar",
    "number": "in the order of their numbers: how often each is expected is not known, as sentences drawn from the "
    "grammar have no finite expected length (or one so long that rounding may have caused it) or it has more than "
    f"{MOST_SOLVED:,} nonterminals",
}


def percent(share: float) -> str:
    """`share`, a part of one, for a reader; written together, so that no line breaks in between."""
    if 0 < share < 0.0005:
        return "<0.1%"
    return f"{100 * share:.0f}%" if share >= 0.0995 else f"{100 * share:.1f}%"


def _of(shown: Sequence[Symbol], total: int, what: str) -> str:
    if total == 1:
        return f"the only {what}"
    return f"all {total:,} {what}s" if len(shown) == total else f"{len(shown):,} of {total:,} {what}s"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _record(symbol: Nonterminal | Preterminal) -> dict[str, Any]:
    """In terms of JSON; its number says nothing outside of the model, and most grammars have no head words."""
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
