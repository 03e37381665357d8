"""Parquet input and output: complete files only, with unchanged types."""

from __future__ import annotations

import datetime
import json
import math

import pytest

import ramify as package
from ramify.errors import Stopped
from ramify.integrations import parquet_output
from ramify.storage.model_files import checksum
from tests.command import ramify
from tests.integrations.test_tables import MODEL, ROWS, write_rows

pytestmark = pytest.mark.needs("parquet")
TIMES = [datetime.datetime(2026, 1, day, tzinfo=datetime.UTC) for day in (1, 2, 3)]
TEXTS = ["the dog saw a cat .", None, "𝒜 dog 🐕 saw it"]


@pytest.fixture(params=[2, 3], ids="row groups of {}".format)
def table(tmp_path, request):
    import pyarrow as pa
    from pyarrow import parquet

    columns = {
        "key": pa.array([2**60, None, -1], pa.int64()),
        "text": pa.array(TEXTS),
        "when": pa.array(TIMES, pa.timestamp("ns", "UTC")),
        "raw": pa.array([b"\0\xff", None, b""]),
        "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
        "nested": pa.array([[{"a": 1}], [], None]),
    }
    parquet.write_table(pa.table(columns), tmp_path / "in.parquet", row_group_size=request.param)
    return tmp_path / "in.parquet"


def to_parquet(file, out, *options):
    from pyarrow import parquet

    result = ramify("parse", "-m", MODEL, file, "--format", "parquet", "--out", out, *options)
    assert result.returncode == 0, result.stderr
    return parquet.read_table(out)


def test_columns_come_through_in_their_types(table, tmp_path, monkeypatch):
    from pyarrow import parquet

    monkeypatch.setattr(parquet_output, "ROW_GROUP", 2)
    found = to_parquet(table, tmp_path / "out.parquet")
    given = parquet.read_table(table)
    assert parquet.ParquetFile(tmp_path / "out.parquet").num_row_groups == 2
    for name in ("key", "when", "raw", "kind", "nested"):
        assert found.schema.field(name).type == given.schema.field(name).type
        assert found[name].combine_chunks().equals(given[name].combine_chunks()), name
    assert found["id"].to_pylist() == [1, 2, 3]
    metadata = found.schema.metadata
    assert metadata[b"ramify.model"].decode() == checksum(MODEL)
    assert metadata[b"ramify.version"].decode() == package.__version__


def test_rows_are_the_analyses(table, tmp_path):
    found = to_parquet(table, tmp_path / "out.parquet").to_pylist()
    parser = package.load(MODEL)
    for row, text in zip(found, TEXTS, strict=True):
        analysis = parser.analyse(text or "")
        assert (row["text"], tuple(row["tokens"]), tuple(row["tags"])) == (
            text or "",
            analysis.parse.words,
            analysis.parse.tags,
        )
        assert [row["text"][at["start"] : at["end"]] for at in row["offsets"]] == row["tokens"]
        spans = [(span["start"], span["end"], span["label"]) for span in row["spans"]]
        assert spans == [
            (*ends, label) for ends, label in zip(analysis.parse.spans.tolist(), analysis.parse.labels, strict=True)
        ]
        for span in row["spans"]:
            assert math.isclose(span["posterior"], analysis.posteriors[span["start"], span["end"]], rel_tol=1e-6)
        expected = analysis.log_probability if text else None
        assert row["log_probability"] == pytest.approx(expected)


def test_tokens_in_lists_and_a_pass_through_json_and_back(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"id": ["a", "b"], "w": [["a", "dog"], None]}), tmp_path / "in.parquet")
    found = to_parquet(tmp_path / "in.parquet", tmp_path / "out.parquet", "--column", "w")
    assert found["id"].to_pylist() == ["a", "b"]
    assert found["tokens"].to_pylist() == [["a", "dog"], []]
    as_json = ramify("parse", "-m", MODEL, tmp_path / "in.parquet", "--column", "w", "--format", "json").stdout
    assert [json.loads(line)["id"] for line in as_json.splitlines()] == ["a", "b"]


def test_values_are_converted_to_json(table):
    refused = ramify("parse", "-m", MODEL, table, "--format", "json")
    assert "the column 'raw' contains bytes, which JSON cannot" in refused.stderr
    kept = ("--keep", "kind", "--keep", "nested", "--keep", "key")
    lines = ramify("parse", "-m", MODEL, table, "--format", "json", *kept).stdout.splitlines()
    assert [json.loads(line)["nested"] for line in lines] == [[{"a": 1}], [], None]
    assert json.loads(lines[0])["key"] == 2**60


def test_rows_of_json_get_types_and_must_keep_them(tmp_path, monkeypatch):
    found = to_parquet(write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "a.parquet")
    assert found["id"].to_pylist() == [7, 8, 9]
    assert found["lang"].to_pylist() == ["en", None, None]
    assert found["about"].to_pylist()[0] == {"year": 2021, "tags": ["a", None]}
    monkeypatch.setattr(parquet_output, "ROW_GROUP", 2)
    rows = [{"text": "a dog", "n": 1}, {"text": "a cat", "n": 2}, {"text": "it saw", "n": "three"}]
    for changed, said in ((rows, "whose type differs"), ([*rows[:2], {"text": "it", "m": 1}], "no earlier row had")):
        file = write_rows(tmp_path / "b.jsonl", changed)
        refused = ramify("parse", "-m", MODEL, file, "--format", "parquet", "--out", tmp_path / "b.parquet")
        assert refused.returncode == 2
        assert f"{file}, line 3: has a column" in refused.stderr
        assert said in refused.stderr
        assert not list(tmp_path.glob("*b.parquet*"))
    monkeypatch.setattr(parquet_output, "ROW_GROUP", 8)
    mixed = ramify("parse", "-m", MODEL, write_rows(tmp_path / "b.jsonl", rows), "--format", "parquet", "--out",
                   tmp_path / "b.parquet")  # fmt: skip
    assert f"{tmp_path / 'b.jsonl'}, line 3: has a column 'n'" in mixed.stderr


def test_an_empty_input_gives_an_empty_table(tmp_path):
    (tmp_path / "empty.txt").write_text("")
    found = to_parquet(tmp_path / "empty.txt", tmp_path / "out.parquet")
    assert found.num_rows == 0
    assert found.column_names[:2] == ["id", "text"]


def test_unsupported_options_are_refused(tmp_path, table):
    out = tmp_path / "out.parquet"
    for options, said in (
        ((), "give its name with --out"),
        (("--out", out, "--resume"), "cannot be resumed"),
        (("--out", f"{out}.gz"), "compressed already"),
        (("--out", out, "--best", 2), "--best works only with the formats"),
    ):
        refused = ramify("parse", "-m", MODEL, table, "--format", "parquet", *options)
        assert refused.returncode == 2
        assert said in refused.stderr
    out.write_text("mine")
    refused = ramify("parse", "-m", MODEL, table, "--format", "parquet", "--out", out)
    assert "this file already exists" in refused.stderr
    assert out.read_text() == "mine"
    assert to_parquet(table, out, "--overwrite").num_rows == 3


def test_a_run_that_is_stopped_leaves_nothing(tmp_path, table, monkeypatch):
    def stop(*_: object) -> None:
        raise Stopped(2)

    monkeypatch.setattr(parquet_output, "_record", stop)
    stopped = ramify("parse", "-m", MODEL, table, "--format", "parquet", "--out", tmp_path / "out.parquet")
    assert stopped.returncode == 130
    assert "Stopped; nothing was written." in stopped.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_files_with_misleading_names(tmp_path, table):
    (tmp_path / "cut.parquet").write_bytes(table.read_bytes()[:-30])
    for file, options, said in (
        (tmp_path / "cut.parquet", (), "cannot be read as Parquet"),
        (table, ("--column", "key"), "the column 'key' contains int64"),
        (table, ("--column", "nested"), "the column 'nested' contains list"),
        (table, ("--column", "body"), "has no column 'body', only 'key', 'text'"),
    ):
        refused = ramify("parse", "-m", MODEL, file, *options)
        assert refused.returncode == 2
        assert said in refused.stderr
        assert len(refused.stderr.strip().splitlines()) == 1, refused.stderr
    piped = ramify("parse", "-m", MODEL, given=table.read_bytes())
    assert "cannot come from a pipe" in piped.stderr
