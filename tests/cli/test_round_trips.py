"""All output can be read back with every token, from a file or a pipe, compressed or not."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import pty
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import ramify as package
from ramify.cli.line_output import LineOutput
from ramify.corpus.brackets import read_brackets, write_brackets
from ramify.corpus.builtin import builtin_treebank
from ramify.corpus.guessing import warn_about_tree
from ramify.corpus.lines import read_text_lines
from ramify.corpus.reading import read_sentences
from ramify.corpus.streaming import SentenceStream
from ramify.corpus.text import TextRules
from ramify.corpus.tree import make_parse
from ramify.errors import RamifyError, RamifyWarning
from ramify.evaluation.alignment import read_prediction
from ramify.evaluation.gold import load_gold
from tests.command import ramify

SMALL = "--preterminals 8 --rank 8 --embedding 16 --epochs 1 --batch-size 16".split()
NASTY = [
    "\x1b[31mred\x1b[0m",
    "a\x9bb",
    "\x07",
    "\u200b",
    "x\u0085y",
    "u\u2028v",
    "\u202e",
    "(",
    ")",
    '"',
    "``",
    "\x7f",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text, trees and a model trained on the text."""
    place = tmp_path_factory.mktemp("good")
    parses = builtin_treebank(0, train=60, dev=1, test=1)["train"]
    (place / "trees").write_text("".join(write_brackets(parse) + "\n" for parse in parses))
    (place / "text").write_text("".join(" ".join(parse.words) + "\n" for parse in parses))
    assert ramify("train", place / "text", "--out", place / "model", *SMALL).returncode == 0
    return place


PIPED = """
import sys
from ramify.__main__ import main
for form in sys.argv[1].split():
    sys.argv[1:] = [*"parse -m".split(), MODEL, TEXT, "--format", form]
    try:
        main()
    except SystemExit as end:
        assert not end.code
    sys.stdout.flush()
    sys.stdout.buffer.write(b"\\0")
"""
"""Parses into a pipe in several formats, with a NUL after each"""


def piped(model: Path, text: Path, forms: Iterable[str]) -> dict[str, bytes]:
    """The output of another process to a pipe."""
    code = f"MODEL, TEXT = {str(model)!r}, {str(text)!r}\n{PIPED}"
    result = subprocess.run([sys.executable, "-c", code, " ".join(forms)], capture_output=True, check=False)
    assert result.returncode == 0, result.stderr.decode()
    return dict(zip(forms, result.stdout.split(b"\0")[:-1], strict=True))


def packed(path: Path, *parts: bytes) -> Path:
    path.write_bytes(b"".join(map(gzip.compress, parts)))
    return path


@pytest.mark.slow
def test_a_pipe_gets_what_a_file_gets(place: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text(f"the {' '.join(NASTY)} dog\n" + "the dog saw \x1b[31mred\x1b[0m\n", encoding="utf-8")
    found = piped(place / "model", text, ["brackets", "json", "spans", "pretty", "svg", "html", "forest"])
    for form, content in found.items():
        out = tmp_path / form
        assert ramify("parse", "-m", place / "model", text, "--format", form, "--out", out).returncode == 0
        assert content == out.read_bytes(), form
    lines = read_text_lines(found["brackets"].splitlines(True), "piped")
    words = [tree.words for tree in read_brackets(lines, "piped")]
    assert words[1] == ("the", "dog", "saw", "\x1b[31mred\x1b[0m")
    expected = [sentence.tokens for sentence in SentenceStream(text, "text", TextRules(), None)]
    assert words[0] == tuple({"(": "-LRB-", ")": "-RRB-"}.get(token, token) for token in expected[0])


@pytest.mark.slow
def test_control_characters_are_not_printed_to_a_terminal(place: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("the \x1b]0;owned\x07dog sleeps\n")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "ramify", "parse", "-m", str(place / "model"), str(text)]
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL):
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # on Linux, the end of a pseudo-terminal
                break
            if not piece:
                break
            shown += piece
    os.close(ours)
    assert "\ufffd]0;owned\ufffddog" in shown.decode()
    assert b"\x1b" not in shown


TOKENS = st.one_of(
    st.sampled_from([*NASTY, "\r", "a\rb", "\0", "-LRB-", "TOP", "_"]),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5),
)


@st.composite
def trees(draw: st.DrawFn):
    words = draw(st.lists(TOKENS, min_size=1, max_size=8))
    tags = draw(st.lists(TOKENS, min_size=len(words), max_size=len(words)))
    cuts = draw(st.lists(st.integers(0, len(words)), max_size=3, unique=True))
    spans = [(0, cut) for cut in sorted(cuts, reverse=True) if cut]
    return words, tags, spans, draw(st.lists(TOKENS, min_size=len(spans), max_size=len(spans)))


@given(trees())
@example((["\x85", "\u2028", "\x1c"], ["T-0"] * 3, [(0, 3)], ["NT-0"]))
def test_every_tree_that_is_written_is_read_back(tmp_path_factory, tree) -> None:
    words, tags, spans, labels = tree
    parse = make_parse(words, tags, spans, labels)
    try:
        written = write_brackets(parse)
    except RamifyError:
        assert any(character in "".join((*words, *tags, *labels)) for character in " \t\n\r\f\v\0")
        return

    def escaped(texts):
        return tuple(text.replace("(", "-LRB-").replace(")", "-RRB-") for text in texts)

    path = tmp_path_factory.mktemp("trees") / "tree"
    path.write_bytes(written.encode() + b"\n")
    expected = make_parse(escaped(words), escaped(tags), parse.spans.tolist(), escaped(parse.labels))
    assert read_sentences(path, "brackets").parses == [expected]
    if all(label.isascii() and label.isalnum() for label in (*tags, *labels)):
        assert read_sentences(path).parses == [expected]


@pytest.mark.parametrize("content", ["a b\nc \0 d\n", "(S (A a) (B b))\n(S (A \0) (B b))\n"])
def test_nul_is_refused_with_file_and_line_everywhere(place: Path, tmp_path: Path, content: str) -> None:
    bad = tmp_path / "bad"
    bad.write_text(content)
    model = ("-m", place / "model")
    commands = [("train", bad, "--out", tmp_path / "out"), ("parse", *model, bad), ("score", *model, bad)]
    commands += [("evaluate", *model, bad), ("evaluate", "--predicted", bad, place / "trees")]
    for command in commands:
        result = ramify(*command)
        assert result.returncode == 2
        assert "bad, line 2: contains a NUL" in result.stderr


@pytest.mark.parametrize("sentence", ["the \0 dog", ["the", "\0"]])
def test_nul_is_refused_in_a_string_too(place: Path, sentence) -> None:
    with pytest.raises(RamifyError, match="NUL"):
        package.load(place / "model").parse(sentence)


def test_other_control_characters_are_kept_as_words(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("a\x1bb \x01 c\n" * 30)
    assert read_sentences(path).parses[0].words == ("a\x1bb", "\x01", "c")
    package.train(path, tmp_path / "run", preterminals=4, rank=4, embedding=8, epochs=1)
    parser = package.load(tmp_path / "run")
    assert "a\x1bb" in parser.vocabulary


def test_compressed_text_and_trees_are_read_everywhere(place: Path, tmp_path: Path) -> None:
    model = ("-m", place / "model")
    text = packed(tmp_path / "text.gz", (place / "text").read_bytes())
    gold = packed(tmp_path / "trees", (place / "trees").read_bytes())  # known by its content, not by its name
    for command in ("parse", "score"):
        assert ramify(command, *model, text).stdout == ramify(command, *model, place / "text").stdout
    assert ramify("parse", *model, given=text.read_bytes()).stdout == ramify("parse", *model, place / "text").stdout
    trees = ramify("parse", *model, place / "trees").stdout
    predicted = packed(tmp_path / "predicted.gz", trees.encode())
    rows = ramify("evaluate", *model, "--predicted", predicted, gold, "--json").stdout.splitlines()
    plain = ramify("evaluate", *model, place / "trees", "--json").stdout.splitlines()
    scores = [json.loads(row)["scores"] for row in (*rows, *plain)]
    assert scores[0] == scores[1] == scores[2]
    assert ramify("train", text, "--out", tmp_path / "run", *SMALL).returncode == 0
    for name in ("model.safetensors", "vocab.txt"):
        assert (tmp_path / "run" / name).read_bytes() == (place / "model" / name).read_bytes()
    two = read_sentences(packed(tmp_path / "two", b"a b\nc ", b"d\n"))
    (tmp_path / "plain").write_text("a b\nc d\n")
    assert two.checksum == read_sentences(tmp_path / "plain").checksum
    assert [parse.words for parse in two.parses] == [("a", "b"), ("c", "d")]
    books = [ramify("grammar", *model, trees, "--format", "json").stdout for trees in (gold, place / "trees")]
    assert books[0].replace(str(gold), "") == books[1].replace(str(place / "trees"), "")


@pytest.mark.parametrize("harm", [lambda b: b[:-9], lambda b: b[:40] + b"xx" + b[42:], lambda b: b + b"tail"])
def test_damaged_compression_is_one_sentence(place: Path, tmp_path: Path, harm) -> None:
    bad = tmp_path / "bad.gz"
    bad.write_bytes(harm(gzip.compress((place / "text").read_bytes())))
    for command in (("train", bad, "--out", tmp_path / "out"), ("parse", "-m", place / "model", bad)):
        result = ramify(*command)
        assert result.returncode == 2
        assert "bad.gz: the gzip data is damaged" in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_other_compression_is_not_text(place: Path, tmp_path: Path) -> None:
    (tmp_path / "text.bz2").write_bytes(bz2.compress((place / "text").read_bytes()))
    assert ramify("parse", "-m", place / "model", tmp_path / "text.bz2").returncode == 2


def test_a_compressed_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramify.corpus.lines.LONGEST_LINE", 1 << 20)
    path = packed(tmp_path / "bomb", b"a" * (1 << 24))
    for read in (read_sentences, lambda file: list(SentenceStream(file, "auto", TextRules(), None))):
        with pytest.raises(RamifyError, match="a line is longer"):
            read(path)


def test_our_own_json_is_scored_as_our_own_trees(place: Path, tmp_path: Path) -> None:
    trees, lines = tmp_path / "a.trees", tmp_path / "a.jsonl"
    text = tmp_path / "text"
    text.write_text("\n" + (place / "text").read_text())  # a blank line has no tree
    for out, form in ((trees, "brackets"), (lines, "json")):
        assert ramify("parse", "-m", place / "model", text, "--format", form, "--out", out).returncode == 0
    gold = load_gold(place / "trees")
    of_trees, of_json = (read_prediction(path, gold) for path in (trees, lines))
    assert list(of_json.parses) == list(of_trees.parses)
    records = [json.loads(line) for line in lines.read_text().splitlines()]
    lines.write_text("".join(json.dumps(record | {"failure": "no derivation"}) + "\n" for record in records))
    assert not any(len(parse.spans) for parse in read_prediction(lines, gold).parses)


@pytest.mark.parametrize(
    "spoilt",
    [
        '{"tokens": ["a", "b"]',
        "[]",
        '{"tokens": ["a", "b"]}',
        '{"tokens": ["a", "b"], "constituents": [[0, 3, "A"]]}',
        '{"tokens": ["a", "b"], "constituents": [[1, 1, "A"]]}',
        '{"tokens": ["a", "b", "c"], "constituents": [[0, 2, "A"], [1, 3, "A"]]}',
        '{"tokens": ["a", ""], "constituents": []}',
        '{"tokens": 3, "constituents": []}',
        '{"tokens": ["a"], "tags": ["A", "B"], "constituents": []}',
    ],
)
def test_json_that_is_not_a_sentence_is_refused(place: Path, tmp_path: Path, spoilt: str) -> None:
    path = tmp_path / "bad"
    path.write_text('{"tokens": [], "constituents": []}\n' + spoilt + "\n")
    with pytest.raises(RamifyError, match="bad, line 2: this line is not in the format"):
        read_prediction(path, load_gold(place / "trees"))


@pytest.mark.parametrize("line", ["(S (NP (DT the) (NN dog)) (VP (VBZ barks)))", "( (S (NN a) (NN b)) )"])
def test_a_tree_among_lines_of_text_is_noticed_once(tmp_path: Path, line: str) -> None:
    path = tmp_path / "text"
    path.write_text(f"a b\nc d\n{line}\n{line}\n")
    for read in (read_sentences, lambda file: list(SentenceStream(file, "auto", TextRules(), None))):
        with pytest.warns(RamifyWarning, match="text, line 3: .* bracketed tree") as seen:
            read(path)
        assert len(seen) == 1
    read_sentences(path, "text")  # the given kind is used


@pytest.mark.parametrize(
    "line", ["( see ( smith 2010 ) )", "(he laughed)", "(see (smith 2010)) for more", "a (S (A b))"]
)
def test_text_with_brackets_is_not_read_as_a_tree(line: str) -> None:
    assert not warn_about_tree(line, "here")


PROSE = "Mr. Jones saw a dog. It slept.\nThe dog was\nold.\n\nHe left. She saw it.\n" * 30


@pytest.mark.needs("spacy")
def test_a_model_of_prose_splits_prose_unless_chosen_otherwise(tmp_path: Path) -> None:
    prose, model = tmp_path / "prose", tmp_path / "model"
    prose.write_text(PROSE)
    assert ramify("train", prose, "--out", model, "--split-sentences", "--tokenise=en", *SMALL).returncode == 0
    split = ramify("parse", "-m", model, prose, "--split-sentences").stdout
    assert ramify("parse", "-m", model, prose).stdout == split
    assert PROSE.count("\n") != split.count("\n") > 60
    for command in ("parse", "score"):
        lines = ramify(command, "-m", model, prose, "--no-split-sentences").stdout
        assert lines.count("\n") == PROSE.count("\n")
    (tmp_path / "trees").write_text("(S (A a) (B b))\n")
    assert ramify("parse", "-m", model, tmp_path / "trees").returncode == 0  # trees are already sentences
    assert ramify("parse", "-m", model, tmp_path / "trees", "--split-sentences").returncode == 2


def test_a_changed_vocabulary_is_refused(place: Path, tmp_path: Path) -> None:
    model = shutil.copytree(place / "model", tmp_path / "model")
    unknown, *words = (model / "vocab.txt").read_text().splitlines()
    (model / "vocab.txt").write_text("\n".join([unknown, *reversed(words)]) + "\n")
    with pytest.raises(RamifyError, match=r"vocab\.txt: its checksum does not match"):
        package.load(model)


@pytest.mark.slow
def test_a_resumed_parse_has_the_bytes_of_an_unbroken_one(place: Path, tmp_path: Path) -> None:
    """Killed in the middle, with input from a pipe that pauses: the last digits depend on the batches."""
    lines = (place / "text").read_bytes().splitlines(True) * 40
    text, whole, out = tmp_path / "text", tmp_path / "whole", tmp_path / "out"
    text.write_bytes(b"".join(lines))
    options = ["-m", place / "model", "--format", "json", "--posteriors"]
    assert ramify("parse", *options, text, "--out", whole).returncode == 0
    command = [sys.executable, "-m", "ramify", "parse", *map(str, options), "--out", str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        for start in range(0, 1500, 300):
            process.stdin.write(b"".join(lines[start : start + 300]))
            process.stdin.flush()
            time.sleep(0.05)
        partial = tmp_path / "out.partial"
        while not (partial.exists() and partial.read_bytes().count(b"\n") > 1000):
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
    assert 1000 < partial.read_bytes().count(b"\n") <= 1024
    with partial.open("ab") as handle:
        handle.write(b'{"half a line')
    feeding = subprocess.Popen([*command, "--resume"], stdin=subprocess.PIPE)

    def feed() -> None:
        for line in range(0, len(lines), 700):
            feeding.stdin.write(b"".join(lines[line : line + 700]))
            feeding.stdin.flush()
            time.sleep(0.05)
        feeding.stdin.close()

    threading.Thread(target=feed).start()
    assert feeding.wait() == 0
    assert out.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(("left", "kept"), [(0, 0), (1023, 0), (1024, 1024), (1500, 1024), (2048, 2048)])
def test_only_whole_groups_of_lines_are_resumed(tmp_path: Path, monkeypatch, left: int, kept: int) -> None:
    monkeypatch.setattr("ramify.cli.line_output._CHUNK", 1000)  # so groups end in the middle of a window
    partial = tmp_path / "out.partial"
    partial.write_text("".join(f"line {number}\n" for number in range(left)) + "half a li")
    (tmp_path / "out.partial.json").write_text("{}")
    with LineOutput(tmp_path / "out", True, False, dict) as output:
        assert output.lines_done == kept
        output.write(f"line {number}\n".rstrip() for number in range(kept, 3000))
    assert (tmp_path / "out").read_text() == "".join(f"line {number}\n" for number in range(3000))


def test_pauses_of_a_pipe_do_not_change_the_groups_of_a_file(place: Path, tmp_path: Path, monkeypatch) -> None:
    groups = []
    monkeypatch.setattr("ramify.corpus.lines.LineReader.would_block", lambda _: True)
    original = package.Parser._analyse_window
    monkeypatch.setattr(package.Parser, "_analyse_window", lambda *a: (groups.append(len(a[1])), original(*a))[1])
    assert ramify("parse", "-m", place / "model", place / "text", "--out", tmp_path / "out").returncode == 0
    assert groups == [60]
    assert ramify("parse", "-m", place / "model", place / "text").returncode == 0
    assert groups[1:] == [1] * 60
