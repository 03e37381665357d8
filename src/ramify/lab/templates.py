"""Templates in which every value is escaped for the language of the page: HTML, Markdown, LaTeX, or plain text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from markupsafe import escape as html

from ramify.printing import printable

_MARKDOWN = re.compile(r"([\\`*_\[\]#|~$])")
# A row that begins with [ or * would be taken for an argument of the command before it.
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': "''", "[": "{[}", "*": "{*}", "±": r"$\pm$", "≤": r"$\leq$", "→": r"$\to$",
    "…": r"\ldots{}",
}  # fmt: skip


def markdown(text: str) -> str:
    """`text`, escaped for Markdown as GitHub reads it."""
    return _MARKDOWN.sub(r"\\\1", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def latex(text: str) -> str:
    """`text`, escaped for LaTeX."""
    return "".join(_LATEX.get(sign, sign) for sign in text)


def render(name: str, /, **values: Any) -> str:
    """The template of this name, below the folder of this module, with these values.

    `Markup` is inserted unchanged; every other value is escaped.
    """
    return _environment(name.rpartition(".")[2]).get_template(name).render(values)


@cache
def _environment(language: str) -> Environment:
    languages: dict[str, Callable[[str], str]] = {"html": html, "md": markdown, "tex": latex, "txt": str}
    escape = languages[language]
    # LaTeX needs the braces itself.
    marks: Any = {"variable_start_string": "<<", "variable_end_string": ">>", "block_start_string": "<%",
             "block_end_string": "%>", "comment_start_string": "<#", "comment_end_string": "#>"}  # fmt: skip
    environment = Environment(
        loader=PackageLoader("ramify.lab", ""),
        autoescape=True,  # of what is not `Markup`, so that nothing is escaped twice
        finalize=lambda value: value if isinstance(value, Markup) else Markup(escape(printable(str(value)))),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **(marks if language == "tex" else {}),
    )
    environment.filters["verbatim"] = Markup
    return environment
