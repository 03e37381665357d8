"""The whole report: collect results, make sections, draw figures, write files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from ramify.errors import RamifyError
from ramify.lab.report.exhibit import Exhibit, Section, file_name
from ramify.lab.report.figures.style import Drawing, figure_style, render_figure
from ramify.lab.report.report_page import GENERATOR, Page, summary, table_latex
from ramify.lab.report.sections.gold_labels import by_label, by_length, induced
from ramify.lab.report.sections.score_tables import agreement, scores, treebank_comparison
from ramify.lab.report.sections.training import cost, curves, every_run, symbols, use_of_symbols
from ramify.lab.results.collection import Collection, Problem
from ramify.lab.results.find_results import collect_results
from ramify.storage.files import folder_contents, write_atomically
from ramify.storage.locks import locked_folder

SECTIONS = (
    scores, treebank_comparison, agreement, symbols, use_of_symbols,
    by_label, by_length, induced, cost, curves, every_run,
)  # fmt: skip
"""In the order of the page."""
PAGE, MARKDOWN, TABLES, FIGURES = "index.html", "report.md", "tables", "figures"
NO_FIGURES = (
    "There are no figures: matplotlib is not installed. Get it with pip install 'ramify[plot]' and run this again."
)


@dataclass(frozen=True)
class Report:
    """What a report consists of."""

    page: Path
    results: int
    tables: int
    figures: int
    problems: list[Problem]
    notes: list[str]


def make_report(folder: Path, out: Path | None = None, on_figure: Callable[[], None] = lambda: None) -> Report:
    """Read the results in `folder` and write the report into `out`, by default `folder/report`.

    Files of an earlier report are replaced, others are left alone.
    """
    study = collect_results(folder)
    out = out or folder / "report"
    _check_out(out)
    with locked_folder(out):
        return _write(study, out, on_figure)


def _write(study: Collection, out: Path, on_figure: Callable[[], None]) -> Report:
    if not (out / PAGE).exists():
        # From now on the folder is known as a report's, also to the next one if this one is killed.
        write_atomically(out / PAGE, Page(study.title, "This report is not finished.").as_html().encode())
    has_figures = find_spec("matplotlib") is not None
    for folder in (TABLES, FIGURES)[: 1 + has_figures]:
        _make_folder(out / folder)
    sections = sections_of(study)
    exhibits = [exhibit for section in sections for exhibit in section.exhibits]
    drawings = dict(_draw(exhibits, on_figure)) if has_figures else {}
    made: dict[str, bytes] = {}
    for name, drawn in drawings.items():
        made |= {f"{FIGURES}/{name}.svg": drawn.svg.encode(), f"{FIGURES}/{name}.png": drawn.png}
    for exhibit in exhibits:
        if exhibit.table and exhibit.in_print:
            made[f"{TABLES}/{exhibit.name}.tex"] = table_latex(exhibit).encode()
        if exhibit.table:
            made[f"{TABLES}/{exhibit.name}.csv"] = exhibit.table.as_csv().encode()
    notes = [] if has_figures else [NO_FIGURES]
    page = Page(study.title, summary(study), sections, drawings, notes, study.problems, study.results)
    # The page goes last: when it exists, so do all files that it links to.
    for name, content in (made | {MARKDOWN: page.as_markdown().encode(), PAGE: page.as_html().encode()}).items():
        write_atomically(out / name, content)
    tables = sum(exhibit.table is not None for exhibit in exhibits)
    notes += _others(out, set(made))
    return Report(out / PAGE, len(study.results), tables, len(drawings), study.problems, notes)


def sections_of(study: Collection) -> list[Section]:
    """All that have something in them; no two exhibits have the same files."""
    names_used: set[str] = set()

    def with_own_files(exhibit: Exhibit) -> Exhibit:
        plain = file_name(exhibit.kind, *exhibit.of)
        names = (plain, *(f"{plain}-{number}" for number in range(2, len(names_used) + 2)))
        name = next(name for name in names if name not in names_used)
        names_used.add(name)
        return replace(exhibit, name=name)

    found = (section for make in SECTIONS if (section := make(study)).exhibits)
    return [replace(section, exhibits=[*map(with_own_files, section.exhibits)]) for section in found]


def _draw(exhibits: list[Exhibit], on_figure: Callable[[], None]) -> Iterator[tuple[str, Drawing]]:
    for exhibit in exhibits:
        if exhibit.draw is not None:
            with figure_style():
                yield exhibit.name, render_figure(exhibit.draw(), exhibit.name, exhibit.title)
            on_figure()


def _check_out(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise RamifyError(f"{out}: is not a folder; give another name with --out.")
    if not out.parent.is_dir():
        raise RamifyError(f"{out}: there is no folder {out.parent}; make it first.")
    page = out / PAGE
    ours = page.is_file() and f'content="{GENERATOR}'.encode() in page.read_bytes()[:2000]
    if folder_contents(out, (PAGE,)) and not ours:
        raise RamifyError(f"{out}: is not empty and holds no report; give another folder with --out.")


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise RamifyError(f"{path}: cannot be made ({error.strerror}); give another folder with --out.") from error


def _others(out: Path, made: set[str]) -> list[str]:
    """A note on tables and figures that this report did not make: those of an earlier one may have other numbers."""
    files = (path.relative_to(out).as_posix() for folder in (TABLES, FIGURES) for path in (out / folder).glob("*"))
    others = sorted(set(files) - made)
    names = ", ".join(others[:3]) + (" and others" if len(others) > 3 else "")
    return [f"{out} also has {names}: not of this report, but perhaps of an earlier one."] if others else []
