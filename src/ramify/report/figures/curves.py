"""How training went."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from ramify.report.figures.style import COLUMN, PAGE, legend_below, look, new_figure


def draw_curves(perplexity: dict[str, list[dict[int, float]]], f1: dict[str, list[dict[int, float]]]) -> Any:
    """A panel for each figure that there is; for each model a thin line a seed, and marks at their mean."""
    panels = [(of, name) for of, name in ((perplexity, "dev perplexity"), (f1, "dev S-F1")) if any(of.values())]
    width = PAGE if len(panels) > 1 else COLUMN
    per_row = 4 if len(panels) > 1 else 2
    figure = new_figure(width, 2.2 + 0.16 * -(-len(perplexity) // per_row))
    handles: dict[str, Any] = {}
    for axes, (of, name) in zip(figure.subplots(1, len(panels) or 1, squeeze=False)[0], panels, strict=False):
        for number, (model, seeds) in enumerate(of.items()):
            style = look(number)
            for curve in seeds:
                axes.plot(list(curve), list(curve.values()), color=style.colour, linewidth=0.5, linestyle=style.line)
            epochs = sorted({epoch for curve in seeds for epoch in curve})
            middle = [fmean(curve[epoch] for curve in seeds if epoch in curve) for epoch in epochs]
            handles[model] = axes.plot(epochs, middle, color=style.colour, marker=style.mark, linestyle=style.line)[0]
        axes.set(xlabel="epoch", ylabel=name)
        axes.xaxis.get_major_locator().set_params(integer=True)
        if of is perplexity:
            values = [value for seeds in of.values() for curve in seeds for value in curve.values()]
            if max(values) > 4 * min(values):
                axes.set_yscale("log")
        axes.grid(axis="y", linewidth=0.3, color="#cccccc")
    legend_below(figure, list(handles.values()), list(handles), per_row)
    return figure
