"""The report as one HTML page that needs nothing else, as Markdown, and its tables as LaTeX."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

from ramify.lab.report.exhibit import Exhibit, Section, Table
from ramify.lab.report.figures.style import Drawing
from ramify.lab.results.collection import Collection, Problem
from ramify.lab.results.schema import Result, Spread, spread
from ramify.lab.templates import render
from ramify.version import VERSION

GENERATOR = "ramify report"


class SectionText(Struct):
    """What stands above the exhibits of a section."""

    title: str
    about: str = ""


class Texts(Struct):
    """The prose of the report, from `texts.toml`."""

    sections: dict[str, SectionText]
    captions: dict[str, str]


@cache
def texts() -> Texts:
    """The texts in the package."""
    return msgspec.toml.decode(files("ramify.lab.report").joinpath("texts.toml").read_bytes(), type=Texts)


class Footnotes:
    """Notes of exhibits: one that several of them have is printed once, at the end, and referred to by its number."""

    def __init__(self, exhibits: Sequence[Exhibit]) -> None:
        counts = Counter(note for exhibit in exhibits for note in exhibit.notes)
        self.shared = [note for note, count in counts.items() if count > 1]

    def of(self, exhibit: Exhibit) -> tuple[list[str], list[int]]:
        """The notes that only this exhibit has, and the numbers of the others."""
        numbers = sorted(self.shared.index(note) + 1 for note in exhibit.notes if note in self.shared)
        return [note for note in exhibit.notes if note not in self.shared], numbers


@dataclass(frozen=True)
class Page:
    """What stands on the page, from top to bottom; the main figure is the first one."""

    title: str
    summary: str
    sections: Sequence[Section] = ()
    drawings: Mapping[str, Drawing] = field(default_factory=dict)
    """Figures by the names of their exhibits; those that were not drawn are left out"""
    remarks: Sequence[str] = ()
    problems: Sequence[Problem] = ()
    results: Sequence[Result] = ()

    def values(self) -> dict[str, Any]:
        """What the templates need."""
        exhibits = [e for section in self.sections for e in section.exhibits if e.table or e.name in self.drawings]
        problems = [(problem.what, problem.where, problem.why) for problem in self.problems]
        counts = Counter(problem.what for problem in self.problems)
        return {
            "title": self.title,
            "summary": self.summary,
            "remarks": self.remarks,
            "main": next((exhibit for exhibit in exhibits if exhibit.name in self.drawings), None),
            "sections": [replace(s, exhibits=[e for e in s.exhibits if e in exhibits]) for s in self.sections],
            "problems": Table(["what", "where", "why"], {"": [*problems]}),
            "problem_counts": ", ".join(f"{count} {what}" for what, count in counts.items()),
            "drawings": self.drawings,
            "footnotes": Footnotes(exhibits),
            "texts": texts(),
            "results": len(self.results),
            "split": " and ".join(dict.fromkeys(result.split for result in self.results)),
            "version": VERSION,
        }

    def as_html(self) -> str:
        """Style and figures are embedded, so the page loads nothing from the network."""
        style = files("ramify.lab.report").joinpath("templates", "page.css").read_text(encoding="utf-8")
        return render("report/templates/page.html", style=style, generator=GENERATOR, **self.values())

    def as_markdown(self) -> str:
        """The same with links to the files of the figures."""
        return render("report/templates/report.md", **self.values())


def table_latex(exhibit: Exhibit) -> str:
    """Its table as a `table` with caption and label; one that would be wider than the text is made smaller.

    The notes are comments: signatures do not belong in a caption, and not every LaTeX can set their scripts.
    """
    return render("report/templates/table.tex", exhibit=exhibit, table=exhibit.table)


NOT_COMPARED = "oracle"
"""The baseline that looks at the gold trees"""


def summary(study: Collection) -> str:
    """How much was compared, and the best model beside the best baseline, on the first treebank and on how many."""
    best = {data: found for data in study.datasets if (found := _best_model(study, data))}
    models = len({model for data in study.datasets for model in study.models(data) if study.of(data, model)})
    sentences = [f"{_counted(models, 'model')} on {_counted(len(best), 'treebank')}."]
    for data, (model, f1) in list(best.items())[:1]:
        deviation = "" if f1.std is None else f" ± {f1.std:.1f}"
        baseline = _best_baseline(study, data)
        beside = f"; the best baseline, {baseline[0]}, has {baseline[1]:.1f}" if baseline else ""
        sentences.append(f"On {data}, {model} has the highest S-F1, {f1.mean:.1f}{deviation} percent{beside}.")
    compared = [f1.mean > other[1] for data, (_, f1) in best.items() if (other := _best_baseline(study, data))]
    if len(compared) > 1:
        sentences.append(f"The best model beats the best baseline on {sum(compared)} of {len(compared)} treebanks.")
    return " ".join(sentences)


def _best_model(study: Collection, data: str) -> tuple[str, Spread] | None:
    found = {model: spread(r.f1 for r in study.of(data, model)) for model in study.models(data)}
    known = [(model, f1) for model, f1 in found.items() if f1 is not None]
    return max(known, key=lambda each: each[1].mean, default=None)


def _best_baseline(study: Collection, data: str) -> tuple[str, float] | None:
    found = [(r.model, r.f1) for r in study.baselines(data) if r.model != NOT_COMPARED]
    return max(found, key=lambda each: each[1], default=None)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
