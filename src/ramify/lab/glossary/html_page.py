"""The book of a grammar as one page that needs nothing else: no network, no server.

All that comes from the model or the text is escaped, and the page forbids itself, by the checksums of its own style and
script, to run or load anything else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files

from ramify.evaluation.subtypes import Subtype
from ramify.lab.glossary.entries import Book, Child, Nonterminal, Preterminal, RuleInWords, percent
from ramify.lab.glossary.facts import Fact, facts_of, share_of
from ramify.printing import printable
from ramify.version import VERSION

_LEGEND = (
    "N is any number; ×3: found three times. Gold labels are those of correctly predicted constituents. Before a rule "
    "stands its probability. Bars compare a symbol with the most used one."
)


def as_html(book: Book) -> str:
    """The whole page."""
    style, script = (
        files("ramify.lab.glossary").joinpath(f"page.{ending}").read_text("utf-8") for ending in ("css", "js")
    )
    title = _escaped(f"The grammar of {book.model}")
    policy = f"default-src 'none'; style-src '{_checksum(style)}'; script-src '{_checksum(script)}'; base-uri 'none'"
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            f"<title>{title}</title><style>{style}</style></head>",
            f"<body><header><h1>{title}</h1>",
            *(f'<p class="remark">{_escaped(remark)}</p>' for remark in book.remarks()),
            f'<p class="remark use">{_LEGEND}</p></header>',
            '<form class="search" id="search" role="search" hidden>',
            '<input type="search" aria-label="Search symbols" placeholder="Search: a name, a word, a label" '
            'autocomplete="off" spellcheck="false"><output aria-live="polite"></output></form>',
            "<main>",
            *_Page(book).sections(),
            "</main>",
            f'<footer><p class="use">Made by ramify {escape(VERSION)}.</p></footer>',
            f"<script>{script}</script></body></html>\n",
        ]
    )


def _checksum(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


class _Page:
    """The parts of a page for one book; they know which symbols it has a place for, to link to."""

    def __init__(self, book: Book) -> None:
        self._book = book
        symbols: Sequence[Nonterminal | Preterminal] = (*book.nonterminals, *book.preterminals)
        self._places = {symbol.name: f"symbol-{symbol.number}" for symbol in symbols}

    def sections(self) -> Iterator[str]:
        book = self._book
        of_nonterminals, of_preterminals = (
            max((symbol.share or 0 for symbol in symbols), default=0)
            for symbols in (book.nonterminals, book.preterminals)
        )
        yield from _section("Nonterminals", "", (self._symbol(each, of_nonterminals) for each in book.nonterminals))
        if book.subtypes:
            divided = (self._label(label, subtypes) for label, subtypes in book.subtypes.items())
            yield from _section("Gold labels and the nonterminals that divide them", "", divided)
        yield from _section(
            "Preterminals", "small", (self._symbol(each, of_preterminals) for each in book.preterminals)
        )

    def _symbol(self, symbol: Nonterminal | Preterminal, largest: float) -> str:
        facts = list(facts_of(symbol))
        rules = symbol.rules if isinstance(symbol, Nonterminal) else ()
        found = [piece.text for fact in facts for piece in fact.pieces]
        found += [f"{child.symbol} {child.meaning}" for rule in rules for child in (rule.left, rule.right)]
        content = [_fact(fact) for fact in facts]
        if rules:
            content.append(f"<dt>rules</dt><dd><ol>{''.join(map(self._rule, rules))}</ol></dd>")
        return _card(
            self._places[symbol.name],
            [symbol.name, *found],
            f"<h3><bdi>{_escaped(symbol.name)}</bdi></h3>" + _use(share_of(symbol)),
            _bar((symbol.share or 0) / largest) if largest else "",
            content,
        )

    def _label(self, label: str, subtypes: Sequence[Subtype]) -> str:
        rows = []
        for each in subtypes:
            words = "".join(_piece(word, f"×{count:,}") for word, count in each.first_words)
            rows.append(f"<dt>{self._link(each.nonterminal)} {percent(each.share)}</dt><dd>{words or '–'}</dd>")
        found = [label, *(each.nonterminal for each in subtypes)]
        found += [word for each in subtypes for word, _ in each.first_words]
        return _card(
            "", found, f"<h3><bdi>{_escaped(label)}</bdi></h3>" + _use("first words that tell them apart"), "", rows
        )

    def _rule(self, rule: RuleInWords) -> str:
        children = f"{self._child(rule.left)} + {self._child(rule.right)}"
        return f'<li><span class="number">{rule.probability:.3f}</span> {children}</li>'

    def _child(self, child: Child) -> str:
        meaning = f" (<bdi>{_escaped(child.meaning)}</bdi>)" if child.meaning else ""
        return self._link(child.symbol) + meaning

    def _link(self, name: str) -> str:
        shown = f'<bdi class="symbol">{_escaped(name)}</bdi>'
        return f'<a href="#{self._places[name]}">{shown}</a>' if name in self._places else shown


def _section(title: str, kind: str, cards: Iterable[str]) -> Iterator[str]:
    yield f'<section><h2>{title}</h2><div class="cards {kind}">'
    yield from cards
    yield "</div></section>"


def _card(place: str, found: Iterable[str], head: str, bar: str, content: Iterable[str]) -> str:
    # Each word once, as the script looks for them: in lower case, one space between them.
    words = " ".join(dict.fromkeys(" ".join(found).replace(",", " ").lower().split()))
    name = f' id="{place}"' if place else ""
    return (
        f'<article class="card"{name} data-search="{_escaped(words)}"><div class="head">{head}</div>{bar}'
        f"<dl>{''.join(content)}</dl></article>"
    )


def _use(text: str) -> str:
    return f'<span class="use">{_escaped(text)}</span>' if text else ""


def _bar(share: float) -> str:
    return (
        '<svg class="bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{100 * share:.2f}" height="1"/></svg>'
    )


def _fact(fact: Fact) -> str:
    kind = ' class="phrase"' if fact.separator == " / " else ""
    return f"<dt>{fact.name}</dt><dd{kind}>{''.join(_piece(*piece) for piece in fact.pieces)}</dd>"


def _piece(text: str, number: str = "") -> str:
    told = f' <span class="number">{_escaped(number)}</span>' if number else ""
    return f'<span class="piece"><bdi>{_escaped(text)}</bdi>{told}</span> '


def _escaped(text: str) -> str:
    return escape(printable(text))
