"""How figures look: made for a paper's column, with systems that differ in mark and line as well as in colour."""

from __future__ import annotations

import io
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ramify.lab.results.schema import Spread

COLUMN, PAGE = 3.4, 7.0
"""Widths in inches of a figure in one column of a paper, and across both."""

# Okabe and Ito's colours, without the yellow, which is too light for lines on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_LINES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))
_GREYS = ("#444444", "#777777", "#999999", "#555555", "#888888")
_BASELINE_MARKS = {"left": "<", "right": ">", "random": "x", "balanced": "+", "oracle": "*"}

_OTHER_SCRIPTS = (
    "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans CJK KR", "WenQuanYi Zen Hei", "Noto Sans Arabic",
    "Noto Sans Devanagari", "Noto Sans Bengali", "Noto Sans Tamil", "Noto Sans Thai", "Hiragino Sans", "PingFang SC",
    "Microsoft YaHei", "Malgun Gothic", "Nirmala UI", "Arial Unicode MS",
)  # fmt: skip


def style_of_model(number: int) -> dict[str, Any]:
    """How a model is drawn; colour, mark and line repeat after different numbers, so that the three together do not."""
    each = zip(("color", "marker", "linestyle"), (_COLOURS, _MARKS, _LINES), strict=True)
    return {name: values[number % len(values)] for name, values in each}


@dataclass(frozen=True)
class Systems:
    """The systems of a figure."""

    style_numbers: dict[str, int]
    """A number for each model, by which it looks the same in all figures"""
    baselines: Sequence[str] = ()

    def look(self, name: str) -> dict[str, Any]:
        """Of a model; baselines are grey and dotted."""
        if name not in self.baselines:
            return style_of_model(self.style_numbers[name])
        grey = _GREYS[self.baselines.index(name) % len(_GREYS)]
        return {"color": grey, "marker": _BASELINE_MARKS.get(name.partition(" ")[0], "."), "linestyle": (0, (1, 2))}


@contextmanager
def figure_style() -> Iterator[None]:
    """Matplotlib's settings for these figures; afterwards they are as before."""
    import matplotlib as mpl
    import matplotlib.style

    style = str(files("ramify.lab.report.figures").joinpath("paper.mplstyle"))
    with mpl.style.context([style, {"font.family": _fonts()}]), warnings.catch_warnings():
        # Names may be in a script that no font here has; in the SVG the reader's font may have it.
        warnings.filterwarnings("ignore", message="Glyph")
        yield


@cache
def _fonts() -> list[str]:
    """The one of matplotlib, then what this machine has for scripts that it lacks."""
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return ["DejaVu Sans", *(name for name in _OTHER_SCRIPTS if name in installed)]


def new_figure(width: float, height: float, names: Sequence[str] = ()) -> Any:
    """An empty figure with room for all labels and, below its height, for a legend of these names."""
    from matplotlib.figure import Figure

    rows = -(-len(names) // _per_row(width, names))
    return Figure(figsize=(width, height + _LEGEND_ROW * rows), layout="constrained")


def legend_below(figure: Any, handles: list[Any], names: Sequence[str]) -> None:
    """Below the axes, where no data are; as many names side by side as the figure is wide."""
    per_row = _per_row(figure.get_figwidth(), names)
    shown = [shorten_name(name) for name in names]
    figure.legend(handles, shown, loc="outside lower center", ncols=per_row, handlelength=3, columnspacing=1.2)


_LEGEND_ROW, _SIGN, _SAMPLE = 0.165, 0.06, 0.5
"""Inches of the height of a row, the width of a letter, and of a line before a name with the space around both."""


def _per_row(width: float, names: Sequence[str]) -> int:
    longest = max((len(shorten_name(name)) for name in names), default=1)
    return max(1, min(4, int(width / (_SAMPLE + _SIGN * longest))))


def shorten_name(name: str, longest: int = 28) -> str:
    """A name that leaves room for the data."""
    return name if len(name) <= longest else name[: longest - 1] + "…"


def means(values: Sequence[Spread | None]) -> list[float]:
    """The means; missing values leave a gap."""
    return [float("nan") if value is None else value.mean for value in values]


def errors(values: Sequence[Spread | None]) -> list[float] | None:
    """Deviations to draw; None if there are none."""
    found = [0.0 if value is None or value.std is None else value.std for value in values]
    return found if any(found) else None


@dataclass(frozen=True)
class Drawing:
    """A figure in its files; the SVG is also part of the page."""

    svg: str
    png: bytes
    is_broad: bool
    """Whether it is made for both columns of a paper"""


def render_figure(figure: Any, name: str, title: str) -> Drawing:
    """A figure as SVG and PNG, without a date, so that the same results give the same bytes."""
    import matplotlib as mpl

    svg, png = io.StringIO(), io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type")) | {"Title": title}
        figure.savefig(svg, format="svg", metadata=metadata)
    # Everything has found its place, and to look for it takes longer than to draw.
    figure.set_layout_engine("none")
    figure.savefig(png, format="png", dpi=200, metadata={"Software": None})
    return Drawing(_without_group_ids(svg.getvalue()), png.getvalue(), figure.get_figwidth() > COLUMN)


def _without_group_ids(svg: str) -> str:
    """Matplotlib calls the groups of every figure alike; on a page with several figures an id must be there once."""
    ET.register_namespace("", "http://www.w3.org/2000/svg")
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ET.fromstring(svg)
    for group in root.iter("{http://www.w3.org/2000/svg}g"):
        group.attrib.pop("id", None)
    return ET.tostring(root, encoding="unicode") + "\n"
