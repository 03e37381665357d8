"""Tables for a paper, with booktabs."""

from __future__ import annotations

from ramify.lab.report.report_table import Cell, Column, Number, Table

# A row that begins with [ or * would be taken for an argument of the command before it.
_SIGNS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': "''", "[": "{[}", "*": "{*}", "±": r"$\pm$", "≤": r"$\leq$", "→": r"$\to$",
    "…": r"\ldots{}",
}  # fmt: skip


def table_latex(table: Table) -> str:
    """A `table` with its caption and label; one that would be wider than the text is made smaller.

    The notes are comments: signatures are no caption, and may be in a script that not every LaTeX can set.
    """
    sides = ["r" if table.is_numeric(place) else "l" for place in range(len(table.columns))]
    heads = " & ".join(_faint(_head(c.head, side), c) for c, side in zip(table.columns, sides, strict=True))
    lines = [
        "% needs the packages booktabs, graphicx, xcolor and, for all Latin letters, fontenc with T1",
        "% letters of other scripts, single Greek ones too, need XeLaTeX or LuaLaTeX",
        *(f"% {note}" for note in table.notes),
        r"\begin{table}",
        r"\centering",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{''.join(sides)}}}",
        r"\toprule",
        rf"{heads} \\",
    ]
    for part in table.parts:
        lines.append(r"\midrule")
        if part.heading:
            lines += [rf"\multicolumn{{{len(table.columns)}}}{{l}}{{\textit{{{escape(part.heading)}}}}} \\"]
        lines += [
            " & ".join(_faint(_cell(cell), column) for cell, column in zip(row, table.columns, strict=True)) + r" \\"
            for row in part.rows
        ]
    lines += [
        r"\bottomrule",
        r"\end{tabular}}",
        rf"\caption{{{escape(table.title)}.}}",
        rf"\label{{tab:{table.name}}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escape(line: str) -> str:
    """`line` as LaTeX text."""
    return "".join(_SIGNS.get(sign, sign) for sign in line)


def _head(text: str, side: str) -> str:
    """Its words below each other, so that it is no wider than what stands below it."""
    words = [escape(word) for word in text.split()]
    return rf"\shortstack[{side}]{{" + r"\\".join(words) + "}" if len(words) > 1 else "".join(words)


def _cell(cell: Cell) -> str:
    if isinstance(cell, Number):
        figure = cell.shown if cell.std is None else rf"{cell.shown} \pm {cell.shown_std}"
        return f"${figure.replace(',', '{,}')}$"
    return escape(cell or "")


def _faint(content: str, column: Column) -> str:
    return rf"\textcolor{{gray}}{{{content}}}" if column.faint and content else content
