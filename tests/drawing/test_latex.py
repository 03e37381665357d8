"""LaTeX: balanced source in which special characters are escaped."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from nltk import Tree

from ramify.corpus.tree import make_parse
from ramify.drawing.latex import forest, latex_text, qtree
from ramify.drawing.nodes import tree_of_parse
from ramify.printing import printable
from tests.drawing.trees import TREES, drawn, right_branching

PARSE = make_parse(["the", "dog", "ran"], list("DNV"), [(0, 3), (0, 2)], ["S", "NP"])
NAMED = {
    "\\textbackslash{}": "\\", "\\textasciicircum{}": "^", "\\textasciitilde{}": "~", "\\textless{}": "<",
    "\\textgreater{}": ">", "\\textbar{}": "|", "\\symbol{34}": '"', "{[}": "[", "{]}": "]",
}  # fmt: skip


def test_special_characters_stand_for_themselves():
    assert latex_text("100%") == r"100\%"
    assert latex_text("a_b^c~d") == r"a\_b\textasciicircum{}c\textasciitilde{}d"
    assert latex_text("$#&") == r"\$\#\&"
    assert latex_text(r"\textbf{x}") == r"\textbackslash{}textbf\{x\}"
    assert latex_text("[x],y") == "{[}x{]},y"
    assert latex_text("\x07") == "?"


@given(tree=TREES)
def test_escaped_text_can_be_read_back_and_has_no_special_character_left(tree):
    for node in drawn(tree).nodes:
        written = latex_text(node.text)
        plain = re.sub("|".join(map(re.escape, NAMED)) + r"|\\([{}%#&_$])", lambda m: m[1] or NAMED[m[0]], written)
        assert plain == printable(node.text, "?")
        rest = re.sub("|".join(map(re.escape, NAMED)) + r"|\\[{}%#&_$]", "", written)
        assert not set(rest) & set('\\{}%#&_$^~[]<>|"')


def test_forest():
    assert forest(tree_of_parse(PARSE)).splitlines() == [
        r"\begin{forest}",
        "[{S}",
        "  [{NP}",
        "    [{D} [{the}, tier=word] ]",
        "    [{N} [{dog}, tier=word] ]",
        "  ]",
        "  [{V} [{ran}, tier=word] ]",
        "]",
        r"\end{forest}",
    ]
    assert "[{NP}, edge=very thick" in forest(tree_of_parse(PARSE, heads=(2, 0, 2)))


def test_qtree():
    assert qtree(tree_of_parse(PARSE, with_tags=False)).splitlines() == [
        r"\Tree",
        "[.{S}",
        "  [.{NP}",
        "    {the}",
        "    {dog}",
        "  ]",
        "  {ran}",
        "]",
    ]


def test_a_word_alone():
    alone = make_parse(["dog"], ["_"], [], [])
    assert forest(tree_of_parse(alone)).splitlines()[1] == "[{dog}, tier=word ]"
    assert qtree(tree_of_parse(alone)).splitlines()[1] == "[.{dog} ]"


@pytest.mark.parametrize("write", [forest, qtree])
def test_right_to_left_sentences_are_written_in_reverse(write):
    source = write(drawn(Tree("S", ["אחת", Tree("NP", ["שתיים", "שלוש"])])))
    assert source.index("שלוש") < source.index("שתיים") < source.index("אחת")


@pytest.mark.parametrize("write", [forest, qtree])
def test_the_deepest_trees_are_written(write):
    source = write(tree_of_parse(right_branching(3000)))
    assert source.count("[") == source.count("]")


@pytest.mark.slow
@pytest.mark.parametrize(("write", "package"), [(forest, "forest"), (qtree, "tikz-qtree"), (qtree, "qtree")])
def test_latex_compiles_it(tmp_path, write, package):
    if not shutil.which("pdflatex") or compiled(tmp_path, package, "x").returncode:
        pytest.skip(f"no LaTeX that can load {package}")
    words = ["100%", "a_b", "#1", "$&", r"\par", "{", "]", "[x],y=1", "^~", '"', "<<", "||", "`a'", ".", "-"]
    parse = make_parse(words, ["T_1"] * 15, [(0, 15), (1, 9), (2, 4)], ["S", "N,P=]", "A|B"])
    done = compiled(tmp_path, package, write(tree_of_parse(parse, heads=(0, *range(1, 15)))))
    assert done.returncode == 0, done.stdout[-2000:]


def compiled(folder: Path, package: str, body: str) -> subprocess.CompletedProcess[str]:
    source = f"\\documentclass{{article}}\\usepackage{{{package}}}\\begin{{document}}{body}\\end{{document}}"
    (folder / "tree.tex").write_text(source)
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "tree.tex"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
