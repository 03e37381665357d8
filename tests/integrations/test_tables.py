"""Sentences from the rows of JSON lines, and results with their columns."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import ramify as package
from ramify.corpus.guessing import guess_kind, is_undecided
from tests.command import ramify
from tests.conftest import FIXTURES

MODEL = FIXTURES / "models" / "n-pcfg"
PROSE_MODEL = FIXTURES / "models" / "from-prose"
ROWS = [
    {"id": 7, "text": "the dog saw a cat .", "lang": "en", "about": {"year": 2021, "tags": ["a", None]}},
    {"id": 8, "text": None},
    {"id": 9, "text": ["a", "cat", "saw", "it"], "score": 0.5},
]


def write_rows(path: Path, rows: list[object]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def parsed(*arguments: object) -> list[dict[str, object]]:
    result = ramify("parse", "-m", MODEL, *arguments)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_rows_are_parsed_as_their_texts_are_and_keep_their_columns(tmp_path):
    file = write_rows(tmp_path / "rows.jsonl", ROWS)
    parser = package.load(MODEL)
    first, blank, last = parsed(file, "--format", "json")
    expected = json.loads(json.dumps(parser.analyse("the dog saw a cat .").as_record()))
    assert first == {"id": 7, "lang": "en", "about": ROWS[0]["about"], **expected}
    assert list(first)[:4] == ["id", "lang", "about", "text"]
    assert (blank["id"], blank["text"], blank["tokens"], blank["failure"]) == (8, "", [], None)
    assert last == {"id": 9, "score": 0.5, **json.loads(json.dumps(parser.analyse("a cat saw it").as_record()))}


def test_text_formats_have_a_line_for_each_row_and_missing_texts_are_reported(tmp_path):
    file = write_rows(tmp_path / "rows.jsonl", [*ROWS, {"id": 10}])
    result = ramify("parse", "-m", MODEL, file)
    lines = result.stdout.splitlines()
    assert [bool(line) for line in lines] == [True, False, True, False]
    assert f"Rows without text: 2 ({file}, line 2; {file}, line 4)." in result.stderr


def test_blank_lines_are_not_rows_but_count_as_lines(tmp_path):
    (tmp_path / "rows.jsonl").write_text('\n{"text": "a dog"}\n\n{"text": 3}\n')
    result = ramify("parse", "-m", MODEL, "--input", "jsonl", tmp_path / "rows.jsonl")
    assert result.returncode == 2
    assert "rows.jsonl, line 4: contains '3' where a text or a list of tokens should be" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_columns_by_name_and_those_to_keep(tmp_path):
    file = write_rows(tmp_path / "rows.jsonl", [{"n": 1, "tags": ["mine"], "body": "a dog"}])
    refused = ramify("parse", "-m", MODEL, file)
    assert "has no column 'text', only 'n', 'tags', 'body'" in refused.stderr
    clash = ramify("parse", "-m", MODEL, file, "--column", "body", "--format", "json")
    assert clash.returncode == 2
    assert "the column 'tags' has the name of a column of the result" in clash.stderr
    (kept,) = parsed(file, "--column", "body", "--keep", "n", "--format", "json")
    assert (kept["n"], kept["text"]) == (1, "a dog")
    assert "body" not in kept
    (bare,) = parsed(file, "--column", "body", "--keep", "none", "--format", "json")
    assert "n" not in bare
    unknown = ramify("parse", "-m", MODEL, file, "--column", "body", "--keep", "m", "--format", "json")
    assert "has no column 'm' to keep" in unknown.stderr


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        ('{"text": "a dog"}\n{"text": \n', (), "line 2: is not JSON"),
        ('{"text": "a dog"}\n[1, 2]\n', (), "line 2: is not an object"),
        ('{"text": "a dog"}\n{"text": ["a", 2]}\n', (), "line 2: contains"),
        ('{"text": "a dog"}\n{"text": ["a", " "]}\n', (), "line 2: contains"),
        ('{"text": "a\\u0000dog"}\n', (), "line 1: contains a NUL character"),
        ('{"text": "a \\ud800 dog"}\n', (), "line 1: contains an unpaired surrogate"),
        ("[" * 100_000 + "\n", ("--input", "jsonl"), "line 1: is not JSON"),
        ("a dog\n", ("--column", "text"), "contains text, which has no columns"),
        ('{"text": "a dog"}\n', ("--keep", "id"), "--keep works only for formats with columns"),
        ('{"text": "a dog"}\n', ("--split-sentences",), "has not learnt to split prose"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_its_place(tmp_path, content, options, said):
    (tmp_path / "rows.jsonl").write_text(content)
    result = ramify("parse", "-m", MODEL, tmp_path / "rows.jsonl", *options)
    assert result.returncode == 2
    assert said in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr


@pytest.mark.needs("spacy")
def test_prose_in_a_row_becomes_several_sentences_that_share_its_columns(tmp_path):
    text = "The badger came back on Monday. It ate the apples."
    file = write_rows(tmp_path / "rows.jsonl", [{"id": "a", "text": text}, {"id": "b", "text": ""}])
    result = ramify("parse", "-m", PROSE_MODEL, file, "--format", "json")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [record["id"] for record in found] == ["a", "a", "b"]
    assert [record["text"] for record in found] == ["The badger came back on Monday.", "It ate the apples.", ""]
    whole = ramify("parse", "-m", PROSE_MODEL, file, "--format", "json", "--no-split-sentences")
    assert [json.loads(line)["id"] for line in whole.stdout.splitlines()] == ["a", "b"]


def test_inline_constraints_and_compressed_rows(tmp_path):
    with gzip.open(tmp_path / "rows.gz", "wt") as handle:
        handle.write(json.dumps({"text": "the [dog saw] a cat"}) + "\n")
    (record,) = parsed(tmp_path / "rows.gz", "--constraints", "inline", "--format", "json")
    assert record["text"] == "the dog saw a cat"
    assert [1, 3] in [each[:2] for each in record["constituents"]]


def test_rows_are_distinguished_from_text_and_trees():
    assert guess_kind(b'{"text": "a"}\n') == "jsonl"
    assert guess_kind(b'  {"text" : 1, "b": {}}') == "jsonl"
    assert guess_kind(b'{"text": "' + b"a " * 40_000) == "jsonl"
    assert guess_kind(b'{ " text " : a }\nb\n') == "text"
    assert guess_kind(b"{the dog} saw it\n") == "text"
    assert guess_kind(b"PAR1\x15\x00") == "parquet"
    assert is_undecided(b'{"te')
    assert not is_undecided(b'{"text": "a"}\n')


def test_training_and_scores_read_rows(tmp_path):
    sentences = ["the dog saw a cat", "a cat saw it", "the old man saw a dog", "it saw the park"] * 10
    (tmp_path / "lines.txt").write_text("".join(f"{each}\n" for each in sentences))
    rows = [{"body": each if number % 2 else each.split()} for number, each in enumerate(sentences)]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    small = {"preterminals": 4, "nonterminals": 2, "rank": 4, "embedding": 8, "epochs": 1}
    by_line = package.train(tmp_path / "lines.txt", tmp_path / "a", **small)
    by_row = package.train(file, tmp_path / "b", column="body", **small)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in "ab"]
    assert weights[0] == weights[1]
    assert by_line.vocabulary.words == by_row.vocabulary.words
    scores = [ramify("score", "-m", tmp_path / "a", tmp_path / "lines.txt").stdout]
    scores.append(ramify("score", "-m", tmp_path / "a", file, "--column", "body").stdout)
    assert scores[0] == scores[1]
    with pytest.raises(package.RamifyError, match="which has no columns"):
        package.train(tmp_path / "lines.txt", tmp_path / "c", column="body", **small)
