"""Recall by gold label."""

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


def draw_labels(
    shares: dict[str, float],
    values: dict[str, dict[str, Spread | None]],
    baselines: list[str],
    looks: dict[str, int],
) -> Any:
    """A band a label, a mark a system, each at a height of its own, so that no mark hides another."""
    shown = [name for name in values if name not in baselines or name.startswith("right")]
    figure = new_figure(COLUMN, 0.8 + len(shares) * max(0.3, 0.075 * len(shown)), shown)
    axes = figure.subplots()
    handles = []
    labels = list(shares)
    for number, name in enumerate(shown):
        style = baseline_look(name, 0) if name in baselines else look(looks[name])
        found = [values[name][label] for label in labels]
        offset = (number + 0.5) / len(shown) * 0.8 - 0.4
        handles.append(
            axes.errorbar(
                means(found),
                [place + offset for place in range(len(labels))],
                xerr=errors(found) if any(errors(found)) else None,
                color=style.colour,
                marker=style.mark,
                linestyle="none",
            )
        )
    for place in range(0, len(labels), 2):
        axes.axhspan(place - 0.5, place + 0.5, color="#f0f0f0", zorder=0, linewidth=0)
    axes.set_yticks(range(len(labels)), [f"{shortened(label, 12)} ({shares[label]:.0f} %)" for label in labels])
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel="recall, %", xlim=(-2, 102), ylim=(len(labels) - 0.5, -0.5))
    axes.grid(axis="x", linewidth=0.3, color="#cccccc")
    legend_below(figure, handles, shown)
    return figure
