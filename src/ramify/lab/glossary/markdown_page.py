"""The book of a grammar in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ramify.lab.glossary.entries import Book, Child, Nonterminal, percent
from ramify.lab.glossary.facts import Fact, facts_of, share_of, telling
from ramify.printing import printable

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&$])")


def as_markdown(book: Book) -> str:
    """The whole book."""
    return "\n".join(_lines(book)) + "\n"


def _lines(book: Book) -> Iterator[str]:
    yield f"# The grammar of {_escaped(book.model)}"
    for remark in book.remarks():
        yield from ("", _escaped(remark))
    yield from ("", "## Nonterminals")
    for symbol in book.nonterminals:
        yield from _nonterminal(symbol)
    if book.subtypes:
        yield from ("", "## Gold labels and the nonterminals that divide them", "")
        yield from ("| label | nonterminal | share | first words |", "|---|---|---|---|")
        for label, subtypes in book.subtypes.items():
            for each in subtypes:
                cells = (label, each.nonterminal, percent(each.share), telling(each.first_words))
                yield f"| {' | '.join(map(_escaped, cells))} |"
    yield from ("", "## Preterminals", "", "| preterminal | use | words | gold tags |", "|---|---|---|---|")
    for tag in book.preterminals:
        told = {fact.name: _pieces(fact) for fact in facts_of(tag)}
        cells = (_escaped(tag.name), _escaped(share_of(tag)), told.get("words", ""), told.get("gold tags", ""))
        yield f"| {' | '.join(cells)} |"


def _nonterminal(symbol: Nonterminal) -> Iterator[str]:
    use = share_of(symbol)
    yield from ("", f"### {_escaped(symbol.name)}{': ' if use else ''}{_escaped(use)}", "")
    for fact in facts_of(symbol):
        yield f"- {fact.name}: {_pieces(fact)}"
    for rule in symbol.rules:
        yield f"- rule: {rule.probability:.3f} {_child(rule.left)} + {_child(rule.right)}"


def _pieces(fact: Fact) -> str:
    return fact.separator.join(
        _escaped(f"{piece.text} {piece.number}" if piece.number else piece.text) for piece in fact.pieces
    )


def _child(child: Child) -> str:
    meaning = f" ({_escaped(child.meaning)})" if child.meaning else ""
    return f"**{_escaped(child.symbol)}**{meaning}"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", printable(text))
