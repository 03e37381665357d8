"""A glossary as Markdown, and as one HTML page that needs nothing else: no network, no server.

All that comes from the model or the text is escaped, and the page forbids itself, by the checksums of its style and
script, to run or load anything else.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any

from ramify.lab.glossary.entries import Glossary, Nonterminal, Preterminal, percent
from ramify.lab.glossary.facts import distinctive, facts_of, share_of
from ramify.lab.templates import render
from ramify.version import VERSION


def as_markdown(glossary: Glossary) -> str:
    """The whole glossary."""
    return render("glossary/templates/glossary.md", **_values(glossary))


def as_html(glossary: Glossary) -> str:
    """The whole page."""
    folder = files("ramify.lab.glossary").joinpath("templates")
    style, script = (folder.joinpath(f"page.{ending}").read_text("utf-8") for ending in ("css", "js"))
    policy = f"default-src 'none'; style-src '{_checksum(style)}'; script-src '{_checksum(script)}'; base-uri 'none'"
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


def _checksum(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
