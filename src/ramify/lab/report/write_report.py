"""Writes a report: an HTML page that needs no other file, the same as Markdown, LaTeX and CSV tables, and figures."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ramify.errors import RamifyError
from ramify.lab.report.exhibit import Exhibit, Table, file_name
from ramify.lab.report.figures import Drawing, figure_style, render_figure
from ramify.lab.report.sections import labels, models
from ramify.lab.results.collection import Collection, Problem, collect_results, with_details
from ramify.lab.results.schema import Result, Spread, f1_of, grouped
from ramify.lab.templates import render
from ramify.storage.files import folder_contents, write_atomically
from ramify.storage.locks import locked_folder
from ramify.version import VERSION

SECTIONS: dict[str, Callable[[Collection], Iterator[Exhibit]]] = {
    "scores": models.scores,
    "across-treebanks": models.treebank_comparison,
    "agreement": models.agreement,
    "symbols": models.symbols,
    "use-of-symbols": models.use_of_symbols,
    "recall-by-label": labels.by_label,
    "f1-by-length": labels.by_length,
    "gold-labels": labels.induced,
    "cost": models.cost,
    "curves": models.curves,
    "runs": models.every_run,
}
"""In the order of the page; `texts.toml` has their titles."""
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
        try:
            (out / folder).mkdir(exist_ok=True)
        except OSError as error:
            raise RamifyError(
                f"{out / folder}: cannot be created ({error.strerror}); give another folder with --out."
            ) from error
    sections = sections_of(study)
    exhibits = [exhibit for of in sections.values() for exhibit in of]
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


def sections_of(study: Collection) -> dict[str, list[Exhibit]]:
    """All sections with content; no two exhibits have the same files."""
    names_used: set[str] = set()

    def with_own_files(exhibit: Exhibit) -> Exhibit:
        plain = file_name(exhibit.kind, *exhibit.of)
        names = (plain, *(f"{plain}-{number}" for number in range(2, len(names_used) + 2)))
        name = next(name for name in names if name not in names_used)
        names_used.add(name)
        return replace(exhibit, name=name)

    return {kind: found for kind, make in SECTIONS.items() if (found := [*map(with_own_files, make(study))])}


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
        raise RamifyError(f"{out}: the folder {out.parent} does not exist; create it first.")
    page = out / PAGE
    ours = page.is_file() and f'content="{GENERATOR}'.encode() in page.read_bytes()[:2000]
    if folder_contents(out, (PAGE,)) and not ours:
        raise RamifyError(f"{out}: is not empty and holds no report; give another folder with --out.")


def _others(out: Path, made: set[str]) -> list[str]:
    """A note on tables and figures that this report did not make: those of an earlier one may have other numbers."""
    files = (path.relative_to(out).as_posix() for folder in (TABLES, FIGURES) for path in (out / folder).glob("*"))
    others = sorted(set(files) - made)
    names = ", ".join(others[:3]) + (" and others" if len(others) > 3 else "")
    return [f"{out} also has {names}: not of this report, but perhaps of an earlier one."] if others else []


GENERATOR = "ramify report"
_FILES = files("ramify.lab.report")


@dataclass(frozen=True)
class Page:
    """The content of the page, from top to bottom; the main figure is the first one."""

    title: str
    summary: str
    sections: Mapping[str, list[Exhibit]] = field(default_factory=dict)
    """The exhibits of each kind of section; `texts.toml` has its title and what it is about"""
    drawings: Mapping[str, Drawing] = field(default_factory=dict)
    """Figures by the names of their exhibits; those that were not drawn are left out"""
    remarks: Sequence[str] = ()
    problems: Sequence[Problem] = ()
    results: Sequence[Result] = ()

    def values(self) -> dict[str, Any]:
        """What the templates need."""
        exhibits = [e for of in self.sections.values() for e in of if e.table or e.name in self.drawings]
        counts = Counter(problem.what for problem in self.problems)
        return {
            "page": self,
            "main": next((exhibit for exhibit in exhibits if exhibit.name in self.drawings), None),
            "sections": {kind: [e for e in of if e in exhibits] for kind, of in self.sections.items()},
            "problems": Table(["what", "where", "why"], {"": [(p.what, p.where, p.why) for p in self.problems]}),
            "problem_counts": ", ".join(f"{count} {what}" for what, count in counts.items()),
            "footnotes": footnotes_of(exhibits),
            "texts": tomllib.loads(_FILES.joinpath("texts.toml").read_text(encoding="utf-8")),
            "split": " and ".join(dict.fromkeys(result.split for result in self.results)),
            "version": VERSION,
        }

    def as_html(self) -> str:
        """Style and figures are embedded, so the page loads nothing from the network."""
        style = _FILES.joinpath("templates", "page.css").read_text(encoding="utf-8")
        return render("report/templates/page.html", style=style, generator=GENERATOR, **self.values())

    def as_markdown(self) -> str:
        """The same with links to the files of the figures."""
        return render("report/templates/report.md", **self.values())


def footnotes_of(exhibits: Sequence[Exhibit]) -> dict[str, int]:
    """The notes that several exhibits have: printed once, at the end, and referred to by their numbers."""
    counts = Counter(note for exhibit in exhibits for note in exhibit.notes)
    shared = [note for note, count in counts.items() if count > 1]
    return {note: number for number, note in enumerate(shared, start=1)}


def table_latex(exhibit: Exhibit) -> str:
    """Its table as a `table` with caption and label; one that would be wider than the text is made smaller.

    The notes are comments: signatures do not belong in a caption, and not every LaTeX can set their scripts.
    """
    return render("report/templates/table.tex", exhibit=exhibit, table=exhibit.table)


NOT_COMPARED = "oracle"
"""The baseline that looks at the gold trees"""


def summary(study: Collection) -> str:
    """How much was compared, and the best model beside the best baseline, on the first treebank and on how many."""
    models = grouped((data, with_details(of)) for (data, _), of in study.by_model.items())
    best = {data: found for data, of in models.items() if (found := _best(of))}
    baselines = {data: _best([r] for r in study.baselines(data) if r.model != NOT_COMPARED) for data in best}
    compared = len({model for _, model in study.by_model})
    sentences = [f"{_counted(compared, 'model')} on {_counted(len(best), 'treebank')}."]
    for data, (name, highest) in list(best.items())[:1]:
        deviation = "" if highest.std is None else f" ± {highest.std:.1f}"
        baseline = baselines[data]
        beside = f"; the best baseline, {baseline[0]}, has {baseline[1].mean:.1f}" if baseline else ""
        sentences.append(f"On {data}, {name} has the highest S-F1, {highest.mean:.1f}{deviation} percent{beside}.")
    beaten = [highest.mean > other[1].mean for data, (_, highest) in best.items() if (other := baselines[data])]
    if len(beaten) > 1:
        sentences.append(f"The best model beats the best baseline on {sum(beaten)} of {len(beaten)} treebanks.")
    return " ".join(sentences)


def _best(systems: Iterable[list[Result]]) -> tuple[str, Spread] | None:
    """The name and the S-F1 of the system with the highest mean, given the results of each."""
    known = [(results[0].model, f1) for results in systems if (f1 := f1_of(results))]
    return max(known, key=lambda each: each[1].mean, default=None)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
