"""A glossary in a terminal, as Markdown, and as one HTML page that needs nothing else: no network, no server.

All that comes from the model or the text is escaped, and the page forbids itself, by the checksums of its style and
script, to run or load anything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from ramify.drawing.html import policy_hash
from ramify.lab.glossary.entries import (
    Child,
    Fact,
    Glossary,
    Nonterminal,
    Preterminal,
    RuleInWords,
    distinctive,
    facts_of,
    percent,
    share_of,
)
from ramify.lab.templates import render
from ramify.printing import printable
from ramify.version import VERSION


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
    symbols: list[Nonterminal | Preterminal] = [*glossary.nonterminals, *glossary.preterminals]
    return {
        "glossary": glossary,
        "places": {symbol.name: f"symbol-{symbol.number}" for symbol in symbols},
        "facts_of": lambda symbol: list(facts_of(symbol)),
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
    yield Text(printable(glossary.model), "bold")
    for remark in glossary.remarks():
        yield Text(printable(remark))
    yield Rule("nonterminals", align="left")
    for symbol in glossary.nonterminals:
        yield _entry(symbol, symbol.rules)
    if glossary.subtypes:
        yield Rule("gold labels, and the nonterminals that divide them with the words these begin with", align="left")
    for label, subtypes in glossary.subtypes.items():
        table = _grid()
        for subtype in subtypes:
            found = f"{percent(subtype.share)}  {distinctive(subtype.first_words)}"
            table.add_row(printable(subtype.nonterminal), printable(found))
        yield _headed(label, "", table)
    yield Rule("preterminals", align="left")
    for tag in glossary.preterminals:
        yield _entry(tag)


def _entry(symbol: Nonterminal | Preterminal, rules: Sequence[RuleInWords] = ()) -> RenderableType:
    table = _grid()
    for fact in facts_of(symbol):
        table.add_row(fact.name, _pieces(fact))
    for number, rule in enumerate(rules):
        table.add_row("" if number else "rules", _rule(rule))
    return _headed(symbol.name, share_of(symbol), table)


def _headed(name: str, what: str, table: Table) -> RenderableType:
    whole = Table.grid()
    whole.add_row(Text.assemble((printable(name), "bold cyan"), "  ", printable(what)))
    whole.add_row(Padding(table, (0, 0, 0, 2)))
    return Padding(whole, (0, 0, 1, 0))


def _grid() -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def _pieces(fact: Fact) -> Text:
    parts = [
        Text.assemble(printable(piece.text), (f" {piece.number}" if piece.number else "", "dim"))
        for piece in fact.pieces
    ]
    return Text(fact.separator).join(parts)


def _rule(rule: RuleInWords) -> Text:
    return Text.assemble((f"{rule.probability:.3f}", "dim"), "  ", _child(rule.left), "  +  ", _child(rule.right))


def _child(child: Child) -> Text:
    meaning = f" ({printable(child.meaning)})" if child.meaning else ""
    return Text.assemble((printable(child.symbol), "bold"), meaning)
