"""Many trees as one page, which needs no network and no scripts. Trees that are wider than the page scroll."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files

from ramify.drawing.measure import is_right_to_left
from ramify.drawing.svg import STYLE, Picture, escaped, framed, shade
from ramify.version import VERSION

_LEGEND = (
    "Each constituent is coloured by the posterior of its span, the probability that its words are a constituent. "
    "Rest the pointer on a node for the numbers. Where a model has heads, a thick line leads to the head word."
)
_CHART = (
    "Each cell is a span: its row is the first word, its column the last. Stronger colours are higher posteriors; the "
    "constituents of the tree have a frame."
)


@dataclass(frozen=True)
class Entry:
    """The part of the page about one sentence."""

    words: Sequence[str]
    text: str
    remarks: Sequence[str]
    """Lines below the text"""
    brackets: str
    tree: Picture | None
    """None for a sentence without tokens"""
    chart: Picture | None
    """None if there is no span of two words"""


def page(entries: Iterable[Entry]) -> Iterator[str]:
    """The lines of the page, each sentence as soon as it is available."""
    style = STYLE + files("ramify.drawing").joinpath("page.css").read_text("utf-8")
    policy = f"default-src 'none'; style-src {policy_hash(style)}; base-uri 'none'"
    yield "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            f"<title>Trees</title><style>{style}</style></head>",
            f'<body><header><h1>Trees</h1><p class="soft">{_LEGEND} {_scale()}</p></header><main>',
        ]
    )
    for number, entry in enumerate(entries, 1):
        yield "\n".join(_article(number, entry))
    yield f'</main><footer><p class="soft">Made by ramify {escaped(VERSION)}.</p></footer></body></html>'


def _article(number: int, entry: Entry) -> Iterator[str]:
    direction = "rtl" if is_right_to_left(entry.words) else "ltr"
    yield f'<article><h2>{number:,}. <bdi dir="{direction}">{escaped(entry.text)}</bdi></h2>'
    yield from (f'<p class="soft">{escaped(remark)}</p>' for remark in entry.remarks)
    if entry.tree is not None:
        yield _wide(entry.tree, direction)
        yield f'<details><summary>Brackets</summary><pre dir="ltr">{escaped(entry.brackets)}</pre></details>'
    if entry.chart is not None:
        yield f'<details><summary>Posteriors of all spans</summary><p class="soft">{_CHART}</p>'
        yield f"{_wide(entry.chart, direction)}</details>"
    yield "</article>"


def _wide(drawn: Picture, direction: str) -> str:
    """A picture that can be scrolled with the keyboard, and starts at the beginning of the sentence."""
    return f'<div class="wide" tabindex="0" dir="{direction}">{framed(drawn)}</div>'


def _scale() -> str:
    """A legend of the colours from 0 to 1."""
    steps = "".join(
        f'<rect class="shade" x="{12 * step}" width="12" height="14" fill-opacity="{shade(step / 10)}"/>'
        for step in range(11)
    )
    return f'0 <svg class="ramify scale" width="132" height="14" role="img" aria-label="colours">{steps}</svg> 1'


def policy_hash(content: str) -> str:
    """The checksum of a page's style or script, as a Content-Security-Policy lists it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
