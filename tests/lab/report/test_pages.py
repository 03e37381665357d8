from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ramify.lab.report.exhibit import Exhibit, Number, Table
from ramify.lab.report.write_report import Page, footnotes_of, table_latex
from ramify.lab.results.collection import Problem
from ramify.lab.results.schema import one_line
from ramify.lab.templates import latex, markdown
from ramify.printing import printable

NASTY = "<script>alert('1')</script> & \"a\" | \\input{x} $x_1$ 50% #1 ~^ `b` *c* [d](e)"


def example(name: str = "tn-pcfg", heading: str = "wsj") -> Exhibit:
    rows = [(name, Number(53.25, 3.0), Number(1_300_000, digits=0), Number(57.7, 4.2)), ("b", Number(30.0), None, None)]
    table = Table(["model", "S-F1", "parameters", "published"], {heading: [*rows], "ctb": [rows[1]]}, published=1)
    return Exhibit("scores", ("main",), f"Scores of {name}", ["2 seeds."], table)


def page_of(*exhibits: Exhibit, **more: Any) -> Page:
    return Page("A title", "A summary.", {"scores": [*exhibits]}, **more)


def test_html() -> None:
    page = page_of(example()).as_html()
    assert '<td class="number">53.2<span class="std"> ±3.0</span></td>' in page
    assert '<td class="number">1,300,000</td>' in page
    assert '<td class="number faint">57.7<span class="std"> ±4.2</span></td>' in page
    assert '<tr class="part"><th colspan="4">wsj</th></tr>' in page
    assert "2 seeds." in page


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, _attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_html_of_a_hostile_name_is_that_name() -> None:
    parser = Tags()
    parser.feed(page_of(example(NASTY, NASTY), problems=[Problem("broken", NASTY, NASTY)]).as_html())
    assert parser.tags.count("script") == 1
    assert parser.texts.count(NASTY) == 4


def table_lines(exhibit: Exhibit) -> list[str]:
    return [line for line in page_of(exhibit).as_markdown().splitlines() if line.startswith("|")]


def test_markdown() -> None:
    assert table_lines(example()) == [
        "| data | model | S-F1 | parameters | published |",
        "| --- | --- | --: | --: | --: |",
        "| wsj | tn-pcfg | 53.2 ±3.0 | 1,300,000 | 57.7 ±4.2 |",
        "|  | b | 30.0 |  |  |",
        "| ctb | b | 30.0 |  |  |",
    ]


def test_markdown_of_a_hostile_name_breaks_no_table() -> None:
    row = table_lines(example(NASTY))[2]
    assert len(re.findall(r"(?<!\\)\|", row)) == 6
    assert "<" not in row
    assert markdown("a|b*") == r"a\|b\*"


def test_a_note_that_several_exhibits_have_is_a_footnote() -> None:
    table = Table(["a"], {"": [("x",)]})
    first, second = Exhibit("1", (), "One", ["both", "first"], table), Exhibit("2", (), "Two", ["both"], table)
    assert footnotes_of([first, second]) == {"both": 1}
    lines = page_of(first, second).as_markdown().splitlines()
    assert [line for line in lines if "[1](#notes)" in line] == ["first Notes: [1](#notes)", "Notes: [1](#notes)"]
    assert lines.count("1. both") == 1


def latex_of(exhibit: Exhibit) -> str:
    return table_latex(exhibit)


def test_latex() -> None:
    lines = latex_of(example(heading="w_1")).splitlines()
    assert r"\begin{tabular}{lrrr}" in lines
    assert r"model & S-F1 & parameters & \textcolor{gray}{published} \\" in lines
    assert r"tn-pcfg & $53.2 \pm 3.0$ & $1{,}300{,}000$ & \textcolor{gray}{$57.7 \pm 4.2$} \\" in lines
    assert r"b & $30.0$ &  &  \\" in lines
    assert r"\multicolumn{4}{l}{\textit{w\_1}} \\" in lines
    assert [line for line in lines if line in (r"\toprule", r"\midrule", r"\bottomrule")] == [
        r"\toprule", r"\midrule", r"\midrule", r"\bottomrule"
    ]  # fmt: skip


@given(st.text())
def test_latex_has_no_signs_of_its_own_from_a_name(name: str) -> None:
    plain = latex(one_line(name))
    # Without the commands that stand for signs no sign is left that LaTeX would take for its own.
    for command in (r"\textbackslash{}", r"\textasciicircum{}", r"\textasciitilde{}", r"\ldots{}", r"$\pm$", r"$\leq$"):
        plain = plain.replace(command, "")
    plain = re.sub(r"\\text(less|greater|bar)\{\}|\{[\[*]\}|\$\\to\$|\\[{}$&#%_]", "", plain)
    assert not set(plain) & set("\\{}$&#%_^~<>|[*")


def test_latex_notes_stay_comments() -> None:
    exhibit = Exhibit("a", (), "t", [one_line("one\ntwo\r\u2028three")], Table(["x"], {"": [("y",)]}))
    assert [line for line in latex_of(exhibit).splitlines() if line.startswith("%")][2] == "% one two three"


def test_csv_is_read_back() -> None:
    lines = list(csv.DictReader(io.StringIO(example(NASTY).table.as_csv())))
    assert lines[0] == {
        "data": "wsj",
        "model": NASTY,
        "S-F1": "53.25",
        "S-F1 std": "3",
        "parameters": "1300000",
        "published": "57.7",
        "published std": "4.2",
    }
    assert (lines[1]["S-F1"], lines[1]["S-F1 std"], lines[1]["parameters"]) == ("30", "", "")


@given(st.text(max_size=1000))
def test_texts_of_files_are_short_printable_lines(text: str) -> None:
    shown = one_line(text)
    assert len(shown) <= 300
    assert printable(shown, instead="") == shown
    shown.encode()
