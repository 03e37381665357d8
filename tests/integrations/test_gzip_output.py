"""`--out NAME.gz`: compressed, resumable, the same bytes."""

from __future__ import annotations

import gzip
import io

import pytest

from ramify.storage.gzip_output import GzipGroups, whole_members
from tests.command import ramify
from tests.integrations.test_tables import MODEL


def written(lines: list[bytes], size: int) -> bytes:
    handle = io.BytesIO()
    groups = GzipGroups(handle, size)
    for line in lines:
        groups.write(line)
    groups.flush()
    return handle.getvalue()


@pytest.mark.parametrize("count", [0, 1, 3, 4, 8, 9])
def test_what_is_written_is_gzip_and_ends_after_the_last_whole_group(count):
    lines = [f"line {number} {'x' * number * 50}\n".encode() for number in range(count)]
    data = written(lines, 4)
    assert data.startswith(b"\x1f\x8b")  # an empty file would not be gzip
    assert gzip.decompress(data) == b"".join(lines)
    assert data == written(lines, 4)
    assert data[4:8] == bytes(4)  # without a time, so that the bytes are the same at any time
    whole = count // 4 * 4
    for cut in range(len(data) + 1):
        kept, end = whole_members(io.BytesIO(data[:cut]), 4)
        assert kept <= whole
        assert end <= cut
        assert gzip.decompress(data[:end]) == b"".join(lines[:kept]) if end else kept == 0
    assert whole_members(io.BytesIO(data), 4)[0] == whole


def test_members_of_another_size_are_not_resumed():
    assert whole_members(io.BytesIO(written([b"a\n"] * 6, 3)), 4) == (0, 0)


def test_a_stopped_run_is_resumed_to_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("ramify.cli.line_output.WINDOW", 4)
    monkeypatch.setattr("ramify.storage.gzip_output.GzipGroups.__init__.__defaults__", (4,))
    monkeypatch.setattr("ramify.parser.tree_parser.WINDOW", 4)
    (tmp_path / "in.txt").write_text("the dog saw a cat\na cat\n" * 5)
    command = ("parse", "-m", MODEL, tmp_path / "in.txt", "--out")
    assert ramify(*command, tmp_path / "whole.gz").returncode == 0
    assert ramify(*command, tmp_path / "plain.txt").returncode == 0
    data = (tmp_path / "whole.gz").read_bytes()
    assert gzip.decompress(data) == (tmp_path / "plain.txt").read_bytes()
    assert ramify(*command, tmp_path / "again.gz", "--strict").returncode == 0
    (tmp_path / "in.txt").write_text("the dog saw a cat\na cat\n" * 3 + "\0\n")
    failed = ramify(*command, tmp_path / "cut.gz")
    assert failed.returncode == 2
    assert (tmp_path / "cut.gz.partial").stat().st_size > 0
    (tmp_path / "in.txt").write_text("the dog saw a cat\na cat\n" * 5)
    resumed = ramify(*command, tmp_path / "cut.gz", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert (tmp_path / "cut.gz").read_bytes() == data
