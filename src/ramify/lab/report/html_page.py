"""The report as one page that needs nothing else: style and figures are in it, and it asks no network for anything."""

from __future__ import annotations

import re
from html import escape
from importlib.resources import files

from ramify.lab.report.markdown_page import problems_table
from ramify.lab.report.render.html import table_html
from ramify.lab.report.report_table import Table
from ramify.lab.report.sections.section import Picture, Section
from ramify.lab.results.collection import Runs
from ramify.version import VERSION

GENERATOR = '<meta name="generator" content="ramify report'
BROAD = 400
"""Figures wider than this many points are made for both columns of a paper."""
# What is folded is opened for the printer, also by browsers that cannot be told so in the style.
_SCRIPT = 'addEventListener("beforeprint",()=>document.querySelectorAll("details").forEach(d=>d.open=true))'


def page_html(runs: Runs, sections: list[Section], notes: list[str], drawings: dict[str, str]) -> str:
    """The page; `drawings` are the SVGs of the figures by name. Every text in it is escaped."""
    style = files("ramify.lab.report").joinpath("page.css").read_text(encoding="utf-8")
    anchors = {section.title: f"section-{number}" for number, section in enumerate(sections, 1)}
    links = "".join(f'<li><a href="#{anchor}">{escape(title)}</a></li>' for title, anchor in anchors.items())
    problems = problems_table(runs)
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'{GENERATOR} {VERSION}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(runs.title)}</title>\n<style>\n{style}</style>\n</head>\n<body>",
            f"<h1>{escape(runs.title)}</h1>",
            f'<p class="about">Made by ramify {VERSION} from {len(runs.results)} results.</p>',
            *(f"<p><strong>{escape(note)}</strong></p>" for note in notes),
            f'<div class="problems">{table_html(problems)}</div>' if problems else "",
            f"<nav><ul>{links}</ul></nav>",
            *(_section(section, anchors[section.title], drawings) for section in sections),
            f"<script>{_SCRIPT}</script>\n</body>\n</html>\n",
        ]
    )


def _section(section: Section, anchor: str, drawings: dict[str, str]) -> str:
    introduction = f"<p>{escape(section.introduction)}</p>" if section.introduction else ""
    blocks = []
    for block in section.blocks:
        if isinstance(block, Table):
            blocks.append(table_html(block))
        elif block.name in drawings:
            blocks.append(_figure(block, drawings[block.name]))
    return (
        f'<section>\n<h2 id="{anchor}">{escape(section.title)}</h2>\n{introduction}\n'
        + "\n".join(blocks)
        + "\n</section>"
    )


def _figure(picture: Picture, svg: str) -> str:
    # In a page the XML declaration and the document type of a file have no place.
    drawing = svg[svg.index("<svg") :].strip()
    drawing = drawing.replace("<svg", f'<svg role="img" aria-label="{escape(picture.title)}"', 1)
    width = re.search(r'width="([\d.]+)pt"', drawing)
    kind = ' class="broad"' if width and float(width[1]) > BROAD else ""
    body = (
        f'<figure{kind}><div class="wide">{drawing}</div><figcaption>{escape(picture.caption)}</figcaption>'
        f'<p class="notes">{escape(" ".join(picture.notes))}</p></figure>'
    )
    title = escape(picture.title)
    return (
        f"<details><summary>{title} (figure)</summary>{body}</details>" if picture.folded else f"<h3>{title}</h3>{body}"
    )
