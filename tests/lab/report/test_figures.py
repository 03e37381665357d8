"""What can be asked of a figure without looking at it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from ramify.lab.report.figures import (
    Systems,
    draw_curves,
    draw_heat_map,
    draw_lengths,
    draw_symbols,
    figure_style,
    render_figure,
    style_of_model,
)
from ramify.lab.results.schema import Spread, spread

pytestmark = pytest.mark.needs("plot")


def words(svg: str) -> list[str]:
    return [part.strip() for part in ET.fromstring(svg).itertext() if part.strip()]


def drawn(draw: Any, *arguments: Any) -> tuple[Any, list[str]]:
    with figure_style():
        figure = draw(*arguments)
        svg = render_figure(figure, "figure", "A title").svg
    return figure, words(svg)


def test_perplexities_far_apart_have_plain_numbers_on_a_logarithmic_axis() -> None:
    figure, texts = drawn(draw_curves, {"a": [{1: 3000.0, 2: 400.0, 3: 90.0}]}, {"a": []}, Systems({"a": 0}))
    assert figure.axes[0].get_yscale() == "log"
    assert {"100", "1,000"} <= set(texts)
    assert not [text for text in texts if "$" in text or "^" in text]


@pytest.mark.parametrize("name", ["m", "balanced (baseline)", "Wide Names With Capitals In", "W" * 60])
def test_legends_stand_below_the_axes_and_labels_inside_the_figure(name: str) -> None:
    values: dict[str, dict[str, Spread | None]] = {
        f"{i}{name}": {"2-10": spread([50.0 + i, 52.0]), "11-20": spread([40.0])} for i in range(6)
    }
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with figure_style():
        figure = draw_lengths(["2-10", "11-20"], values, Systems({name: place for place, name in enumerate(values)}))
        FigureCanvasAgg(figure).draw()
        renderer = figure.canvas.get_renderer()
        (legend,) = figure.legends
        assert legend.get_window_extent(renderer).y1 <= figure.axes[0].get_tightbbox(renderer).y0 + 1
        whole = figure.get_tightbbox(renderer).get_points() * figure.dpi
        assert (whole[0] >= -1).all()
        assert (whole[1] <= figure.bbox.get_points()[1] + 1).all()


def test_every_label_and_symbol_is_written_as_it_is_called() -> None:
    _, texts = drawn(draw_heat_map, ["NP", "$x$"], ["NT-1", "NT-2"], [[0.5, 0.005], [1.0, 0.05]])
    assert {"NP", "$x$", "NT-1", "NT-2", "50", "100"} <= set(texts)
    assert "5" not in texts


def test_sizes_are_the_ticks_of_their_axis() -> None:
    sizes = {30: spread([50.0, 52.0]), 500: spread([60.0])}
    figure, texts = drawn(draw_symbols, sizes, {30: spread([200.0]), 500: None})
    assert {"30", "500", "perplexity", "S-F1"} <= set(texts)
    assert len(figure.axes) == 2


def test_systems_are_told_apart_by_more_than_colour() -> None:
    looks = [style_of_model(number) for number in range(60)]
    assert len({(each["marker"], str(each["linestyle"])) for each in looks[:36]}) == 36
    assert len({str(each) for each in looks}) == 60
