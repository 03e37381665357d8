"""The whole report: read, put into sections, drawn and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from ramify.errors import RamifyError
from ramify.lab.report.html_page import GENERATOR, page_html
from ramify.lab.report.markdown_page import page_markdown
from ramify.lab.report.render.csv import table_csv
from ramify.lab.report.render.latex import table_latex
from ramify.lab.report.report_table import Table
from ramify.lab.report.sections.across_treebanks import across
from ramify.lab.report.sections.gold_labels import induced
from ramify.lab.report.sections.labels_and_lengths import by_label, by_length
from ramify.lab.report.sections.main_scores import scores
from ramify.lab.report.sections.member_agreement import agreement
from ramify.lab.report.sections.number_of_symbols import symbols
from ramify.lab.report.sections.section import Picture, Section
from ramify.lab.report.sections.training_cost import cost, curves, every_run
from ramify.lab.results.collection import Problem, Runs
from ramify.lab.results.find_results import read_runs
from ramify.storage.files import contents, write_atomically
from ramify.storage.locks import locked_folder

CONTENTS: tuple[Callable[[Runs], Section | None], ...] = (
    scores,
    across,
    agreement,
    symbols,
    by_label,
    by_length,
    induced,
    cost,
    curves,
    every_run,
)
"""In the order of the page."""

PAGE, MARKDOWN, TABLES, FIGURES = "index.html", "report.md", "tables", "figures"
NO_FIGURES = (
    "There are no figures: matplotlib is not installed. Get it with pip install 'ramify[plot]' and run this again."
)


@dataclass(frozen=True)
class Report:
    """What was made."""

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
    runs = read_runs(folder)
    out = out or folder / "report"
    _check_out(out)
    with locked_folder(out):
        return _write(runs, out, on_figure)


def _write(runs: Runs, out: Path, on_figure: Callable[[], None]) -> Report:
    sections = sections_of(runs)
    notes = []
    drawings: dict[str, str] = {}
    if not (out / PAGE).exists():
        # From now on the folder is known as a report's, also to the next one if this one is killed.
        write_atomically(out / PAGE, page_html(Runs(f"{runs.title} (is being made)", [], []), [], [], {}).encode())
    _make_folder(out / TABLES)
    if find_spec("matplotlib") is None:
        notes.append(NO_FIGURES)
    else:
        _make_folder(out / FIGURES)
        drawings = dict(_draw(sections, out / FIGURES, on_figure))
    tables = [block for section in sections for block in section.blocks if isinstance(block, Table)]
    for table in tables:
        if table.in_print:
            write_atomically(out / TABLES / f"{table.name}.tex", table_latex(table).encode())
        write_atomically(out / TABLES / f"{table.name}.csv", table_csv(table).encode())
    write_atomically(out / MARKDOWN, page_markdown(runs, sections, notes, set(drawings)).encode())
    # The page last: whoever sees it finds everything it speaks of.
    write_atomically(out / PAGE, page_html(runs, sections, notes, drawings).encode())
    made = {f"{TABLES}/{table.name}{ending}" for table in tables for ending in (".csv", ".tex")[: 1 + table.in_print]}
    notes += _others(out, made | {f"{FIGURES}/{name}{ending}" for name in drawings for ending in (".svg", ".png")})
    return Report(out / PAGE, len(runs.results), len(tables), len(drawings), runs.problems, notes)


def sections_of(runs: Runs) -> list[Section]:
    """All that there is something to tell in."""
    return list(_with_own_names(section for make in CONTENTS if (section := make(runs))))


def _check_out(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise RamifyError(f"{out}: is no folder; give another name with --out.")
    if not out.parent.is_dir():
        raise RamifyError(f"{out}: there is no folder {out.parent}; make it first.")
    page = out / PAGE
    ours = page.is_file() and GENERATOR.encode() in page.read_bytes()[:2000]
    if contents(out, (PAGE,)) and not ours:
        raise RamifyError(f"{out}: is not empty and holds no report; give another folder with --out.")


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise RamifyError(f"{path}: cannot be made ({error.strerror}); give another folder with --out.") from error


def _others(out: Path, made: set[str]) -> list[str]:
    """A note on tables and figures that this report did not make: of an earlier one they may have other figures."""
    there = (path.relative_to(out).as_posix() for folder in (TABLES, FIGURES) for path in (out / folder).glob("*"))
    others = sorted(set(there) - made)
    if not others:
        return []
    names = ", ".join(others[:3]) + (" and others" if len(others) > 3 else "")
    return [f"{out} also has {names}: not of this report, but perhaps of an earlier one."]


def _with_own_names(sections: Iterator[Section]) -> Iterator[Section]:
    """No two tables, and no two figures, in the same file, although names may be alike once they are cut."""
    taken: set[tuple[type, str]] = set()
    for section in sections:
        blocks: list[Table | Picture] = []
        for block in section.blocks:
            name, number = block.name, 1
            while (type(block), name) in taken:
                number += 1
                name = f"{block.name}-{number}"
            taken.add((type(block), name))
            blocks.append(replace(block, name=name))
        yield replace(section, blocks=blocks)


def _draw(sections: list[Section], folder: Path, on_figure: Callable[[], None]) -> Iterator[tuple[str, str]]:
    """Every figure into its files; its name and its SVG."""
    from ramify.lab.report.figures.style import drawing, rendered

    for section in sections:
        for block in section.blocks:
            if isinstance(block, Picture):
                with drawing():
                    svg, png = rendered(block.draw(), block.name)
                write_atomically(folder / f"{block.name}.svg", svg.encode())
                write_atomically(folder / f"{block.name}.png", png)
                on_figure()
                yield block.name, svg
