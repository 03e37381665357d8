"""Perplexity and F1 against the number of preterminals."""

from __future__ import annotations

from typing import Any

from ramify.lab.report.figures.style import COLUMN, errors, legend_below, look, means, new_figure
from ramify.lab.results.collection import Spread

NAMES = ("perplexity (left)", "S-F1 (right)")


def draw_symbols(f1: dict[int, Spread | None], perplexity: dict[int, Spread | None]) -> Any:
    """Two lines with an axis each; sizes stand at their logarithms."""
    figure = new_figure(COLUMN, 2.3, NAMES)
    left = figure.subplots()
    right = left.twinx()
    right.spines["right"].set_visible(True)
    handles = []
    # A little to the left and to the right of their size, so that no bar hides another.
    for axes, values, number, name, aside in ((left, perplexity, 1, "perplexity", 0.98), (right, f1, 0, "S-F1", 1.02)):
        found, style = list(values.values()), look(number)
        handles.append(
            axes.errorbar(
                [aside * size for size in values],
                means(found),
                yerr=errors(found) if any(errors(found)) else None,
                color=style.colour,
                marker=style.mark,
                linestyle=style.line,
            )
        )
        axes.set_ylabel(name, color=style.colour)
        axes.tick_params(axis="y", colors=style.colour)
        axes.margins(y=0.15)
    left.set_xscale("log")
    left.set_xticks(list(f1), [str(p) for p in f1])
    left.set_xticks([], minor=True)
    left.set_xlabel("preterminals")
    legend_below(figure, handles, NAMES)
    return figure
