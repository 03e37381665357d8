"""How figures look: made for a paper's column, told apart by mark and line as well as by colour."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from ramify.lab.results.collection import Spread

COLUMN, PAGE = 3.4, 7.0
"""Widths in inches of a figure in one column of a paper, and across both."""

# Okabe and Ito's colours, without the yellow, which is too light for lines on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_LINES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))
_GREYS = ("#444444", "#777777", "#999999", "#555555", "#888888")
_BASELINE_MARKS = {"left": "<", "right": ">", "random": "x", "balanced": "+", "oracle": "*"}

_SETTINGS: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.5,
    "errorbar.capsize": 2,
    # Text stays text: the file is small, and its words can be found and read aloud.
    "svg.fonttype": "none",
    # A name with dollar signs in it is a name, no formula.
    "text.parse_math": False,
}


_OTHER_SCRIPTS = (
    "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans CJK KR", "WenQuanYi Zen Hei", "Noto Sans Arabic",
    "Noto Sans Devanagari", "Noto Sans Bengali", "Noto Sans Tamil", "Noto Sans Thai", "Hiragino Sans", "PingFang SC",
    "Microsoft YaHei", "Malgun Gothic", "Nirmala UI", "Arial Unicode MS",
)  # fmt: skip


@dataclass(frozen=True)
class Look:
    """Of one system in all figures."""

    colour: str
    mark: str
    line: Any


def look(number: int) -> Look:
    """Colour, mark and line repeat after different numbers of systems, so that the three together do not."""
    return Look(_COLOURS[number % len(_COLOURS)], _MARKS[number % len(_MARKS)], _LINES[number % len(_LINES)])


def baseline_look(name: str, number: int) -> Look:
    """Grey and dotted; baselines of the known names have marks of their own."""
    mark = _BASELINE_MARKS.get(name.partition(" ")[0], ".")
    return Look(_GREYS[number % len(_GREYS)], mark, (0, (1, 2)))


@contextmanager
def drawing() -> Iterator[None]:
    """Matplotlib set as the figures want it, and as it was afterwards."""
    import matplotlib as mpl

    with mpl.rc_context({**_SETTINGS, "font.family": _fonts()}), warnings.catch_warnings():
        # Names may be in a script that no font here has; in the SVG the reader's own font has it.
        warnings.filterwarnings("ignore", message="Glyph")
        yield


@cache
def _fonts() -> list[str]:
    """Matplotlib's own, then what this machine has for scripts that it lacks."""
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return ["DejaVu Sans", *(name for name in _OTHER_SCRIPTS if name in installed)]


def new_figure(width: float, height: float, names: Sequence[str] = ()) -> Any:
    """An empty figure in which all labels find room, and below its height so many names in a legend."""
    from matplotlib.figure import Figure

    rows = -(-len(names) // _per_row(width, names))
    return Figure(figsize=(width, height + _LEGEND_ROW * rows), layout="constrained")


def legend_below(figure: Any, handles: list[Any], names: Sequence[str]) -> None:
    """Below the axes, where no data are; as many names side by side as the figure is wide."""
    per_row = _per_row(figure.get_figwidth(), names)
    shown = [shortened(name) for name in names]
    figure.legend(handles, shown, loc="outside lower center", ncols=per_row, handlelength=3, columnspacing=1.2)


_LEGEND_ROW, _SIGN, _SAMPLE = 0.165, 0.06, 0.5
"""Inches of the height of a row, the width of a letter, and of a line before a name with the space around both."""


def _per_row(width: float, names: Sequence[str]) -> int:
    longest = max((len(shortened(name)) for name in names), default=1)
    return max(1, min(4, int(width / (_SAMPLE + _SIGN * longest))))


def shortened(name: str, longest: int = 28) -> str:
    """A name that leaves room for the data."""
    return name if len(name) <= longest else name[: longest - 1] + "…"


def errors(values: list[Spread | None]) -> list[float]:
    """Deviations to draw; without one the bar has no length."""
    return [0.0 if value is None or value.std is None else value.std for value in values]


def means(values: list[Spread | None]) -> list[float]:
    """What is missing leaves a gap."""
    return [float("nan") if value is None else value.mean for value in values]


def rendered(figure: Any, name: str) -> tuple[str, bytes]:
    """The figure as SVG and as PNG."""
    svg = _as_svg(figure, name)
    # Everything has found its place, and to look for it takes longer than to draw.
    figure.set_layout_engine("none")
    return svg, _as_png(figure)


def _as_svg(figure: Any, name: str) -> str:
    """Without date, so that the same results give the same file, and with ids that no other figure of a page has."""
    import matplotlib as mpl

    out = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", out.getvalue(), flags=re.DOTALL)
    svg = re.sub(r'\s*<g id="[^"]*"/>', "", svg)
    svg = _without_idle_groups(re.sub(r'<g id="[^"]*"', "<g", svg))
    svg = re.sub(r' transform="rotate\(-?0 [^"]*"', "", svg)
    return re.sub(r"\n\s+", "\n", re.sub(r'\b(d|x|y|transform)="([^"]*)"', _rounded, svg))


def _without_idle_groups(svg: str) -> str:
    """Most groups have no attributes, so that nothing is lost without them but a third of the file."""
    kept: list[bool] = []
    parts = []
    for part in re.split(r"(</?g\b[^>]*>)", svg):
        if part == "</g>":
            keep = kept.pop()
        else:
            keep = part != "<g>"
            if part.startswith("<g") and not part.endswith("/>"):
                kept.append(keep)
        parts.append(part if keep else "")
    return "".join(parts)


def _rounded(attribute: re.Match[str]) -> str:
    """Coordinates to a hundredth of a point, which nobody sees, and in one line."""
    content = re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", attribute[2])
    return f'{attribute[1]}="{" ".join(content.split())}"'


def _as_png(figure: Any) -> bytes:
    """Sharp enough for print."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=200, metadata={"Software": None})
    return out.getvalue()
