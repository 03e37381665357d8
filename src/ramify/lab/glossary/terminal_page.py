"""A glossary in a terminal, or as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from ramify.lab.glossary.entries import Child, Glossary, Nonterminal, Preterminal, RuleInWords, percent
from ramify.lab.glossary.facts import Fact, distinctive, facts_of, share_of
from ramify.printing import printable


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
