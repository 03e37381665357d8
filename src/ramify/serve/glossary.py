"""Descriptions of the symbols of a grammar; the only module of `serve` that uses `lab.glossary`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ramify.corpus.streaming import SentenceStream
from ramify.lab.glossary.describe import Extent, count_text, describe, rule_for_trees
from ramify.lab.glossary.glossary import Glossary as Entries
from ramify.lab.glossary.glossary import Nonterminal, Preterminal, Text, facts_of, share_of
from ramify.parser import Parser
from ramify.printing import printable
from ramify.serve.limits import RefusedError

__all__ = ["Glossary", "Text", "parsed_text"]

_EXTENT = Extent(symbols=1 << 30, examples=8, words=8, rules=6)
"""Describe all symbols, because a request may be for any of them"""


@dataclass(frozen=True)
class Glossary:
    """The symbols of one grammar by name."""

    entries: Entries
    symbols: dict[str, Nonterminal | Preterminal]

    @classmethod
    def of(cls, parser: Parser, name: str, text: Text | None) -> Glossary:
        """The glossary of a grammar; an error for models without rules."""
        entries = describe(parser, name, text, _EXTENT)
        symbols: list[Nonterminal | Preterminal] = [*entries.nonterminals, *entries.preterminals]
        return cls(entries, {symbol.name: symbol for symbol in symbols})

    def card(self, name: str) -> dict[str, Any]:
        """The description of a symbol as JSON values."""
        if name not in self.symbols:
            raise RefusedError(
                404, f"{printable(name)[:80]!r} is not a symbol of this grammar, or is not used; check it."
            )
        symbol = self.symbols[name]
        rules = symbol.rules if isinstance(symbol, Nonterminal) else ()
        return {
            "name": symbol.name,
            "kind": "nonterminal" if isinstance(symbol, Nonterminal) else "preterminal",
            "share": symbol.share,
            "use": share_of(symbol),
            "facts": [
                {"name": fact.name, "pieces": [{"text": text, "number": number} for text, number in fact.pieces]}
                for fact in facts_of(symbol)
            ],
            "rules": [
                {
                    "probability": round(rule.probability, 6),
                    "children": [
                        {"symbol": child.symbol, "meaning": child.meaning} for child in (rule.left, rule.right)
                    ],
                }
                for rule in rules
            ],
        }

    def overview(self) -> dict[str, Any]:
        """All symbols with their shares, and how these were counted."""
        return {
            "remarks": list(self.entries.remarks()),
            "nonterminals": [{"name": each.name, "share": each.share} for each in self.entries.nonterminals],
            "preterminals": [{"name": each.name, "share": each.share} for each in self.entries.preterminals],
        }


def parsed_text(parser: Parser, file: Path) -> Text:
    """A text in which the symbols of a grammar are counted"""
    stream = SentenceStream(file, "auto", parser.text_rules, rule_for_trees(parser, file, "auto"))
    return count_text(file.name, parser.analyse_many(stream))
