"""How training went."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from ramify.lab.report.figures.style import COLUMN, PAGE, legend_below, look, new_figure


def draw_curves(
    perplexity: dict[str, list[dict[int, float]]], f1: dict[str, list[dict[int, float]]], looks: dict[str, int]
) -> Any:
    """A panel for each figure that there is; for each model a thin line a seed, and marks at their mean."""
    panels = [(of, name) for of, name in ((perplexity, "dev perplexity"), (f1, "dev S-F1")) if any(of.values())]
    width = PAGE if len(panels) > 1 else COLUMN
    figure = new_figure(width, 2.2, list(perplexity))
    handles: dict[str, Any] = {}
    for axes, (of, name) in zip(figure.subplots(1, len(panels) or 1, squeeze=False)[0], panels, strict=False):
        for model, seeds in of.items():
            style = look(looks[model])
            for curve in seeds if len(seeds) > 1 else ():
                axes.plot(list(curve), list(curve.values()), color=style.colour, linewidth=0.5, linestyle=style.line)
            epochs = sorted({epoch for curve in seeds for epoch in curve})
            middle = [fmean(curve[epoch] for curve in seeds if epoch in curve) for epoch in epochs]
            handles[model] = axes.plot(epochs, middle, color=style.colour, marker=style.mark, linestyle=style.line)[0]
        axes.set(xlabel="epoch", ylabel=name)
        axes.xaxis.get_major_locator().set_params(integer=True)
        if of is perplexity:
            values = [value for seeds in of.values() for curve in seeds for value in curve.values()]
            if max(values) > 4 * min(values):
                _logarithmic(axes)
        axes.grid(axis="y", linewidth=0.3, color="#cccccc")
    legend_below(figure, list(handles.values()), list(handles))
    return figure


def _logarithmic(axes: Any) -> None:
    """Ticks at 1, 2 and 5 times a power of ten, written out: names are no formulas here, so powers could not be."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
