from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from ramify.lab.report.render.csv import table_csv
from ramify.lab.report.render.html import table_html
from ramify.lab.report.render.latex import escape as latex
from ramify.lab.report.render.latex import table_latex
from ramify.lab.report.render.markdown import escape as markdown
from ramify.lab.report.render.markdown import table_markdown
from ramify.lab.report.report_table import Column, Number, Part, Table
from ramify.lab.results.schema import text
from ramify.printing import printable

NASTY = "<script>alert('1')</script> & \"a\" | \\input{x} $x_1$ 50% #1 ~^ `b` *c* [d](e)"


def example(name: str = "tn-pcfg", heading: str = "") -> Table:
    columns = [Column("model"), Column("S-F1"), Column("parameters"), Column("published", faint=True)]
    rows = [(name, Number(53.25, 3.0), Number(1_300_000, digits=0), Number(57.7, 4.2)), ("b", Number(30.0), None, None)]
    return Table("main", f"Scores of {name}", columns, [Part([*rows], heading)], ["2 seeds."], "data")


def test_html() -> None:
    page = table_html(example(heading="wsj"))
    assert '<td class="number">53.2<span class="std"> ±3.0</span></td>' in page
    assert '<td class="number">1,300,000</td>' in page
    assert '<td class="number faint">57.7<span class="std"> ±4.2</span></td>' in page
    assert '<tr class="part"><th colspan="4">wsj</th></tr>' in page
    assert "2 seeds." in page


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, _attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_html_of_a_hostile_name_is_that_name() -> None:
    parser = Tags()
    parser.feed(table_html(example(NASTY, NASTY)))
    assert "script" not in parser.tags
    assert parser.texts.count(NASTY) == 2


def test_markdown() -> None:
    lines = table_markdown(example(heading="wsj")).splitlines()
    assert lines[2:6] == [
        "| data | model | S-F1 | parameters | published |",
        "| --- | --- | --: | --: | --: |",
        "| wsj | tn-pcfg | 53.2 ±3.0 | 1,300,000 | 57.7 ±4.2 |",
        "|  | b | 30.0 |  |  |",
    ]


def test_markdown_of_a_hostile_name_breaks_no_table() -> None:
    row = table_markdown(example(NASTY)).splitlines()[4]
    assert len(re.findall(r"(?<!\\)\|", row)) == 5
    assert "<" not in row
    assert markdown("a|b*") == r"a\|b\*"


def test_latex() -> None:
    lines = table_latex(example(heading="w_1")).splitlines()
    assert r"\begin{tabular}{lrrr}" in lines
    assert r"model & S-F1 & parameters & \textcolor{gray}{published} \\" in lines
    assert r"tn-pcfg & $53.2 \pm 3.0$ & $1{,}300{,}000$ & \textcolor{gray}{$57.7 \pm 4.2$} \\" in lines
    assert r"b & $30.0$ &  &  \\" in lines
    assert r"\multicolumn{4}{l}{\textit{w\_1}} \\" in lines
    assert [line for line in lines if line in (r"\toprule", r"\midrule", r"\bottomrule")] == [
        r"\toprule", r"\midrule", r"\bottomrule"
    ]  # fmt: skip


@given(st.text())
def test_latex_has_no_signs_of_its_own_from_a_name(name: str) -> None:
    plain = latex(text(name, 1000))
    # Without the commands that stand for signs no sign is left that LaTeX would take for its own.
    for command in (r"\textbackslash{}", r"\textasciicircum{}", r"\textasciitilde{}", r"\ldots{}", r"$\pm$", r"$\leq$"):
        plain = plain.replace(command, "")
    plain = re.sub(r"\\text(less|greater|bar)\{\}|\{[\[*]\}|\$\\to\$|\\[{}$&#%_]", "", plain)
    assert not set(plain) & set("\\{}$&#%_^~<>|[*")


def test_latex_notes_stay_comments() -> None:
    table = Table("a", "t", [Column("x")], [Part([("y",)])], [text("one\ntwo\r\u2028three")])
    assert [line for line in table_latex(table).splitlines() if line.startswith("%")][2] == "% one two three"


def test_csv_is_read_back() -> None:
    lines = list(csv.DictReader(io.StringIO(table_csv(example(NASTY, heading="wsj")))))
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


@given(st.text(max_size=100))
def test_names_are_short_printable_lines(name: str) -> None:
    shown = text(name)
    assert len(shown) <= 60
    assert printable(shown, instead="") == shown
    shown.encode()
