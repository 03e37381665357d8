from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ramify.errors import RamifyError
from ramify.lab.report import make_report, write_report
from tests.command import ramify
from tests.lab.made_results import FAMILIES, Model, make_folder, put, result, tiny, write

SWEEP: list[Model] = [(f"tn-pcfg-{p}", p, {"model": "tn-pcfg"}, ("mbr",), 0.5) for p in (30, 60, 120)]
FIGURES = {
    "across-treebanks-main",
    "alignment-de-tn-pcfg-30",
    "alignment-de-tn-pcfg-60",
    "alignment-en-tn-pcfg-30",
    "alignment-en-tn-pcfg-60",
    "alignment-en-tn-pcfg-120",
    "curves-main-de",
    "curves-sizes-en",
    "f1-by-length-main-de",
    "f1-by-length-sizes-en",
    "recall-by-label-main-de",
    "recall-by-label-sizes-en",
    "symbols-en-tn-pcfg",
}


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    groups = {"main": (["en", "de"], SWEEP[:2]), "sizes": (["en"], SWEEP)}
    return make_folder(tmp_path_factory.mktemp("report") / "runs", groups)


@pytest.fixture(scope="module", name="out")
def _out(folder: Path) -> Path:
    """A report made where torch cannot be imported."""
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['numba'] = None\n"
        f"sys.argv = ['ramify', 'report', {str(folder)!r}]\n"
        "from ramify.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{len(FIGURES)} figures" in done.stdout
    return folder / "report"


class Page(HTMLParser):
    """What a page would fetch, the tags it opens and does not close, and the words in it."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.open: list[str] = []
        self.tags: list[str] = []
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href") and not (value or "").startswith("#"):
                self.fetched.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_everything_is_made_without_torch(out: Path) -> None:
    assert {file.stem for file in (out / "figures").glob("*.svg")} == FIGURES
    assert {file.stem for file in (out / "figures").glob("*.png")} == FIGURES
    tables = {file.stem for file in (out / "tables").glob("*.tex")}
    assert tables | {"runs"} == {file.stem for file in (out / "tables").glob("*.csv")}
    assert {"scores-main", "across-treebanks-main", "purity", "cost", "subtypes-en-tn-pcfg-30"} <= tables
    page, text = (out / "index.html").read_text(), (out / "report.md").read_text()
    for title in (
        "Scores", "Across treebanks", "Number of symbols", "Recall by gold label", "F1 by sentence length",
        "Nonterminals and gold labels", "Cost", "Training curves", "Every run",
    ):  # fmt: skip
        assert f">{title}</h2>" in page
        assert f"## {title}\n" in text


def test_the_page_begins_with_a_summary_and_the_main_figure(out: Path) -> None:
    page = (out / "index.html").read_text()
    order = [
        page.index(part) for part in ("<h1>", "3 models on 2 treebanks", "<svg", "<nav>", "<table>", ">Notes</h2>")
    ]
    assert order == sorted(order)
    text = (out / "report.md").read_text()
    order = [
        text.index(part)
        for part in ("# A made-up", "3 models on 2 treebanks", "![", "## Scores", "| model", "## Notes")
    ]
    assert order == sorted(order)


def test_every_note_is_printed_once(out: Path) -> None:
    for file in ("index.html", "report.md"):
        text = (out / file).read_text()
        found = re.findall(r"Hardware: [^.<]*\.[^.<]*\.", text)
        assert len(found) == len(set(found)) > 0, file
        assert text.count("Signature of de: ") == 1


def test_the_page_needs_nothing_else(out: Path) -> None:
    page = Page((out / "index.html").read_text())
    # Data that are written into the page itself, as the image of a colour bar, come from nowhere else.
    assert [source for source in page.fetched if not source.startswith("data:")] == []
    assert page.open == []
    assert page.tags.count("svg") == len(FIGURES)
    assert "@import" not in (out / "index.html").read_text()
    assert "url(http" not in (out / "index.html").read_text()


def test_ids_of_different_figures_do_not_meet(out: Path) -> None:
    ids = re.findall(r'\bid="([^"]+)"', (out / "index.html").read_text())
    assert len(ids) == len(set(ids))
    used = re.findall(r'(?:url\(|href=")#([^")]+)', (out / "index.html").read_text())
    assert set(used) <= set(ids)


def test_figures_are_sound_and_small(out: Path) -> None:
    for file in (out / "figures").iterdir():
        assert file.stat().st_size < 120_000, file
        if file.suffix == ".svg":
            svg = ET.parse(file).getroot()
            assert [words for words in svg.itertext() if words.strip()]
        else:
            assert file.read_bytes().startswith(b"\x89PNG")


def test_markdown_names_files_that_are_there(out: Path) -> None:
    linked = re.findall(r"!\[.*?\]\((.*?)\)", (out / "report.md").read_text())
    assert len(linked) == len(FIGURES)
    assert all((out / link).is_file() for link in linked)


@pytest.mark.slow
def test_the_same_results_give_the_same_files(folder: Path, out: Path, tmp_path: Path) -> None:
    again = make_report(folder, tmp_path / "again").page.parent
    for file in sorted(path for path in out.rglob("*") if path.is_file()):
        assert (again / file.relative_to(out)).read_bytes() == file.read_bytes(), file


def test_without_matplotlib_there_are_tables_and_one_note(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_report, "find_spec", lambda _name: None)
    made = ramify("report", folder, "--out", tmp_path / "out")
    assert made.returncode == 0
    assert made.stderr.count("pip install 'ramify[plot]'") == 1
    assert not (tmp_path / "out" / "figures").exists()
    assert (tmp_path / "out" / "tables" / "scores-main.tex").is_file()
    assert "<svg" not in (tmp_path / "out" / "index.html").read_text()
    assert "![" not in (tmp_path / "out" / "report.md").read_text()


def test_broken_and_half_finished_runs_are_named_and_the_page_is_made(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "runs", {"main": (["en"], FAMILIES[2:])}, baselines=("right",))
    of = folder / "runs" / "en" / "tn-pcfg-500"
    (of / "seed-0" / "results" / "mbr.json").write_text("{")
    (of / "seed-1" / "results" / "viterbi-rank.json").unlink()
    failure = {"format": 1, "error": "<b>out of [memory]</b>"}
    write(folder / "runs" / "en" / "tn-pcfg-60" / "seed-1" / "failed.json", failure)
    (folder / "runs" / "en" / "tn-pcfg-60" / "seed-1" / "results" / "mbr.json").unlink()
    made = ramify("report", folder)
    assert made.returncode == 0
    assert "index.html: 4 results" in made.stdout
    page = (folder / "report" / "index.html").read_text()
    for place in ("en/tn-pcfg-500/seed-0/results/mbr.json", "en/tn-pcfg-500/seed-1", "en/tn-pcfg-60/seed-1"):
        assert place in made.stderr
        assert place in page
    assert "failed: runs/en/tn-pcfg-60/seed-1: <b>out of [memory]</b>" in made.stderr
    assert "&lt;b&gt;out of [memory]&lt;/b&gt;" in page


def test_hostile_names_stay_names_in_page_and_figures(tmp_path: Path) -> None:
    nasty = '<img src=x onerror="a()">$\\frac$ id="x" \u202e\x00語' + "x" * 500
    record = result("en", FAMILIES[2], 0, "mbr") | {"data": nasty, "model": "<script>1</script>"}
    record["induced"]["alignment"] = {"<b>$N_P$": {"<i>": 3}, "]]>": {"&amp;": 1}}
    subtype = {"nonterminal": "</svg>", "count": 1, "share": 1.0, "first_words": [["<u>", 1]]}
    record["induced"]["subtypes"] = {"]]>": [subtype]}
    record["evaluation"]["recall_by_label"] |= {"</text><script>": {**label()}}
    write(tmp_path / "runs" / "a" / "b" / "seed-0" / "results" / "mbr.json", record)
    out = make_report(tmp_path).page.parent
    page = Page((out / "index.html").read_text())
    assert page.open == []
    assert page.tags.count("script") == 1
    assert not {"img", "b", "i", "u"} & set(page.tags)
    assert all(len(file.name.encode()) < 220 for file in out.rglob("*"))
    for figure in (out / "figures").glob("*.svg"):
        ET.parse(figure)


def label() -> dict[str, float]:
    return {"recall": 50.0, "constituents": 100, "share": 30.0, "mean_length": 3.0}


def test_names_that_are_alike_once_cut_have_files_of_their_own(tmp_path: Path) -> None:
    for model in ("a b", "a-b", "a_b"):
        put(tmp_path, tiny("en", model, 0, 50.0, induced={"usage": {"NT-1": 3}, "alignment": {"NP": {"NT-1": 3}}}))
    out = make_report(tmp_path).page.parent
    assert {file.stem for file in out.rglob("alignment*.svg")} == {
        "alignment-en-a-b", "alignment-en-a-b-2", "alignment-en-a-b-3"
    }  # fmt: skip


def test_pages_of_others_are_not_replaced(tmp_path: Path) -> None:
    put(tmp_path / "runs", tiny("en", "a", 0, 50.0))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<h1>mine</h1>")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "report.md").write_text("mine")
    for place in ("site", "thesis"):
        with pytest.raises(RamifyError, match="holds no report"):
            make_report(tmp_path / "runs", tmp_path / place)
        assert len(list((tmp_path / place).iterdir())) == 1
    assert (tmp_path / "site" / "index.html").read_text() == "<h1>mine</h1>"
    assert (tmp_path / "thesis" / "report.md").read_text() == "mine"
    (tmp_path / "file").write_text("")
    with pytest.raises(RamifyError, match="file: "):
        make_report(tmp_path / "runs", tmp_path / "file")
    with pytest.raises(RamifyError, match="does not exist; create it first"):
        make_report(tmp_path / "runs", tmp_path / "none" / "out")


def test_a_report_is_made_anew_in_its_place(tmp_path: Path) -> None:
    put(tmp_path, tiny("en", "a", 0, 50.0))
    make_report(tmp_path)
    (tmp_path / "report" / "mine.txt").write_text("kept")
    put(tmp_path, tiny("en", "b", 0, 60.0))
    page = make_report(tmp_path).page
    assert ">b</td>" in page.read_text()
    assert (tmp_path / "report" / "mine.txt").read_text() == "kept"


def test_a_report_that_is_stopped_leaves_the_earlier_page(tmp_path: Path) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    put(tmp_path, result("en", SWEEP[0], 0, "mbr"))
    with pytest.raises(KeyboardInterrupt):
        make_report(tmp_path, on_figure=stop)
    page = make_report(tmp_path).page  # a folder that was begun is known again
    before = page.read_text()
    with pytest.raises(KeyboardInterrupt):
        make_report(tmp_path, on_figure=stop)
    assert page.read_text() == before


def test_tables_of_an_earlier_report_are_told(tmp_path: Path) -> None:
    put(tmp_path, tiny("en", "a", 0, 50.0))
    assert make_report(tmp_path).notes == []
    (tmp_path / "report" / "tables" / "old.csv").write_text("1")
    (note,) = make_report(tmp_path).notes
    assert "old.csv" in note


@pytest.mark.parametrize("name", ["中文", "übung"])
def test_files_keep_names_in_other_scripts(tmp_path: Path, name: str) -> None:
    put(tmp_path, tiny(name, "a", 0, 50.0, epochs=[{"epoch": 1, "dev_perplexity": 5.0}]))
    assert (make_report(tmp_path).page.parent / "figures" / f"curves-others-{name}.svg").exists()


def test_a_wrong_folder_is_one_sentence(tmp_path: Path) -> None:
    made = ramify("report", tmp_path / "none")
    assert made.returncode == 2
    assert made.stderr.startswith("error: ")
    assert str(tmp_path / "none") in made.stderr
