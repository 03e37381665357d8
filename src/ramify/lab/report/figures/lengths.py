"""F1 by the length of sentences."""

from __future__ import annotations

from typing import Any

from ramify.lab.report.figures.style import COLUMN, baseline_look, errors, legend_below, look, means, new_figure
from ramify.lab.results.collection import Spread


def draw_lengths(
    bins: list[str], values: dict[str, dict[str, Spread | None]], baselines: list[str], looks: dict[str, int]
) -> Any:
    """A line a system over the bins; those of baselines are grey."""
    figure = new_figure(COLUMN, 2.3, list(values))
    axes = figure.subplots()
    handles = []
    for name, by_bin in values.items():
        found = [by_bin[x] for x in bins]
        style = baseline_look(name, baselines.index(name)) if name in baselines else look(looks[name])
        handles.append(
            axes.errorbar(
                range(len(bins)),
                means(found),
                yerr=errors(found) if any(errors(found)) else None,
                color=style.colour,
                marker=style.mark,
                linestyle=style.line,
                linewidth=0.9 if name in baselines else 1.3,
            )
        )
    axes.set_xticks(range(len(bins)), [x.replace("-", "–") for x in bins])
    axes.set(xlabel="words in the sentence", ylabel="S-F1", ylim=(-2, None))
    axes.grid(axis="y", linewidth=0.3, color="#cccccc")
    legend_below(figure, handles, list(values))
    return figure
