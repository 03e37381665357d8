"""A glossary: entries, the facts in them, and how they are shown in a terminal, as JSON, Markdown or one HTML page.

All that comes from the model or the text is escaped. The page needs no network and no server: its security policy
allows only its own style and script, by their checksums.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct
from rich.console import RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text as Words

from ramify.drawing.html import policy_hash
from ramify.evaluation.induced import Induced
from ramify.evaluation.subtypes import Subtype
from ramify.lab.templates import render
from ramify.models.delexicalised import MAX_DEPTH
from ramify.models.rule_lookup import MAX_SOLVED
from ramify.printing import printable
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
    """`share`, from 0 to 1, in percent; without a space, so that no line breaks inside."""
    if 0 < share < 0.0005:
        return "<0.1%"
    return f"{100 * share:.0f}%" if share >= 0.0995 else f"{100 * share:.1f}%"


def _record(symbol: Nonterminal | Preterminal) -> dict[str, Any]:
    """As JSON values, without its number, which means nothing outside the model, and without missing heads."""
    gold = "gold_labels" if isinstance(symbol, Nonterminal) else "gold_tags"
    # Probabilities to six digits; further ones differ from machine to machine.
    content = json.dumps(msgspec.to_builtins(symbol))
    record = json.loads(content, parse_float=lambda digits: round(float(digits), 6))
    left_out = {"number"} if record.get("heads") else {"number", "heads", "dependents"}
    record |= {"share": symbol.share}
    return {gold if key == "gold" else key: value for key, value in record.items() if key not in left_out}


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


def facts_of(symbol: Nonterminal | Preterminal) -> list[Fact]:
    """All but the rules; what is not known is left out."""
    gold = _percents(symbol.gold_shares[:MAX_GOLD_LABELS])
    if isinstance(symbol, Preterminal):
        facts = {"gold tags": gold, "words": _percents(symbol.words)}
    else:
        of_how_many = [Piece("of", f"{sum(count for _, count in symbol.gold):,} correct")] if gold else []
        left, right = symbol.dependents
        facts = {
            "gold labels": gold + of_how_many,
            "heads": _percents(symbol.heads),
            "dependents on the left": _percents(left),
            "dependents on the right": _percents(right),
            "phrases": [Piece(phrase, f"×{count:,}" if count > 1 else "") for phrase, count in symbol.phrases],
            "two words": [Piece(phrase) for phrase, _ in symbol.pairs],
            "first words": _percents((word, count / (symbol.count or 1)) for word, count in symbol.first_words),
            "last words": _percents((word, count / (symbol.count or 1)) for word, count in symbol.last_words),
        }
    return [Fact(name, pieces) for name, pieces in facts.items() if pieces]


def _percents(pairs: Iterable[tuple[str, float]]) -> list[Piece]:
    return [Piece(name, percent(share)) for name, share in pairs]


def share_of(symbol: Nonterminal | Preterminal) -> str:
    """How much it is used, in words; empty where that is not known."""
    if symbol.share is None:
        return ""
    what = "constituents" if isinstance(symbol, Nonterminal) else "words"
    counted = f" ({symbol.count:,})" if symbol.count is not None else ""
    return f"{percent(symbol.share)} of {what}{counted}"


def distinctive(first_words: Counted) -> str:
    """The first words of a subtype."""
    return ", ".join(f"{word} ×{count:,}" for word, count in first_words) or "nothing tells it apart"


def as_markdown(glossary: Glossary) -> str:
    """The whole glossary."""
    return render("glossary/templates/glossary.md", **_values(glossary))


def as_html(glossary: Glossary) -> str:
    """The whole page."""
    folder = files("ramify.lab.glossary").joinpath("templates")
    style, script = (folder.joinpath(f"page.{ending}").read_text("utf-8") for ending in ("css", "js"))
    hashes = f"style-src {policy_hash(style)}; script-src {policy_hash(script)}"
    policy = f"default-src 'none'; {hashes}; base-uri 'none'"
    return render("glossary/templates/page.html", style=style, script=script, policy=policy, **_values(glossary))


def _values(glossary: Glossary) -> dict[str, Any]:
    return {
        "glossary": glossary,
        "places": {each.name: f"symbol-{each.number}" for each in (*glossary.nonterminals, *glossary.preterminals)},
        "facts_of": facts_of,
        "share_of": share_of,
        "percent": percent,
        "distinctive": distinctive,
        "search_words": _search_words,
        "version": VERSION,
    }


def _search_words(*found: str) -> str:
    """Each word once, as the script looks for them: in lower case, one space between them."""
    return " ".join(dict.fromkeys(" ".join(found).replace(",", " ").lower().split()))


def in_terminal(glossary: Glossary) -> Iterator[RenderableType]:
    """What to print, one below the other."""
    yield Words(printable(glossary.model), "bold")
    yield from (Words(printable(remark)) for remark in glossary.remarks())
    yield Rule("nonterminals", align="left")
    for symbol in glossary.nonterminals:
        rules = [("" if number else "rules", _rule(rule)) for number, rule in enumerate(symbol.rules)]
        yield _entry(symbol.name, share_of(symbol), [*_facts(symbol), *rules])
    if glossary.subtypes:
        yield Rule("gold labels, and the nonterminals that divide them with the words these begin with", align="left")
    for label, subtypes in glossary.subtypes.items():
        found = ((each.nonterminal, f"{percent(each.share)}  {distinctive(each.first_words)}") for each in subtypes)
        yield _entry(label, "", [(name, Words(printable(words))) for name, words in found])
    yield Rule("preterminals", align="left")
    for tag in glossary.preterminals:
        yield _entry(tag.name, share_of(tag), _facts(tag))


def _entry(name: str, about: str, rows: Iterable[tuple[str, Words]]) -> RenderableType:
    table, whole = Table.grid(padding=(0, 2, 0, 0)), Table.grid()
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, words in rows:
        table.add_row(Words(printable(label)), words)
    whole.add_row(Words.assemble((printable(name), "bold cyan"), "  ", printable(about)))
    whole.add_row(Padding(table, (0, 0, 0, 2)))
    return Padding(whole, (0, 0, 1, 0))


def _facts(symbol: Nonterminal | Preterminal) -> Iterator[tuple[str, Words]]:
    for fact in facts_of(symbol):
        pieces = ((printable(text), (f" {number}" if number else "", "dim")) for text, number in fact.pieces)
        yield fact.name, Words(fact.separator).join(Words.assemble(*piece) for piece in pieces)


def _rule(rule: RuleInWords) -> Words:
    words = Words.assemble((f"{rule.probability:.3f}", "dim"))
    for sign, child in (("  ", rule.left), ("  +  ", rule.right)):
        words.append(sign).append(printable(child.symbol), "bold")
        words.append(f" ({printable(child.meaning)})" if child.meaning else "")
    return words
