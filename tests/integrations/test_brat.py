"""brat's stand-off format: every annotation has the right offsets."""

from __future__ import annotations

import re

import numpy as np

from ramify.corpus.sentence import Sentence
from ramify.corpus.text import TextRules
from ramify.corpus.tree import Parse
from ramify.integrations.brat import standoff
from ramify.parser.analysis import Analysis
from tests.command import ramify
from tests.integrations.test_tables import MODEL

TEXTS = ["the 🐕 saw  a 𝒸𝒶𝓉 .", "", "a\u2028cat\tsaw e\u0301t", "حيوان saw it"]
LINE = re.compile(r"T(\d+)\t([A-Za-z0-9_-]+) (\d+) (\d+)\t(.*)")


def annotations(content: str) -> list[tuple[int, str, int, int, str]]:
    found = [LINE.fullmatch(line) for line in content.split("\n") if line.startswith("T")]
    return [(int(m[1]), m[2], int(m[3]), int(m[4]), m[5]) for m in found]


def test_annotations_are_exact_whatever_the_characters(tmp_path):
    (tmp_path / "in.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    out = tmp_path / "corpus.ann"
    result = ramify("parse", "-m", MODEL, tmp_path / "in.txt", "--format", "brat", "--out", out, "--posteriors")
    assert result.returncode == 0, result.stderr
    text = (tmp_path / "corpus.txt").read_bytes().decode()
    found = annotations(out.read_bytes().decode())
    assert [number for number, *_ in found] == list(range(1, len(found) + 1))
    for _, _, start, end, shown in found:
        assert text[start:end] == shown
        assert "\n" not in shown
    assert text.count("\n") == len(TEXTS) == len(text.splitlines())
    whole = [shown for _, _, _, _, shown in found]
    assert "the 🐕 saw  a 𝒸𝒶𝓉" in whole
    assert "a cat\tsaw e\u0301t" in whole
    assert len(
        re.findall(r"^#(\d+)\tAnnotatorNotes T\1\tposterior [01]\.\d{4}$", out.read_text(), re.MULTILINE)
    ) == len(found)


def test_labels_become_types_that_brat_allows():
    sentence = TextRules().sentence("a b")
    parse = Parse(sentence.tokens, ("X", "Y"), np.array([[0, 2]], np.int32), ("NP|<DT,NN>\té",))
    ones = np.ones((3, 3), np.float32)
    analysis = Analysis(sentence, parse, -1.0, ones, ones[0, :1], ones[0, :2], (False, False))
    ((text, lines),) = standoff([analysis])
    assert (text, lines) == ("a b\n", "T1\tNP__DT_NN___ 0 3\ta b\n")


def test_both_files_or_none(tmp_path):
    (tmp_path / "in.txt").write_text("a dog\n")
    (tmp_path / "corpus.txt").write_text("mine")
    command = ("parse", "-m", MODEL, tmp_path / "in.txt", "--format", "brat", "--out")
    refused = ramify(*command, tmp_path / "corpus.ann")
    assert refused.returncode == 2
    assert "corpus.txt: this file already exists" in refused.stderr
    assert (tmp_path / "corpus.txt").read_text() == "mine"
    assert not list(tmp_path.glob("corpus.ann*"))
    assert "give --out NAME.ann" in ramify(*command, tmp_path / "corpus.tsv").stderr
    assert ramify(*command, tmp_path / "corpus.ann", "--overwrite").returncode == 0
    assert (tmp_path / "corpus.txt").read_text() == "a dog\n"
    (tmp_path / "same.txt").write_text("a dog\n")
    refused = ramify("parse", "-m", MODEL, tmp_path / "same.txt", "--format", "brat", "--out", tmp_path / "same.ann",
                     "--overwrite")  # fmt: skip
    assert refused.returncode == 2
    assert (tmp_path / "same.txt").read_text() == "a dog\n"


def test_a_sentence_without_a_tree_has_no_annotations():
    sentence = Sentence.from_tokens(("a", "b"))
    flat = Analysis.flat(sentence, np.zeros(2, np.bool_), "no derivation")
    assert list(standoff([flat, flat])) == [("a b\n", ""), ("a b\n", "")]
