"""Systems compared on several treebanks or labels: a band for each, a mark for each system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ramify.lab.report.figures.style import COLUMN, Systems, errors, legend_below, means, new_figure, shortened
from ramify.lab.results.spread import Spread


def draw_dots(
    bands: Mapping[str, str], values: Mapping[str, Mapping[str, Spread | None]], systems: Systems, scale: str
) -> Any:
    """`bands` by name what is written beside each, `values` by system and band; baselines stand in the middle."""
    models = [name for name in values if name not in systems.baselines]
    figure = new_figure(COLUMN, 0.8 + len(bands) * max(0.28, 0.1 * len(models)), list(values))
    axes = figure.subplots()
    handles = []
    for name in values:
        is_model = name in models
        found = [values[name].get(band) for band in bands]
        offset = (models.index(name) + 0.5) / len(models) * 0.7 - 0.35 if is_model else 0.0
        style = systems.look(name) | {"linestyle": "none", "markersize": 4.5 if is_model else 4}
        heights = [place + offset for place in range(len(bands))]
        bars = errors(found) if is_model else None
        handles.append(axes.errorbar(means(found), heights, xerr=bars, zorder=3 if is_model else 2, **style))
    for place in range(0, len(bands), 2):
        axes.axhspan(place - 0.5, place + 0.5, color="#f0f0f0", zorder=0, linewidth=0)
    axes.set_yticks(range(len(bands)), [shortened(name, 20) for name in bands.values()])
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel=scale, xlim=(-2, 102), ylim=(len(bands) - 0.5, -0.5))
    axes.grid(axis="x", linewidth=0.3, color="#cccccc")
    legend_below(figure, handles, list(values))
    return figure
