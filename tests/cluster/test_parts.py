"""A result in parts equals that of the local engine, even after interruptions."""

from __future__ import annotations

import gzip
import json
import shutil
import signal
from pathlib import Path

import pytest

from ramify.cluster.block_parser import MAX_TRIES, BlockParser
from ramify.cluster.parts import Parts
from ramify.errors import RamifyError, Stopped
from tests.cluster.conftest import MODEL, sentence
from tests.command import Finished, ramify
from tests.integrations.test_tables import PROSE_MODEL, write_rows

pytestmark = pytest.mark.usefixtures("in_process")
OTHER_MODEL = MODEL.with_name("tn-pcfg")


def local(file: Path, out: Path, *options: object, model: Path = MODEL) -> bytes:
    finished_locally(file, out, *options, model=model)
    return out.read_bytes()


def finished_locally(file: Path, out: Path, *options: object, model: Path = MODEL) -> Finished:
    result = ramify("parse", "-m", model, file, "--out", out, *options)
    assert result.returncode == 0, result.stderr
    return result


def blockwise(file: Path, out: Path, *options: object, model: Path = MODEL) -> Finished:
    size = () if "--block-size" in options else ("--block-size", 1024)
    return ramify("parse", "-m", model, file, "--out", out, "--engine", "ray", *size, *options)


def check(tmp_path: Path, file: Path, *options: object, suffix: str = "", model: Path = MODEL) -> Finished:
    """The same bytes and the same report, without leftover files."""
    expected = tmp_path / f"expected{suffix}"
    alone = finished_locally(file, expected, *options, model=model)
    out = tmp_path / "new" / f"out{suffix}"
    out.parent.mkdir()
    result = blockwise(file, out, *options, model=model)
    assert result.returncode == 0, result.stderr
    assert out.read_bytes() == expected.read_bytes()
    assert result.stderr == alone.stderr
    assert [path.name for path in out.parent.iterdir()] == [out.name]
    return result


@pytest.mark.parametrize("options", ["", "--format json --posteriors", "--format spans", "--format conllu", "--best 2"])
def test_text(tmp_path, text, in_process, options):
    result = check(tmp_path, text, *options.split())
    assert in_process.parsed == [0, 1, 2]
    assert "Unknown:" in result.stderr


def test_compressed(tmp_path, text):
    check(tmp_path, text, suffix=".gz")
    assert gzip.decompress((tmp_path / "new" / "out.gz").read_bytes())


def test_an_empty_file(tmp_path):
    (tmp_path / "in.txt").write_bytes(b"")
    check(tmp_path, tmp_path / "in.txt")
    shutil.rmtree(tmp_path / "new")
    check(tmp_path, tmp_path / "in.txt", suffix=".gz")


@pytest.fixture
def rows(tmp_path):
    return write_rows(
        tmp_path / "rows.jsonl",
        [{"key": number, "body": sentence(number) or None, "x": {"y": [number / 3]}} for number in range(2500)],
    )


def test_rows_with_columns(tmp_path, rows):
    result = check(tmp_path, rows, "--column", "body", "--format", "json")
    assert "Rows without text: 417" in result.stderr


@pytest.mark.needs("parquet")
@pytest.mark.parametrize("named", ["key", "id"])
def test_parquet_from_rows(tmp_path, in_process, monkeypatch, named):
    """The types of a column are those of the first row group, in every block."""
    monkeypatch.setattr("ramify.cluster.parse_in_blocks.BLOCK", 1024)
    monkeypatch.setattr("ramify.integrations.parquet_output.ROW_GROUP", 1024)
    rows = [
        {named: number, "text": sentence(number)} | ({"late": 0.5} if number == 1000 else {}) for number in range(2500)
    ]
    check(tmp_path, write_rows(tmp_path / "rows.jsonl", rows), "--format", "parquet", suffix=".parquet")
    assert len(in_process.parsed) == 3


@pytest.mark.needs("parquet")
def test_parquet_from_parquet(tmp_path, monkeypatch):
    import pyarrow as pa
    from pyarrow import parquet

    monkeypatch.setattr("ramify.cluster.parse_in_blocks.BLOCK", 1024)
    monkeypatch.setattr("ramify.integrations.parquet_output.ROW_GROUP", 1024)
    columns = {"kind": pa.array(["x", "y"] * 1250).dictionary_encode(), "text": [sentence(n) for n in range(2500)]}
    parquet.write_table(pa.table(columns), tmp_path / "in.parquet", row_group_size=700)
    check(tmp_path, tmp_path / "in.parquet", "--format", "parquet", suffix=".parquet")
    shutil.rmtree(tmp_path / "new")
    check(tmp_path, tmp_path / "in.parquet", "--format", "json", "--keep", "none")


@pytest.mark.needs("parquet")
def test_sentences_of_prose_have_consecutive_numbers(tmp_path, in_process, monkeypatch):
    from pyarrow import parquet

    monkeypatch.setattr("ramify.cluster.parse_in_blocks.BLOCK", 1024)
    (tmp_path / "in.txt").write_text("A dog came. It saw us.\n\n" * 1500)
    options = (tmp_path / "in.txt", tmp_path / "out.parquet", "--format", "parquet")
    assert blockwise(*options, model=PROSE_MODEL).returncode == 0
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table["id"].to_pylist() == list(range(1, 3001))
    assert table["text"].to_pylist()[-1] == "It saw us."
    assert len(in_process.parsed) == 3
    result = blockwise(tmp_path / "in.txt", tmp_path / "parts", "--format", "parquet", "--parts", model=PROSE_MODEL)
    assert result.returncode == 2
    assert "--parts" in result.stderr


def test_prose(tmp_path, in_process):
    (tmp_path / "in.txt").write_text("A dog came. It saw us.\n\nNobody else\nsaw it.\n\n" * 500)
    check(tmp_path, tmp_path / "in.txt", model=PROSE_MODEL)
    assert len(in_process.parsed) > 1


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_run_that_was_stopped_resumes(tmp_path, text, in_process, left):
    out = tmp_path / "out.txt"
    in_process.stop_after, in_process.error = left, Stopped(signal.SIGINT)
    result = blockwise(text, out)
    assert result.returncode == 130
    assert f"Stopped; {left} of 3 blocks are done, and the same command resumes." in result.stderr
    assert not out.exists()
    in_process.stop_after = -1
    resumed = blockwise(text, out)
    assert resumed.returncode == 0
    assert in_process.parsed == [0, 1, 2]
    assert out.read_bytes() == local(text, tmp_path / "expected")
    assert not Path(f"{out}.parts").exists()
    assert "Unknown:" in resumed.stderr


def stopped_after_one(text: Path, out: Path, in_process, *options: object) -> Path:
    in_process.stop_after, in_process.error = 1, RamifyError("a failure.")
    assert blockwise(text, out, *options).returncode == 2
    in_process.stop_after = -1
    return out if "--parts" in options else Path(f"{out}.parts")


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"model": OTHER_MODEL}, "model"),
        ({"options": ("--format", "spans")}, "format"),
        ({"options": ("--max-length", "5")}, "max-length"),
        ({"options": ("--block-size", "2048")}, "block-size"),
        ({"content": "a dog\n"}, "input-file"),
    ],
)
def test_a_result_of_another_model_is_not_resumed(tmp_path, text, in_process, changed, named):
    out = tmp_path / "out.txt"
    parts = stopped_after_one(text, out, in_process)
    before = {path: path.read_bytes() for path in parts.iterdir()}
    if "content" in changed:
        text.write_text(changed["content"] + text.read_text())
    result = blockwise(text, out, *changed.get("options", ()), model=changed.get("model", MODEL))
    assert result.returncode == 2
    assert f"the earlier run had another {named} (" in result.stderr
    assert {path: path.read_bytes() for path in parts.iterdir()} == before
    result = blockwise(text, out, *changed.get("options", ()), "--overwrite", model=changed.get("model", MODEL))
    assert result.returncode == 0, result.stderr
    assert in_process.parsed[1:] == ([0, 1] if "2048" in changed.get("options", ()) else [0, 1, 2])
    assert not parts.exists()


def test_parts_of_another_run_are_not_used(tmp_path, text, in_process):
    """A worker of an overwritten run may still have been running."""
    out = tmp_path / "out.txt"
    parts = stopped_after_one(text, out, in_process, "--format", "spans")
    kept = {path.name: path.read_bytes() for path in parts.glob("part-00000*")}
    assert len(kept) == 2
    in_process.stop_after = 1
    assert blockwise(text, out, "--overwrite").returncode == 2
    for name, content in kept.items():
        (parts / name).write_bytes(content)
    in_process.stop_after = -1
    assert blockwise(text, out).returncode == 0
    assert in_process.parsed == [0, 0, 1, 2]
    assert out.read_bytes() == local(text, tmp_path / "expected")


def test_a_damaged_part_is_parsed_again(tmp_path, text, in_process):
    out = tmp_path / "out.txt"
    parts = stopped_after_one(text, out, in_process)
    (parts / "part-00000.txt").write_bytes(b"half of it")
    result = blockwise(text, out)
    assert result.returncode == 2
    assert "part-00000.txt: is missing or damaged; run the same command again" in result.stderr
    assert not out.exists()
    assert blockwise(text, out).returncode == 0
    assert in_process.parsed == [0, 1, 2, 0]
    assert out.read_bytes() == local(text, tmp_path / "expected")


def test_files_of_killed_workers_are_removed(tmp_path, text, in_process):
    out = tmp_path / "out.txt"
    parts = stopped_after_one(text, out, in_process)
    (parts / ".part-00001.txt.0123abcd.partial").write_bytes(b"half")
    assert blockwise(text, out).returncode == 0
    assert not parts.exists()


def test_to_overwrite_is_to_begin_with_an_empty_folder(tmp_path, text, in_process):
    """So that there is room for the new parts."""
    out = tmp_path / "out"
    stopped_after_one(text, out, in_process, "--parts")
    (out / ".part-00001.txt.0123abcd.partial").write_bytes(b"half")
    Parts(out, ".txt", 3, "run").begin({}, overwrite=True)
    assert [path.name for path in out.iterdir()] == ["manifest.json"]


def test_a_block_that_another_worker_finished_is_not_parsed_again(tmp_path, text, in_process):
    """Ray hands out a block again if its worker dies, even if the block was already finished."""
    parts = stopped_after_one(text, tmp_path / "out.txt", in_process)
    missing = Parts.missing
    try:
        Parts.missing = lambda self: [0, *missing(self)]
        written = (parts / "part-00000.txt").stat().st_mtime_ns
        in_process.stop_after = 2
        blockwise(text, tmp_path / "out.txt")
    finally:
        Parts.missing = missing
    assert (parts / "part-00000.txt").stat().st_mtime_ns == written


def test_bad_rows_are_listed(tmp_path):
    rows = [json.dumps({"id": number, "text": sentence(number)}) for number in range(1500)]
    rows[3], rows[1200] = "no json", '{"id": 1200, "text": 7}'
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    out = tmp_path / "out.jsonl"
    result = blockwise(tmp_path / "rows.jsonl", out, "--format", "json")
    assert result.returncode == 0, result.stderr
    listed = tmp_path / "out.jsonl.bad-rows.jsonl"
    assert f"Rows that could not be read and have no tree: 2; they are listed in {listed}." in result.stderr
    found = [json.loads(line) for line in listed.read_text().splitlines()]
    assert [row["row"] for row in found] == [4, 1201]
    assert "line 4: is not JSON" in found[0]["error"]
    parsed = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(parsed) == 1500
    assert [(row.get("id"), row["text"]) for row in (parsed[3], parsed[1200])] == [(None, ""), (1200, "")]
    rows[3], rows[1200] = rows[0], rows[0]
    (tmp_path / "good.jsonl").write_text("\n".join(rows))
    good = local(tmp_path / "good.jsonl", tmp_path / "expected", "--format", "json").splitlines()
    kept = [line for number, line in enumerate(out.read_bytes().splitlines()) if number not in (3, 1200)]
    assert kept == [line for number, line in enumerate(good) if number not in (3, 1200)]
    refused = blockwise(tmp_path / "rows.jsonl", tmp_path / "other", "--format", "json", "--strict")
    assert refused.returncode == 2
    assert "line 4: is not JSON" in refused.stderr


def test_a_list_of_bad_rows_is_not_replaced_by_accident(tmp_path, text):
    listed = tmp_path / "out.txt.bad-rows.jsonl"
    listed.write_text("mine")
    result = blockwise(text, tmp_path / "out.txt")
    assert result.returncode == 2
    assert f"{listed}: this file already exists" in result.stderr
    assert listed.read_text() == "mine"
    assert blockwise(text, tmp_path / "out.txt", "--overwrite").returncode == 0
    assert listed.read_text() == ""


def test_a_folder_of_parts(tmp_path, text, in_process):
    out = tmp_path / "out"
    stopped_after_one(text, out, in_process, "--parts", "--format", "json")
    manifest = json.loads((out / "manifest.json").read_text())
    assert not manifest["complete"]
    assert blockwise(text, out, "--parts", "--format", "json").returncode == 0
    manifest = json.loads((out / "manifest.json").read_text())
    assert (manifest["complete"], manifest["blocks"]) == (True, 3)
    joined = b"".join((out / f"part-0000{number}.jsonl").read_bytes() for number in range(3))
    assert joined == local(text, tmp_path / "expected", "--format", "json")
    assert {path.name for path in out.iterdir()} == {
        "manifest.json", *(f"part-0000{number}.{kind}" for number in range(3) for kind in ("jsonl", "done"))
    }  # fmt: skip
    assert blockwise(text, out, "--parts", "--format", "json").returncode == 0
    assert in_process.parsed == [0, 1, 2]
    record = json.loads((out / "part-00002.done").read_text())
    assert record["sentences"] == 2500 - 2048


def test_a_folder_with_other_files_is_left_alone(tmp_path, text):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "part-00000.txt").write_text("mine")
    for options in ((), ("--overwrite",)):
        result = blockwise(text, tmp_path / "mine", "--parts", *options)
        assert result.returncode == 2
        assert "is not empty and does not contain parts" in result.stderr
    (tmp_path / "file").write_text("mine")
    result = blockwise(text, tmp_path / "file", "--parts", "--overwrite")
    assert result.returncode == 2
    assert "--parts writes a folder" in result.stderr
    assert (tmp_path / "mine" / "part-00000.txt").read_text() == (tmp_path / "file").read_text() == "mine"


def test_other_files_in_a_folder_of_parts_survive(tmp_path, text):
    out = tmp_path / "out"
    assert blockwise(text, out, "--parts").returncode == 0
    (out / "notes.txt").write_text("mine")
    assert blockwise(text, out, "--parts", "--overwrite", "--block-size", "4096").returncode == 0
    assert {path.name for path in out.iterdir()} == {"manifest.json", "notes.txt", "part-00000.txt", "part-00000.done"}


def test_an_existing_file_is_not_replaced(tmp_path, text, in_process):
    (tmp_path / "out.txt").write_text("mine")
    result = blockwise(text, tmp_path / "out.txt")
    assert result.returncode == 2
    assert "already exists" in result.stderr
    assert not in_process.parsed


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--format", "svg"), "--format svg is one document"),
        (("--decoder", "sample"), "samples depend on earlier sentences"),
        (("--trees", "in.txt"), "--trees is read from its beginning"),
        (("--constraints", "in.txt"), "give them inline"),
        (("--block-size", "1000"), "multiple of 1,024"),
        (("--format", "parquet"), "multiple of 8,192"),
        (("--resume", "--overwrite"), "exclude each other"),
        (("--split-sentences",), "has not learnt to split prose"),
        (("--column", "body"), "has no columns"),
        (("--decoder", "biased"), "biased"),
    ],
)
def test_options_that_blocks_do_not_support_are_refused(tmp_path, text, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    result = blockwise(text, tmp_path / "out.parquet", *options)
    assert result.returncode == 2
    assert said in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"in.txt"}


def test_a_result_needs_a_file(text):
    result = ramify("parse", "-m", MODEL, text, "--engine", "ray")
    assert result.returncode == 2
    assert "give its name with --out" in result.stderr
    result = ramify("parse", "-m", MODEL, "--engine", "ray", "--out", text.with_name("out.txt"), given="a dog\n")
    assert result.returncode == 2
    assert "standard input and pipes have no blocks; give a file" in result.stderr


def test_a_wrong_column_is_not_a_bad_row(tmp_path, rows):
    result = blockwise(rows, tmp_path / "out.txt", "--column", "content")
    assert result.returncode == 2
    assert "rows.jsonl, line 1: has no column 'content'" in result.stderr
    result = blockwise(rows, tmp_path / "out.txt")
    assert result.returncode == 2
    assert "rows.jsonl, line 1: has no column 'text'" in result.stderr


@pytest.mark.parametrize(
    "option",
    [
        "--workers 2",
        "--cpus-per-worker 2",
        "--gpus-per-worker 0.5",
        "--block-size 1024",
        "--parts",
        "--ray-address auto",
    ],
)
def test_options_of_the_other_engine_are_refused(tmp_path, text, option):
    result = ramify("parse", "-m", MODEL, text, "--out", tmp_path / "out.txt", *option.split())
    assert result.returncode == 2
    assert f"{option.split()[0]} works only with --engine ray" in result.stderr


def test_warnings_of_workers_are_shown_once(tmp_path):
    (tmp_path / "in.txt").write_text("a dog\n" * 1024 + "(S (A the) (B dog))\n" * 2000)
    result = blockwise(tmp_path / "in.txt", tmp_path / "out.txt")
    assert result.returncode == 0
    assert result.stderr.count("note:") == 1
    assert "in.txt, line 1025: this looks like a bracketed tree" in result.stderr


def test_a_block_that_kills_its_workers_is_an_error(tmp_path, text, in_process, monkeypatch):
    """But not a block whose workers were stopped together with the run."""

    def killed(*_: object) -> None:
        raise MemoryError

    out = tmp_path / "out.txt"
    monkeypatch.setattr(BlockParser, "_parsed", killed)
    for _ in range(MAX_TRIES + 1):
        with pytest.raises(MemoryError):
            blockwise(text, out)
    in_process.stop_after, in_process.error = 0, RamifyError("it hangs.")
    assert blockwise(text, out).returncode == 2
    for _ in range(MAX_TRIES):
        parts_of(out).count_try(0)
    in_process.stop_after = -1
    monkeypatch.setattr(Parts, "begin", lambda *_: None)
    result = blockwise(text, out)
    assert result.returncode == 2
    assert "in.txt, rows 1 to 1,024: 4 workers died" in result.stderr


def parts_of(out: Path) -> Parts:
    return Parts(Path(f"{out}.parts"), ".txt", 3, "")
