"""Every token of the input is in the output, in its place, in a tree without gaps."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import nltk
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.corpus.brackets import read_brackets
from ramify.corpus.builtin import builtin_grammar
from ramify.corpus.sentence import Sentence
from ramify.corpus.text import TextRules
from ramify.errors import RamifyError, Stopped
from ramify.parser import FORMATS, Parser
from tests.command import ramify

ANY_LINE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\0"))
TEN_SENTENCES = [
    '"Where," she asked, "did you put the (very old) map?"',
    "The well-known U.S. firm lost $1,234.50—nearly 3.5%—in 2009.",
    "He didn't say that Smith & Sons' offer wasn't good enough...",
    "राम ने कहा, “चलो, घर चलते हैं।”",
    "هل أنت هنا؟ نعم، أنا هنا.",
    "[Note: the meeting is at 10:30, not 11:00!]",
    "It was – so they said – the best-selling book; nobody read it.",
    "",
    "Stop!",
    "‘Ünïcödé’ naïve café 你好 😀 e-mail: me@example.org",
]


@pytest.fixture(scope="module")
def parser() -> Parser:
    true = Parser.from_binary_grammar(builtin_grammar())
    return Parser(true.grammar, true.vocabulary, true.labels, true.tags, text_rules=TextRules("en"))


def check(parser: Parser, line: str) -> None:
    analysis = parser.analyse(line)
    record = json.loads(FORMATS["json"](analysis, True))
    assert record["text"] == line
    tokens = [line[start:end] for start, end in record["offsets"]]
    assert tokens == record["tokens"] == parser.parse(line).leaves()
    assert "".join(tokens) == "".join(line.split())
    gaps = [line[end:start] for (_, end), (start, _) in zip(record["offsets"], record["offsets"][1:], strict=False)]
    assert not "".join(gaps).strip()
    brackets = FORMATS["brackets"](analysis)
    if not any(character.isspace() for token in tokens for character in token):
        read = [leaf for parse in read_brackets([brackets], "line") for leaf in parse.words]
        assert read == [token.replace("(", "-LRB-").replace(")", "-RRB-") for token in tokens]


@pytest.mark.parametrize("line", TEN_SENTENCES)
def test_ten_sentences(parser: Parser, line: str) -> None:
    check(parser, line)


@given(line=ANY_LINE)
def test_any_line(parser: Parser, line: str) -> None:
    check(parser, line)


def test_punctuation_is_attached_as_high_as_possible(parser: Parser) -> None:
    words = "the box needed his men".split()
    plain = parser.parse(words)
    tree = parser.parse("( the , box ) needed his men .".split())
    assert tree.label() == "TOP"
    assert [child.label() for child in tree] == ["PUNCT", plain[0].label(), "PUNCT"]

    def without(node: nltk.Tree) -> nltk.Tree | str:
        if isinstance(node, str):
            return node
        return nltk.Tree(node.label(), [without(child) for child in node if child_label(child) != "PUNCT"])

    assert without(tree) == plain
    subject, comma = plain[0][0], next(p for p in tree.subtrees() if p.leaves() == [","])
    assert subject.leaves() == ["the", "box"]
    parents = [p for p in tree.subtrees() if any(child is comma for child in p)]
    assert [p.leaves() for p in parents] == [["the", ",", "box"]]
    closing = [p for p in tree.subtrees() if any(child_label(c) == "PUNCT" and c[0] == ")" for c in p)]
    assert closing[0].leaves() == "the , box ) needed his men".split()


def child_label(node: object) -> str:
    return node.label() if isinstance(node, nltk.Tree) else ""


def test_posteriors_count_tokens(parser: Parser) -> None:
    plain = parser.posteriors("the dog saw a cat".split())
    whole = parser.posteriors("`` the dog '' saw a cat .".split())
    place = np.array([1, 2, 4, 5, 6])
    for i in range(5):
        for j in range(i + 1, 6):
            assert whole[place[i], place[j - 1] + 1] == plain[i, j]
    assert whole.sum() == pytest.approx(plain.sum())
    record = json.loads(FORMATS["json"](parser.analyse("`` the dog '' saw a cat .".split()), True))
    assert record["tags"][0] == "PUNCT"
    assert record["posteriors"]["tags"][0] == 1


def test_punctuation_alone_and_one_word(parser: Parser) -> None:
    assert str(parser.parse(["?", "!"])) == "(TOP (PUNCT ?) (PUNCT !))"
    assert parser.parse(["dog", "!"]).leaves() == ["dog", "!"]
    assert FORMATS["brackets"](parser.analyse("")) == ""
    assert parser.analyse("...").log_probability == -np.inf


def test_invalid_sentences_are_refused(parser: Parser) -> None:
    with pytest.raises(RamifyError, match="put it into a list"):
        next(parser.parse_many("the dog"))
    for token in ("", " ", 3):
        with pytest.raises(RamifyError, match="is not a token of a sentence"):
            parser.parse(["the", token])
    with pytest.raises(RamifyError, match="count is 0"):
        parser.strongest_words(parser.tags[0], 0)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    (folder / "text").write_text("the dog saw a cat .\nit sleeps , they say .\n" * 30)
    options = "--preterminals 4 --rank 4 --embedding 8 --epochs 1 --batch-size 16".split()
    assert ramify("train", folder / "text", "--out", folder / "model", *options).returncode == 0
    return folder / "model"


def test_text_stays_line_by_line(model: Path) -> None:
    lines = "the dog , it sleeps .\n\n  \n.\nword\n"
    for form in ("brackets", "spans"):
        assert len(ramify("parse", "-m", model, "--format", form, given=lines).stdout.splitlines()) == 5
    assert ramify("score", "-m", model, given=lines).stdout.splitlines()[1:] == ["-inf"] * 4


@pytest.mark.parametrize("form", ["brackets", "json", "spans"])
def test_parsing_resumes_where_it_stopped(model: Path, tmp_path: Path, form: str) -> None:
    text, out = tmp_path / "text", tmp_path / "out"
    text.write_text("".join(f"the dog saw {i} cats .\n" if i % 7 else "\n" for i in range(300)))
    whole = ramify("parse", "-m", model, text, "--format", form).stdout
    partial, about = interrupted_run(model, tmp_path, "--format", form)
    reported = about.read_text()
    for done in (0, 1, 17, len(whole) // 2, len(whole) - 1, len(whole)):
        out.unlink(missing_ok=True)
        partial.write_text(whole[:done])
        about.write_text(reported)
        result = ramify("parse", "-m", model, text, "--format", form, "--out", out, "--resume")
        assert result.returncode == 0, result.stderr
        assert out.read_text() == whole
        assert not partial.exists()
        assert not about.exists()


def test_incomplete_lines_after_a_crash_are_removed(model: Path, tmp_path: Path) -> None:
    """A power cut may leave zeros, possibly more than the remaining output."""
    text, out = tmp_path / "text", tmp_path / "out"
    text.write_text("the dog saw the cats .\n" * 30)
    whole = ramify("parse", "-m", model, text).stdout
    partial, _ = interrupted_run(model, tmp_path)
    partial.write_text(whole[:100] + "\0" * (len(whole) + 100))
    assert ramify("parse", "-m", model, text, "--out", out, "--resume").returncode == 0
    assert out.read_text() == whole


def interrupted_run(model: Path, folder: Path, *options: str) -> tuple[Path, Path]:
    """The files of a run that ended after two windows of sentences."""
    (folder / "broken").write_bytes(b"the dog sleeps\n" * 2048 + b"\xff\n")
    result = ramify("parse", "-m", model, folder / "broken", "--out", folder / "out", *options)
    assert "line 2049: this is not UTF-8" in result.stderr
    return folder / "out.partial", folder / "out.partial.json"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "json"], "had another format (brackets, not json)"),
        (["--posteriors"], "had another posteriors"),
        (["--tokenise", "none"], "had another tokenise (None, not none)"),
        ([], "short: has 2 sentences, but 2,048 are already done"),
    ],
)
def test_parsing_resumes_only_with_the_same_options(
    model: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    partial, about = interrupted_run(model, tmp_path)
    before = partial.read_bytes()
    (tmp_path / "short").write_text("the dog sleeps\n" * 2)
    result = ramify("parse", "-m", model, tmp_path / "short", "--out", tmp_path / "out", "--resume", *options)
    assert result.returncode == 2
    assert message in result.stderr
    assert partial.read_bytes() == before
    about.unlink()
    again = ramify("parse", "-m", model, tmp_path / "short", "--out", tmp_path / "out", "--resume", *options)
    assert "is missing or invalid" in again.stderr


def test_parsing_does_not_resume_with_another_model(model: Path, tmp_path: Path) -> None:
    interrupted_run(model, tmp_path)
    other = shutil.copytree(model, tmp_path / "other")
    (other / "vocab.txt").write_text((other / "vocab.txt").read_text() + "\n")
    result = ramify("parse", "-m", other, tmp_path / "broken", "--out", tmp_path / "out", "--resume")
    assert "had another model" in result.stderr


def test_a_refused_run_leaves_nothing(model: Path, tmp_path: Path) -> None:
    for command in ("parse", "score"):
        assert ramify(command, "-m", model, tmp_path / "nowhere", "--out", tmp_path / "out").returncode == 2
        assert not list(tmp_path.iterdir())


def test_stopped_parsing_says_how_to_resume(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, out = tmp_path / "text", tmp_path / "out"
    text.write_text("the dog saw a cat .\n" * 3000)
    parses = []

    def stop_at_2000(analysis: object, _: bool) -> str:
        parses.append(analysis)
        if len(parses) == 2000:
            os.kill(os.getpid(), signal.SIGTERM)
        return "x"

    monkeypatch.setitem(FORMATS, "brackets", stop_at_2000)
    result = ramify("parse", "-m", model, text, "--out", out)
    assert result.returncode == 143
    assert "add --resume" in result.stderr
    assert not out.exists()
    assert 1990 <= len((tmp_path / "out.partial").read_text().splitlines()) <= 2001
    assert ramify("parse", "-m", model, text, "--out", out, "--resume").returncode == 0
    assert out.read_text() == "x\n" * 3000


def test_sentences_keep_their_places() -> None:
    sentence = Sentence.from_tokens(["a", "b"], where="here")
    assert (sentence.text, sentence.offsets, sentence.words) == ("a b", ((0, 1), (2, 3)), ("a", "b"))
    with pytest.raises(Stopped) as stop:
        raise Stopped(signal.SIGINT)
    assert stop.value.exit_code == 130
