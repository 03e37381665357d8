"""Which nonterminals a gold label is made of."""

from __future__ import annotations

from typing import Any

from ramify.lab.report.figures.style import PAGE, new_figure, shortened

LEAST, WRITTEN = 0.01, 0.1
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
    # From a blue that is still seen on white to nearly black.
    colours = ListedColormap(mpl.colormaps["Blues"](np.linspace(0.12, 1, 256)))
    for row, column in np.argwhere(shares >= LEAST):
        share = shares[row, column]
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor=colours(share), edgecolor="white", clip_on=False))
        if share >= WRITTEN:
            ink = "white" if share > 0.5 else "black"
            axes.text(column + 0.5, row + 0.5, f"{100 * share:.0f}", ha="center", va="center", fontsize=6, color=ink)
    axes.set_yticks(np.arange(len(labels)) + 0.5, [shortened(label, 12) for label in labels])
    axes.set_xticks(np.arange(len(symbols)) + 0.5, [shortened(symbol, 10) for symbol in symbols], rotation=90)
    axes.tick_params(length=0)
    axes.set(xlim=(0, len(symbols)), ylim=(len(labels), 0))
    axes.spines[:].set_visible(False)
    axes.set(xlabel="nonterminal, the most used first", ylabel="gold label")
    bar = figure.colorbar(ScalarMappable(cmap=colours), ax=axes, pad=0.01, aspect=14)
    bar.set_label("P(nonterminal | label)")
    bar.outline.set_visible(False)
    return figure
