"""The figures, made for a paper's column: systems differ in mark and line as well as in colour.

Systems are marks in bands or lines over lengths, epochs and numbers of symbols; alignments are heat maps. Matplotlib is
imported only when one is drawn.
"""

from __future__ import annotations

import io
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from statistics import fmean
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
    """How a model is drawn; colours, marks and lines repeat at different intervals, so few models share all three."""
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

    style = str(files("ramify.lab.report").joinpath("paper.mplstyle"))
    with mpl.style.context([style, {"font.family": _fonts()}]), warnings.catch_warnings():
        # Names may be in a script that no font here has; in the SVG the reader's font may have it.
        warnings.filterwarnings("ignore", message="Glyph")
        yield


@cache
def _fonts() -> list[str]:
    """Matplotlib's font, then those of this machine for scripts that it lacks."""
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return ["DejaVu Sans", *(name for name in _OTHER_SCRIPTS if name in installed)]


def new_figure(width: float, height: float, names: Sequence[str] = ()) -> Any:
    """An empty figure with room for all labels and, below its height, for a legend of these names."""
    from matplotlib.figure import Figure

    rows = -(-len(names) // _per_row(width, names))
    return Figure(figsize=(width, height + _LEGEND_ROW * rows), layout="constrained")


def legend_below(figure: Any, handles: Mapping[str, Any]) -> None:
    """Of what is drawn under each name; below the axes, where no data are."""
    names, per_row = [*map(shorten_name, handles)], _per_row(figure.get_figwidth(), [*handles])
    figure.legend(
        [*handles.values()], names, loc="outside lower center", ncols=per_row, handlelength=3, columnspacing=1.2
    )


_LEGEND_ROW, _SIGN, _SAMPLE = 0.165, 0.06, 0.5
"""Inches of the height of a row, the width of a letter, and of a line before a name with the space around both."""


def _per_row(width: float, names: Sequence[str]) -> int:
    longest = max((len(shorten_name(name)) for name in names), default=1)
    return max(1, min(4, int(width / (_SAMPLE + _SIGN * longest))))


def shorten_name(name: str, longest: int = 28) -> str:
    """A name, cut to leave room for the data."""
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
    # The layout is done, and computing it again would take longer than drawing.
    figure.set_layout_engine("none")
    figure.savefig(png, format="png", dpi=200, metadata={"Software": None})
    return Drawing(_without_group_ids(svg.getvalue()), png.getvalue(), figure.get_figwidth() > COLUMN)


def _without_group_ids(svg: str) -> str:
    """Matplotlib gives groups of all figures the same ids, but an id must be unique on a page."""
    ET.register_namespace("", "http://www.w3.org/2000/svg")
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ET.fromstring(svg)
    for group in root.iter("{http://www.w3.org/2000/svg}g"):
        group.attrib.pop("id", None)
    return ET.tostring(root, encoding="unicode") + "\n"


def draw_dots(
    bands: Mapping[str, str], values: Mapping[str, Mapping[str, Spread | None]], systems: Systems, scale: str
) -> Any:
    """`bands` has the label of each band, `values` the scores by system and band; baselines are in the middle."""
    models = [name for name in values if name not in systems.baselines]
    figure = new_figure(COLUMN, 0.8 + len(bands) * max(0.28, 0.1 * len(models)), list(values))
    axes = figure.subplots()
    handles = {}
    for name, by_band in values.items():
        is_model = name in models
        found = [by_band.get(band) for band in bands]
        offset = (models.index(name) + 0.5) / len(models) * 0.7 - 0.35 if is_model else 0.0
        style = systems.look(name) | {"linestyle": "none", "markersize": 4.5 if is_model else 4}
        heights = [place + offset for place in range(len(bands))]
        bars = errors(found) if is_model else None
        handles[name] = axes.errorbar(means(found), heights, xerr=bars, zorder=3 if is_model else 2, **style)
    for place in range(0, len(bands), 2):
        axes.axhspan(place - 0.5, place + 0.5, color="#f0f0f0", zorder=0, linewidth=0)
    axes.set_yticks(range(len(bands)), [shorten_name(name, 20) for name in bands.values()])
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel=scale, xlim=(-2, 102), ylim=(len(bands) - 0.5, -0.5))
    axes.grid(axis="x", linewidth=0.3, color="#cccccc")
    legend_below(figure, handles)
    return figure


Curves = dict[str, list[dict[int, float]]]
"""By model, for each seed, the value after each epoch"""


def draw_lengths(bins: list[str], values: Mapping[str, Mapping[str, Spread | None]], systems: Systems) -> Any:
    """A line for each system over bins of sentence lengths; those of baselines are grey."""
    figure = new_figure(COLUMN, 2.3, list(values))
    axes = figure.subplots()
    handles = {}
    for name, by_bin in values.items():
        style = systems.look(name) | {"linewidth": 0.9 if name in systems.baselines else 1.3}
        found = [by_bin[x] for x in bins]
        handles[name] = axes.errorbar(range(len(bins)), means(found), yerr=errors(found), **style)
    axes.set_xticks(range(len(bins)), [x.replace("-", "–") for x in bins])
    axes.set(xlabel="words in the sentence", ylabel="S-F1", ylim=(-2, None))
    axes.grid(axis="y", linewidth=0.3, color="#cccccc")
    legend_below(figure, handles)
    return figure


def draw_symbols(f1: dict[int, Spread | None], perplexity: dict[int, Spread | None]) -> Any:
    """Two lines, each with an axis, against the number of preterminals on a logarithmic scale."""
    figure = new_figure(COLUMN, 2.3, ("perplexity (left)", "S-F1 (right)"))
    left = figure.subplots()
    right = left.twinx()
    right.spines["right"].set_visible(True)
    handles = {}
    # A little to the left and to the right of their size, so that no bar hides another.
    sides = ((left, "left", perplexity, 1, "perplexity", 0.98), (right, "right", f1, 0, "S-F1", 1.02))
    for axes, side, values, number, name, aside in sides:
        found, style = list(values.values()), style_of_model(number)
        at = [aside * size for size in values]
        handles[f"{name} ({side})"] = axes.errorbar(at, means(found), yerr=errors(found), **style)
        axes.set_ylabel(name, color=style["color"])
        axes.tick_params(axis="y", colors=style["color"])
        axes.margins(y=0.15)
    left.set_xscale("log")
    left.set_xticks(list(f1), [str(p) for p in f1])
    left.set_xticks([], minor=True)
    left.set_xlabel("preterminals")
    legend_below(figure, handles)
    return figure


def draw_curves(perplexity: Curves, f1: Curves, systems: Systems) -> Any:
    """A panel for each measure; for each model a thin line per seed, and marks at their mean."""
    panels = [(of, name) for of, name in ((perplexity, "dev perplexity"), (f1, "dev S-F1")) if any(of.values())]
    figure = new_figure(PAGE if len(panels) > 1 else COLUMN, 2.2, list(perplexity))
    handles: dict[str, Any] = {}
    for axes, (of, name) in zip(figure.subplots(1, len(panels) or 1, squeeze=False)[0], panels, strict=False):
        for model, seeds in of.items():
            style = systems.look(model)
            for curve in seeds if len(seeds) > 1 else ():
                axes.plot(list(curve), list(curve.values()), **style | {"linewidth": 0.5, "marker": ""})
            epochs = sorted({epoch for curve in seeds for epoch in curve})
            middle = [fmean(curve[epoch] for curve in seeds if epoch in curve) for epoch in epochs]
            (handles[model],) = axes.plot(epochs, middle, **style)
        axes.set(xlabel="epoch", ylabel=name)
        axes.xaxis.get_major_locator().set_params(integer=True)
        if of is perplexity:
            values = [value for seeds in of.values() for curve in seeds for value in curve.values()]
            if max(values) > 4 * min(values):
                _logarithmic(axes)
        axes.grid(axis="y", linewidth=0.3, color="#cccccc")
    legend_below(figure, handles)
    return figure


def _logarithmic(axes: Any) -> None:
    """Ticks at 1, 2 and 5 times a power of ten, as plain numbers: formulas are switched off for the sake of names."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


SHOWN_FROM, LABELLED_FROM = 0.01, 0.1
"""Smaller shares are not drawn, and are drawn without their number."""


def draw_heat_map(labels: list[str], symbols: list[str], values: list[list[float]]) -> Any:
    """Labels below each other, nonterminals side by side; the darker, the more, and white is less than one percent."""
    import matplotlib as mpl
    import numpy as np
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Rectangle

    figure = new_figure(PAGE, 1.15 + 0.22 * len(labels))
    axes = figure.subplots()
    shares = np.array(values)
    # From a blue that is visible on white to nearly black.
    colours = ListedColormap(mpl.colormaps["Blues"](np.linspace(0.12, 1, 256)))
    for row, column in np.argwhere(shares >= SHOWN_FROM):
        share = shares[row, column]
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor=colours(share), edgecolor="white", clip_on=False))
        if share >= LABELLED_FROM:
            ink = "white" if share > 0.5 else "black"
            axes.text(column + 0.5, row + 0.5, f"{100 * share:.0f}", ha="center", va="center", fontsize=6, color=ink)
    axes.set_yticks(np.arange(len(labels)) + 0.5, [shorten_name(label, 12) for label in labels])
    axes.set_xticks(np.arange(len(symbols)) + 0.5, [shorten_name(symbol, 10) for symbol in symbols], rotation=90)
    axes.tick_params(length=0)
    axes.set(xlim=(0, len(symbols)), ylim=(len(labels), 0))
    axes.spines[:].set_visible(False)
    axes.set(xlabel="nonterminal, the most used first", ylabel="gold label")
    bar = figure.colorbar(ScalarMappable(cmap=colours), ax=axes, pad=0.01, aspect=14)
    bar.set_label("P(nonterminal | label)")
    bar.outline.set_visible(False)
    return figure
