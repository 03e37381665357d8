"""The sentences of all blocks are those of the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ramify as package
from ramify.corpus.blocks import Block, BlockReader, check_columns, cut
from ramify.corpus.constraint_reading import InlineRules
from ramify.corpus.parquet_rows import parquet_cells
from ramify.corpus.streaming import SentenceStream
from ramify.corpus.table_rows import Columns
from ramify.corpus.text import TextRules
from ramify.errors import RamifyError
from tests.conftest import PROJECT

RULES = TextRules()
PROSE_MODEL = PROJECT / "tests" / "fixtures" / "models" / "from-prose"


def whole(file: Path, kind: str = "auto", rules: TextRules = RULES, columns: Columns | None = None):
    return [shown(each) for each in SentenceStream(file, kind, rules, None, columns=columns)]


def shown(sentence):
    return sentence.text, sentence.offsets, sentence.where, sentence.row and sentence.row.values()


def in_blocks(file: Path, size: int, kind: str = "auto", rules: TextRules = RULES, columns: Columns | None = None):
    found = cut(file, kind, size, rules.splitter is not None, lambda _: None)
    bad: list[tuple[int, str]] = []
    reader = BlockReader(file, kind, found.kind, rules, None, columns, lambda row, error: bad.append((row, str(error))))
    sentences = [[shown(each) for each in reader.read(block)] for block in found.blocks]
    return found.blocks, sentences, bad, reader


def check(file: Path, size: int, **options: object) -> list[list[object]]:
    blocks, sentences, bad, _ = in_blocks(file, size, **options)
    assert not bad
    assert [each for block in sentences for each in block] == whole(file, **options)
    assert [block.number for block in blocks] == list(range(len(blocks)))
    return sentences


LINES = st.lists(st.sampled_from(["a b", "", "c", " ", "\u00a0", "d\r", "e\rf", "ü ß", "(A b", "\ufeffx"]), max_size=12)


@given(LINES, st.integers(1, 5), st.booleans(), st.booleans())
def test_text(tmp_path_factory, lines, size, ends, with_mark):
    file = tmp_path_factory.mktemp("text") / "in.txt"
    file.write_bytes((b"\xef\xbb\xbf" if with_mark else b"") + "\n".join(lines).encode() + b"\n" * ends)
    sentences = check(file, size, kind="text")
    assert all(len(block) == size for block in sentences[:-1])


def test_an_empty_file_is_one_block(tmp_path):
    (tmp_path / "in.txt").write_bytes(b"")
    assert check(tmp_path / "in.txt", 3) == [[]]


def test_carriage_returns_end_the_lines_of_a_file_without_line_feeds(tmp_path):
    (tmp_path / "in.txt").write_bytes(b"a b\rc d\re")
    assert [[text for text, *_ in block] for block in check(tmp_path / "in.txt", 2)] == [["a b", "c d", "e"]]


ROWS = st.lists(
    st.sampled_from(['{"text": "a b", "n": 1}', '{"text": null}', '{"text": ["a", "b c"]}', "", " ", "\u2003", "{}"]),
    max_size=12,
)


@given(ROWS, st.integers(1, 5))
def test_json_lines(tmp_path_factory, rows, size):
    file = tmp_path_factory.mktemp("rows") / "in.jsonl"
    file.write_text('{"text": "first", "m": [1]}\n' + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    sentences = check(file, size)
    assert all(len(block) == size for block in sentences[:-1])
    blocks, *_, reader = in_blocks(file, size)
    stream = SentenceStream(file, "auto", RULES, None)
    list(stream)
    assert reader.rows == stream.rows
    before = [sum(map(len, sentences[:number])) for number in range(len(blocks))]
    assert [block.sentences_before for block in blocks] == before


@pytest.mark.needs("parquet")
@pytest.mark.parametrize("size", [1, 3, 4, 10, 11])
@pytest.mark.parametrize("groups", [1, 3, 10])
def test_parquet(tmp_path, size, groups):
    import pyarrow as pa
    from pyarrow import parquet

    texts = ["a b", None, "c", "", "d e", "f", "g", "h", "i", "j"]
    table = pa.table({"key": range(10), "text": texts})
    parquet.write_table(table, tmp_path / "in.parquet", row_group_size=groups)
    sentences = check(tmp_path / "in.parquet", size)
    assert [len(block) for block in sentences] == [len(range(10)[i : i + size]) for i in range(0, 10, size)]


@pytest.mark.needs("parquet")
def test_parquet_without_rows(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "in.parquet")
    assert check(tmp_path / "in.parquet", 3) == [[]]


@pytest.mark.needs("parquet")
def test_parquet_reads_only_the_row_groups_of_the_rows(tmp_path, monkeypatch):
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"text": [str(n) for n in range(10)]}), tmp_path / "in.parquet", row_group_size=2)
    read = []
    original = parquet.ParquetFile.iter_batches

    def iter_batches(self, size, groups, **options):
        read.append(groups)
        return original(self, size, groups, **options)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", iter_batches)
    cells = parquet_cells(tmp_path / "in.parquet", "in", Columns(), rows=range(4, 7))
    assert [(cell.content, cell.where) for cell in cells] == [
        ("3", "in, row 4"),
        ("4", "in, row 5"),
        ("5", "in, row 6"),
    ]
    assert read == [[1, 2]]


PROSE = ["A dog came. It\n", "saw us.\n", "\n", " \n", "Nobody else did.\n", "\u2003\n", "The end. Or\n", "not?"]


@pytest.mark.parametrize("size", [1, 2, 3, 8, 100])
def test_prose_is_cut_between_paragraphs(tmp_path, size):
    (tmp_path / "in.txt").write_text("".join(PROSE), encoding="utf-8")
    rules = package.load(PROSE_MODEL).text_rules
    assert rules.splitter is not None
    sentences = check(tmp_path / "in.txt", size, rules=rules)
    assert (len(sentences) > 1) == (size < 8)


def test_a_bad_row_is_reported_and_has_no_text(tmp_path):
    good, file = '{"text": "a b", "n": 1}\n', tmp_path / "in.jsonl"
    rows = [good, "no json\n", '{"text": 3, "n": 4}\n', "\n", good, '{"text": "\\ud800"}\n', "[]\n"]
    file.write_bytes("".join(rows).encode() + b'{"text": "\xff"}\n' + good.encode())
    for size in (1, 4, 100):
        _, blocks, bad, reader = in_blocks(file, size)
        found = [each for block in blocks for each in block]
        assert [text for text, *_ in found] == ["a b", "", "", "a b", "", "", "", "a b"]
        assert [columns for *_, columns in found][1:3] == [{}, {"n": 4}]
        assert [row for row, _ in bad] == [2, 3, 6, 7, 8]
        assert all(f"in.jsonl, line {row}" in error for row, error in bad)
        assert reader.rows.empty == 0


@pytest.mark.parametrize("size", [1, 2, 100])
def test_rows_without_text_are_counted_once_however_often_bad_ones_are_looked_for(tmp_path, size):
    blank, good, bad = '{"text": null}\n', '{"text": "a b"}\n', "no json\n"
    (tmp_path / "in.jsonl").write_text("".join([blank, good, bad, blank, good, bad, blank]))
    *_, found, reader = in_blocks(tmp_path / "in.jsonl", size)
    assert [row for row, _ in found] == [3, 6]
    assert reader.rows.empty == 3


def test_bad_lines_of_text(tmp_path):
    (tmp_path / "in.txt").write_bytes(b"a\nb\0c\nd [e\nf \xff\n[a b] c\n[{a b}] c\n")
    _, blocks, bad, _ = in_blocks(tmp_path / "in.txt", 100, kind="text", rules=InlineRules.of(RULES))
    assert [text for text, *_ in blocks[0]] == ["a", "", "", "", "a b c", ""]
    assert [row for row, _ in bad] == [2, 3, 4, 6]


def test_a_bad_line_of_prose_becomes_blank(tmp_path):
    (tmp_path / "in.txt").write_bytes(b"A dog came.\n\xff\nIt saw us.\n")
    rules = package.load(PROSE_MODEL).text_rules
    _, blocks, bad, _ = in_blocks(tmp_path / "in.txt", 100, kind="text", rules=rules)
    assert [text for text, *_ in blocks[0]] == ["A dog came.", "It saw us."]
    assert [row for row, _ in bad] == [2]
    (tmp_path / "in.txt").write_bytes(b"A dog came\n\xff\nwith us.\n")
    _, blocks, *_ = in_blocks(tmp_path / "in.txt", 100, kind="text", rules=rules)
    assert [text for text, *_ in blocks[0]] == ["A dog came", "with us."]


@pytest.mark.needs("parquet")
def test_bad_rows_of_parquet_keep_their_columns(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({"key": [1, 2], "text": [["a", "b"], ["a", None]]})
    parquet.write_table(table, tmp_path / "in.parquet")
    _, blocks, bad, _ = in_blocks(tmp_path / "in.parquet", 10)
    assert [(text, columns) for text, _, _, columns in blocks[0]] == [("a b", {"key": 1}), ("", {"key": 2})]
    assert [row for row, _ in bad] == [2]


def test_a_changed_block_is_refused(tmp_path):
    file = tmp_path / "in.txt"
    file.write_text("a\nb\nc\n")
    blocks = cut(file, "text", 2, False, lambda _: None).blocks
    file.write_text("a\nB\nc\n")
    reader = BlockReader(file, "text", "text", RULES, None, None, print)
    with pytest.raises(RamifyError, match=r"in.txt: lines 1 to 2 have changed"):
        list(reader.read(blocks[0]))
    assert [each.text for each in reader.read(blocks[1])] == ["c"]


def test_the_checksum_is_that_of_the_content(tmp_path):
    file = tmp_path / "in.txt"

    def checksum(content: str) -> str:
        file.write_text(content)
        return cut(file, "text", 2, False, lambda _: None).checksum

    assert checksum("a\nb\nc\n") == checksum("a\nb\nc\n")
    assert len({checksum(content) for content in ("a\nb\nc\n", "a\nb\nd\n", "a\nb\nc", "b\na\nc\n", "a\nb\n")}) == 5


@pytest.mark.parametrize(
    ("name", "content", "wrong"),
    [
        ("in.trees", b"(S (A a) (B b))\n", "contains trees"),
        (
            "in.txt.gz",
            b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xffKT\xe0\x02\x00\xda\x7fP\x1b\x03\x00\x00\x00",
            "compressed",
        ),
    ],
)
def test_files_that_cannot_be_cut_are_refused(tmp_path, name, content, wrong):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RamifyError, match=wrong):
        cut(tmp_path / name, "auto", 2, False, lambda _: None)
    with pytest.raises(RamifyError, match="give a regular file"):
        cut(tmp_path, "auto", 2, False, lambda _: None)


def test_columns_are_checked_by_the_first_row_that_can_be_read(tmp_path):
    file = tmp_path / "in.jsonl"
    file.write_text('no json\n[1]\n{"body": "a"}\n{"text": "b"}\n')
    check_columns(file, "jsonl", Columns("body"))
    with pytest.raises(RamifyError, match="line 3: has no column 'text'"):
        check_columns(file, "jsonl", Columns())
    json.loads(file.read_text().splitlines()[3])


def test_blocks_report_how_many_bytes_were_read(tmp_path):
    file, read = tmp_path / "in.txt", []
    file.write_text("a b\n" * 50_000)
    cut(file, "text", 1000, False, read.append)
    assert sum(read) == file.stat().st_size
    assert Block(0, 1, 2, 0) == Block(0, 1, 2, 0)
