"""The posteriors of all spans of a sentence as a triangle of cells.

A row is the first word of a span and a column its last. Each word is at the near end of its row, below its column.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ramify.drawing.measure import is_right_to_left, text_width
from ramify.drawing.svg import Picture, abbreviated, direction_of, escaped, text_element
from ramify.printing import printable

_CELL = 20.0
_APART = 1.0
"""Between cells"""
_MARGIN = 10.0
_FONT_SIZE = 14.0
NEGLIGIBLE = 0.005
"""Cells with smaller posteriors are not drawn, because long sentences have thousands of them"""


def chart_picture(
    words: Sequence[str], posteriors: NDArray[np.float32], constituents: Collection[tuple[int, int]] = ()
) -> Picture:
    """`posteriors[i, j]` (N+1, N+1) is that of words[i:j]; spans among `constituents` get a frame."""
    grid = ChartGrid.of(words)
    chosen = {span for span in constituents if span[1] - span[0] > 1}
    probable = np.argwhere(np.triu(posteriors, 2) >= NEGLIGIBLE)
    spans = sorted({(int(start), int(end)) for start, end in probable} | chosen)
    content = [
        *(grid.row(start) for start in range(len(words) - 1)),
        *(grid.cell(span, float(posteriors[span]), span in chosen) for span in spans),
        *(grid.word(place) for place in range(len(words))),
    ]
    return Picture(grid.width, grid.height, "\n".join(content), f"Posteriors of all spans of: {' '.join(words)}")


@dataclass(frozen=True)
class ChartGrid:
    """Positions of rows, cells and words; mirrored for right-to-left scripts."""

    words: tuple[str, ...]
    right_to_left: bool
    left: float
    """Room for words that are longer than the space below the diagonal"""

    @classmethod
    def of(cls, words: Sequence[str]) -> ChartGrid:
        """The grid of a sentence."""
        missing = (text_width(word) * _FONT_SIZE - place * _CELL for place, word in enumerate(words))
        return cls(tuple(words), is_right_to_left(words), max(missing, default=0.0))

    @property
    def width(self) -> float:
        """Of the whole picture."""
        return 2 * _MARGIN + self.left + len(self.words) * _CELL

    @property
    def height(self) -> float:
        """Of the whole picture."""
        return 2 * _MARGIN + len(self.words) * _CELL

    def as_record(self) -> dict[str, object]:
        """As JSON values, for a page that draws the chart: the cell of words[i:j] is `cell` wide and high.

        Its left side is at `left` + j * `cell`, its top at `top` + i * `cell`. In `mirrored` charts, x becomes `width`
        - x.
        """
        return {
            "width": round(self.width, 1),
            "height": round(self.height, 1),
            "cell": _CELL,
            "apart": _APART,
            "left": round(self._column(0) - _CELL, 3),
            "top": _MARGIN,
            "font_size": _FONT_SIZE,
            "mirrored": self.right_to_left,
            "words": [
                {"text": printable(text), "x": round(x, 1), "y": round(y, 1), **direction_of(text, anchor, rtl)}
                for x, y, text, anchor, rtl in map(self._word, range(len(self.words)))
            ],
        }

    def row(self, start: int) -> str:
        """The background of all spans that begin with this word."""
        return self._rectangle("empty", start, start + 2, len(self.words)) + "/>"

    def cell(self, span: tuple[int, int], posterior: float, is_constituent: bool) -> str:
        """A span, coloured by its posterior, with a frame if it is a constituent."""
        start, end = span
        about = f"{escaped(abbreviated(self.words[start:end]))}\nposterior {posterior:.3f}"
        frame = self._rectangle("chosen", start, end, end) + "/>" if is_constituent else ""
        opacity = min(max(posterior, 0.0), 1.0)
        ground = self._rectangle("shade", start, end, end) + f' fill-opacity="{opacity:.3f}"/>'
        return f"<g><title>{about}</title>{ground}{frame}</g>"

    def word(self, place: int) -> str:
        """A word at the near end of its row."""
        x, y, text, anchor, right_to_left = self._word(place)
        return text_element(x, y, text, "word", anchor, right_to_left, _FONT_SIZE)

    def _word(self, place: int) -> tuple[float, float, str, str, bool]:
        x, y = self._mirrored(self._column(place + 1) - 5), _MARGIN + (place + 0.5) * _CELL
        return x, y, self.words[place], "left" if self.right_to_left else "right", self.right_to_left

    def _column(self, last: int) -> float:
        """x of the cells of spans that end before word `last`."""
        return _MARGIN + self.left + last * _CELL

    def _mirrored(self, x: float) -> float:
        return self.width - x if self.right_to_left else x

    def _rectangle(self, css: str, start: int, first_end: int, last_end: int) -> str:
        """A rectangle over the spans that begin with word `start` and end from `first_end` up to `last_end`."""
        ends = sorted((self._mirrored(self._column(first_end - 1)), self._mirrored(self._column(last_end))))
        return (
            f'<rect class="{css}" x="{ends[0] + _APART / 2:.1f}" y="{_MARGIN + start * _CELL + _APART / 2:.1f}" '
            f'width="{ends[1] - ends[0] - _APART:.1f}" height="{_CELL - _APART:.1f}"'
        )
