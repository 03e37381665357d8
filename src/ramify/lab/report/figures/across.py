"""S-F1 of several models on several treebanks."""

from __future__ import annotations

from typing import Any

from ramify.lab.report.figures.style import (
    COLUMN,
    baseline_look,
    errors,
    legend_below,
    look,
    means,
    new_figure,
    shortened,
)
from ramify.lab.results.collection import Spread


def draw_across(
    datasets: list[str],
    models: list[str],
    baselines: list[str],
    values: dict[tuple[str, str], Spread | None],
    looks: dict[str, int],
) -> Any:
    """A band a treebank; models stand at heights of their own, baselines in the middle."""
    names = [*models, *baselines]
    figure = new_figure(COLUMN, 0.8 + len(datasets) * max(0.28, 0.1 * len(models)), names)
    axes = figure.subplots()
    handles = []
    for number, name in enumerate(names):
        found = [values.get((data, name)) for data in datasets]
        is_model = name in models
        style = look(looks[name]) if is_model else baseline_look(name, number - len(models))
        offset = (number + 0.5) / len(models) * 0.6 - 0.3 if is_model else 0.0
        handles.append(
            axes.errorbar(
                means(found),
                [place + offset for place in range(len(datasets))],
                xerr=errors(found) if is_model and any(errors(found)) else None,
                color=style.colour,
                marker=style.mark,
                linestyle="none",
                markersize=4.5 if is_model else 4,
                zorder=3 if is_model else 2,
            )
        )
    for place in range(0, len(datasets), 2):
        axes.axhspan(place - 0.5, place + 0.5, color="#f0f0f0", zorder=0, linewidth=0)
    axes.set_yticks(range(len(datasets)), [shortened(data, 20) for data in datasets])
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel="S-F1", xlim=(0, 102), ylim=(len(datasets) - 0.5, -0.5))
    axes.grid(axis="x", linewidth=0.3, color="#cccccc")
    legend_below(figure, handles, names)
    return figure
