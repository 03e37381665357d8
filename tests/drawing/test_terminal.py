"""Trees drawn for a terminal."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from nltk import Tree
from nltk.tree.prettyprinter import TreePrettyPrinter
from rich.cells import cell_len

from ramify.drawing.terminal import draw

WIDE = "(TOP (A (B 私) (C 猫が)) (D 好きです))"
COMBINING = "(TOP (A (B क्षि) (C नमस्ते)) (D e\u0301te\u0301))"


def columns_of(line: str, text: str) -> tuple[int, int]:
    start = cell_len(line[: line.index(text)])
    return start, start + cell_len(text)


@pytest.mark.parametrize("brackets", [WIDE, COMBINING, "(TOP (A (B the) (C dog)) (D barks))"])
@pytest.mark.parametrize("with_ascii", [False, True])
def test_a_word_is_below_its_tag_for_any_width_of_letters(brackets, with_ascii):
    tree = Tree.fromstring(brackets)
    lines = draw(tree, with_ascii).splitlines()
    for word, tag in tree.pos():
        (line,) = (line for line in lines if word in line)
        start, end = columns_of(line, word)
        above = next(row for row in reversed(lines) if tag in row)
        place = columns_of(above, tag)[0]
        assert start <= place < end or (start + end) // 2 == place


def test_ascii_words_are_drawn_as_nltk_does():
    tree = Tree.fromstring("(S (NP (DT the) (NN dog)) (VP (VB saw) (NP (DT a) (JJ small) (NN cat))))")
    assert draw(tree) == TreePrettyPrinter(tree).text(unicodelines=True)
    assert draw(tree, with_ascii=True) == TreePrettyPrinter(tree).text()
    assert draw(tree, with_ascii=True).isascii()


def test_every_letter_of_a_long_word_and_of_private_ones_is_drawn():
    words = ["supercalifragilisticexpialidocious", "\U000f0000\U000f0001", "漢字" * 10, "\u0301"]
    drawn = draw(Tree("TOP", [Tree("A", [word]) for word in words]))
    assert sorted("".join(drawn.split())) == sorted("".join([*words, "TOP", "AAAA"]) + "".join(lines_in(drawn)))


def lines_in(drawn: str) -> list[str]:
    return [sign for sign in drawn if sign in "─│┌┐┬┴┼"]


def test_the_tree_is_not_changed():
    tree = Tree.fromstring(WIDE)
    draw(tree)
    assert tree == Tree.fromstring(WIDE)


RULES = "S -> A B [1.0]\nA -> 'a' [1.0]\nB -> 'b' [1.0]\n"


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_lines_are_drawn_in_what_standard_output_can_show(tmp_path, encoding):
    (tmp_path / "rules").write_text(RULES)
    command = [sys.executable, "-m", "ramify", "parse", "-m", "rules", "--format", "pretty"]

    def parsed(*options):
        return subprocess.run(
            [*command, *options], cwd=tmp_path, input=b"a b\n", capture_output=True, check=True,
            env=environment(encoding),
        ).stdout  # fmt: skip

    assert parsed().isascii() == (encoding == "ascii")
    parsed("--out", "file")
    assert "┌" in (tmp_path / "file").read_text(encoding="utf-8")


def environment(encoding: str) -> dict[str, str]:
    return os.environ | {"PYTHONIOENCODING": encoding}


@pytest.mark.slow
def test_tables_are_ascii_if_necessary(tmp_path):
    (tmp_path / "trees").write_text("(TOP (S (A a) (B (C b) (D c))))\n")
    command = [sys.executable, "-m", "ramify", "evaluate", "--baseline", "random", "--evalb", "trees"]
    shown = {}
    for encoding in ("ascii", "utf-8"):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, env=environment(encoding))
        shown[encoding] = done.stdout.decode(encoding)
    assert "<=10" in shown["ascii"]
    assert "+-" in shown["ascii"]
    assert "≤10" in shown["utf-8"]
    assert "±" in shown["utf-8"]
