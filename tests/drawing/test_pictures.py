"""SVG, pages, charts: well-formed for any text, with the right numbers."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given

from ramify.corpus.tree import make_parse
from ramify.drawing.posterior_chart import chart_picture
from ramify.drawing.svg import document, layout_for, picture
from ramify.parser.analysis import Analysis
from ramify.parser.pictures import html_document, svg_document
from ramify.printing import printable
from tests.drawing.trees import TREES, analysis_of, drawn, right_branching

SVG = "{http://www.w3.org/2000/svg}"
MARKUP = "<script>alert(1)</script>"
ATTACK = make_parse([MARKUP, "&amp;", '"x'], [MARKUP, "'T", "T\x07"], [(0, 3), (0, 2)], [MARKUP, 'N"onload="x'])


def read(svg: str) -> ElementTree.Element:
    root = ElementTree.fromstring(svg.encode())
    assert root.tag == f"{SVG}svg"
    return root


def texts(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


@pytest.mark.parametrize("layout", ["horizontal", "vertical"])
@given(tree=TREES)
def test_every_text_is_in_the_picture_as_text(layout, tree):
    wanted = drawn(tree)
    root = read(document([picture(wanted, layout)]))
    assert texts(root) == [printable(node.text) for node in wanted.nodes]
    names = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert names <= {"svg", "style", "rect", "g", "title", "polyline", "text"}
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not any(name.startswith("on") or "href" in name or name in ("id", "style") for name in attributes)


def test_markup_in_words_labels_and_tags_is_only_text():
    analysis = analysis_of(ATTACK)
    for svg in (analysis.as_svg(), analysis.as_chart()):
        assert MARKUP in texts(read(svg))
    page = "\n".join(html_document([analysis]))
    elements, said = elements_of(page)
    assert "script" not in {name for name, _ in elements}
    assert not any(name.startswith("on") for _, attributes in elements for name in attributes)
    assert MARKUP in said
    assert "\x07" not in page


def elements_of(page: str) -> tuple[list[tuple[str, dict[str, str | None]]], str]:
    """The elements of a page with their attributes, and its text."""
    found: list[tuple[str, dict[str, str | None]]] = []
    said: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            found.append((tag, dict(attrs)))

        def handle_data(self, data):
            said.append(data)

    reader = Reader()
    reader.feed(page)
    reader.close()
    return found, "".join(said)


def shades(root: ElementTree.Element) -> list[float]:
    return [float(each.get("fill-opacity")) for each in root.iter(f"{SVG}rect") if "shade" in each.get("class")]


def test_the_colour_follows_the_posterior_and_the_pointer_shows_it():
    root = read(analysis_of(right_branching(5)).as_svg())
    found = shades(root)
    assert len(found) == 4
    assert found == sorted(found, reverse=True)
    assert found[0] == pytest.approx(0.5)
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert titles[0] == "NT-0: w0 w1 w2 w3 w4\nposterior of the span 1.000\nposterior with this label 0.500"
    assert "T: w4\nposterior of the tag 0.500" in titles


def test_labels_carry_posteriors_on_request_and_tags_can_be_left_out():
    analysis = analysis_of(right_branching(3))
    assert texts(read(analysis.as_svg(with_posteriors=True)))[0] == "NT-0:0.50"
    assert texts(read(analysis.as_svg(with_tags=False))) == ["NT-0", "w0", "NT-1", "w1", "w2"]


def test_a_sentence_without_a_parse_has_a_flat_tree_without_colour():
    analysis = Analysis.flat(analysis_of(right_branching(3)).sentence, np.zeros(3, bool), "no derivation")
    root = read(analysis.as_svg())
    assert texts(root) == ["TOP", "w0", "w1", "w2"]
    assert shades(root) == []
    page = "\n".join(html_document([analysis]))
    assert "has no parse (no derivation)" in page
    assert "Posteriors of all spans" not in page
    tagged = Analysis.flat(analysis.sentence, np.zeros(3, bool), "no derivation", tags=["A", "B", "C"])
    assert ">B</text>" in tagged.as_svg()
    assert "posterior" not in "".join(title.text for title in read(tagged.as_svg()).iter(f"{SVG}title"))


def test_thick_lines_lead_to_heads():
    analysis = analysis_of(right_branching(3), heads=(0, 3, 1))
    lines = [line.get("class") for line in read(analysis.as_svg()).iter(f"{SVG}polyline")]
    assert lines == ["edge", "edge", "edge head", "edge head"]
    assert "edge head" not in analysis_of(right_branching(3)).as_svg()


def test_long_sentences_are_vertical_where_no_layout_is_chosen():
    assert [layout_for(25), layout_for(26), layout_for(26, "horizontal")] == ["horizontal", "vertical", "horizontal"]
    short, long = analysis_of(right_branching(25)), analysis_of(right_branching(26))
    assert short._repr_svg_() == short.as_svg("horizontal") != short.as_svg("vertical")
    assert long._repr_svg_() == long.as_svg("vertical")
    assert "\n".join(svg_document([long])) == long.as_svg("horizontal")
    assert size(long.as_svg("vertical")) in "\n".join(html_document([long]))
    assert size(long.as_svg("horizontal")) in "\n".join(html_document([long], layout="horizontal"))


def size(svg: str) -> str:
    return re.search(r'width="\d+" height="\d+"', svg)[0]


def test_pictures_of_many_sentences_are_below_one_another():
    analyses = [analysis_of(right_branching(length)) for length in (2, 9, 4)]
    root = read("\n".join(svg_document(analyses)))
    alone = [read(analysis.as_svg()) for analysis in analyses]
    assert float(root.get("height")) == pytest.approx(sum(float(each.get("height")) for each in alone), abs=2)
    assert root.get("width") == alone[1].get("width")
    assert texts(root) == [text for each in alone for text in texts(each)]
    read("\n".join(svg_document([])))


def test_directions_of_texts():
    words = ["הכלב", "iPhone", ".", "גדול"]
    analysis = analysis_of(make_parse(words, ["T"] * 4, [(0, 4)], ["NP"]))
    for layout in ("horizontal", "vertical"):
        found = {text.text: text for text in read(analysis.as_svg(layout)).iter(f"{SVG}text")}
        assert [found[word].get("direction") for word in words] == ["rtl", None, "rtl", "rtl"]
        assert found["NP"].get("direction") is None
    # Left ends are aligned: the start of left-to-right text, the end of right-to-left text.
    assert [found[word].get("text-anchor") for word in words] == ["end", "start", "end", "end"]
    assert len({found[word].get("x") for word in words}) == 1
    page = "\n".join(html_document([analysis]))
    assert '<bdi dir="rtl">' in page
    assert '<div class="wide" tabindex="0" dir="rtl">' in page
    # Text without a direction would inherit that of the page around the picture, and its ends would be swapped.
    assert page.count('direction="ltr" role="img"') == page.count("<svg xmlns=") == 2


def test_the_chart_has_a_cell_for_each_probable_span_and_frames_the_tree():
    posteriors = np.zeros((4, 4), np.float32)
    posteriors[0, 3], posteriors[0, 2], posteriors[1, 3], posteriors[0, 1] = 1, 0.75, 0.001, 1
    root = read(document([chart_picture(["a", "bb", "c"], posteriors, {(0, 3), (1, 3), (2, 3)})]))
    assert shades(root) == [0.75, 1.0, 0.001]
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert titles == ["a bb\nposterior 0.750", "a bb c\nposterior 1.000", "bb c\nposterior 0.001"]
    assert sum(rect.get("class") == "chosen" for rect in root.iter(f"{SVG}rect")) == 2
    assert texts(root) == ["a", "bb", "c"]


@pytest.mark.parametrize("words", [["a", "bb", "cccccccccccc"], ["אחת", "שתיים", "שלוש"]])
def test_cells_are_in_the_row_of_the_first_word_and_the_column_of_the_last(words):
    root = read(document([chart_picture(words, np.ones((4, 4), np.float32))]))
    cells = [rect for rect in root.iter(f"{SVG}rect") if rect.get("class") == "shade"]
    middle = [
        (float(cell.get("x")) + float(cell.get("width")) / 2, float(cell.get("y")) + float(cell.get("height")) / 2)
        for cell in cells
    ]
    places = [(float(text.get("x")), float(text.get("y"))) for text in root.iter(f"{SVG}text")]
    for (start, end), (x, y) in zip([(0, 2), (0, 3), (1, 3)], middle, strict=True):
        assert y == places[start][1]
        assert abs(x - places[end - 1][0]) < 10
    width, height = float(root.get("width")), float(root.get("height"))
    assert all(0 < x < width and 0 < y < height for x, y in (*middle, *places))


def test_a_page_allows_only_its_style():
    page = "\n".join(html_document([analysis_of(right_branching(3)), analysis_of(right_branching(0))]))
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    assert re.fullmatch(r"default-src 'none'; style-src 'sha256-[A-Za-z0-9+/=]+'; base-uri 'none'", policy)
    elements, said = elements_of(page)
    assert [name for name, _ in elements].count("style") == 1
    assert not any({"style", "href", "src"} & set(attributes) for _, attributes in elements)
    assert "(TOP (NT-0 (T w0) (NT-1 (T w1) (T w2))))" in said
