"""The report as Markdown, with links to the figures."""

from __future__ import annotations

from collections import Counter

from ramify.lab.report.render.markdown import escape, table_markdown
from ramify.lab.report.report_table import Column, Part, Table
from ramify.lab.report.sections.section import Section
from ramify.lab.results.collection import Runs
from ramify.version import VERSION

LONG = 12
"""A longer list of problems is folded on the page."""


def problems_table(runs: Runs) -> Table | None:
    """Which runs are missing, half-finished, failed or broken, and why."""
    if not runs.problems:
        return None
    rows = [(problem.what, problem.where, problem.why) for problem in runs.problems]
    heads = [Column("what"), Column("where"), Column("why")]
    counts = Counter(problem.what for problem in runs.problems)
    title = "Runs without results: " + ", ".join(f"{count} {what}" for what, count in counts.items())
    return Table("problems", title, heads, [Part([*rows])], ["Nothing below includes them."], folded=len(rows) > LONG)


def page_markdown(runs: Runs, sections: list[Section], notes: list[str], drawn: set[str]) -> str:
    """Everything that the page has; `drawn` are the names of the figures that there are."""
    lines = [f"# {escape(runs.title)}", "", f"Made by ramify {VERSION} from {len(runs.results)} results.", ""]
    lines += [f"{escape(note)}\n" for note in notes]
    problems = problems_table(runs)
    if problems:
        lines.append(table_markdown(problems))
    for section in sections:
        lines += [f"## {escape(section.title)}", ""]
        lines += [escape(section.introduction), ""] if section.introduction else []
        for block in section.blocks:
            if isinstance(block, Table):
                lines.append(table_markdown(block))
            elif block.name in drawn:
                lines += [f"![{escape(block.title)}](figures/{block.name}.svg)", "", escape(block.caption), ""]
                lines += [escape(" ".join(block.notes)), ""]
    return "\n".join(lines).rstrip() + "\n"
