"""Preparing any bracket files: splits, corrupt trees, the manifest, what is refused."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import nltk
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.corpus.cleaning import PTB_WORDS, WordRule
from ramify.corpus.prepare import prepare_treebank
from ramify.corpus.prepare.manifest import manifest_word_rule, word_rule_for
from ramify.corpus.prepare.passages import at_margin, trees_begun
from ramify.corpus.prepare.splitting import block_splits, shares_from, split_files
from ramify.corpus.reading import SPLITS, read_sentences
from ramify.errors import RamifyError


def tree(word: str) -> str:
    return f"(TOP (S (NP (NN {word})) (VP (VBZ barks)) (. .)))"


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def manifest_of(out: Path) -> dict:
    return json.loads((out / "manifest.json").read_text(encoding="utf-8"))


def words_of(out: Path, split: str) -> list[str]:
    return [parse.words[0] for parse in read_sentences(out, split=split).parses]


def twenty(path: Path) -> Path:
    return write(path, "".join(tree(f"w{i}") + "\n" for i in range(20)))


def test_a_file_is_dealt_out_by_blocks(tmp_path):
    source = twenty(tmp_path / "some.trees")
    prepared = prepare_treebank("brackets", source, tmp_path / "out")
    assert words_of(tmp_path / "out", "train") == [f"w{i}" for i in range(16)]
    assert words_of(tmp_path / "out", "dev") == ["w16", "w17"]
    assert words_of(tmp_path / "out", "test") == ["w18", "w19"]
    assert (tmp_path / "out" / "dev.trees").read_text() == tree("w16") + "\n" + tree("w17") + "\n"
    assert prepared.word_rule == PTB_WORDS
    manifest = manifest_of(tmp_path / "out")
    assert manifest["inputs"] == {"some.trees": hashlib.sha256(source.read_bytes()).hexdigest()}
    for name, checksum in manifest["outputs"].items():
        assert hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == checksum
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "some.trees"]


def test_blocks_of_fifty_in_the_proportion_asked_for():
    splits = block_splits(1200, (8, 1, 1))
    assert [splits.count(name) for name in SPLITS] == [1000, 100, 100]
    assert splits[399:401] == ["train", "dev"]
    assert splits[499:501] == ["test", "train"]
    assert shares_from("80/10/10") == (8, 1, 1)
    assert shares_from("train=a dev=b test=c") is None
    for wrong in ("80/20/0", "0/0/0"):
        with pytest.raises(RamifyError, match="empty"):
            shares_from(wrong)
    with pytest.raises(RamifyError, match="too few"):
        block_splits(9, (8, 1, 1))


def test_files_by_name():
    names = ["00/a.mrg", "00/b.mrg", "22/c.mrg", "23/d.mrg", "24/e.mrg"]
    assert split_files(names, "train=00/a.mrg,00/b* dev=22/* test=23/*") == dict(
        zip(names, ["train", "train", "dev", "test"], strict=False)
    )
    for wrong, complaint in [
        ("train=00/* dev=99/* test=23/*", "99"),
        ("train=0*", None),
        ("train=*/a.mrg dev=00/*", "00/a.mrg into train and dev"),
        ("80-10-10", "80-10-10"),
        ("train=a train=b", "train=b"),
    ]:
        if complaint is None:
            assert split_files(names, wrong) == {"00/a.mrg": "train", "00/b.mrg": "train"}
            continue
        with pytest.raises(RamifyError, match=complaint):
            split_files(names, wrong)


def test_a_folder_keeps_its_own_split_and_says_what_it_left_out(tmp_path):
    for name in ("train.trees", "valid.trees", "test.mrg", "more.trees"):
        write(tmp_path / "in" / name, tree(name))
    prepared = prepare_treebank("brackets", tmp_path / "in", tmp_path / "out")
    assert [words_of(tmp_path / "out", name) for name in SPLITS] == [["train.trees"], ["valid.trees"], ["test.mrg"]]
    assert list(prepared.source.unused) == ["more.trees"]
    assert manifest_of(tmp_path / "out")["files_of_no_split"] == ["more.trees"]
    prepare_treebank("brackets", tmp_path / "in", tmp_path / "in" / "out", split="train=[mt]*s dev=v* test=test.*")
    assert words_of(tmp_path / "in" / "out", "train") == ["more.trees", "train.trees"]
    # What was prepared below the source is no part of it.
    prepare_treebank(
        "brackets", tmp_path / "in", tmp_path / "in" / "out", split="train=*train* dev=v* test=t*.mrg", overwrite=True
    )
    assert words_of(tmp_path / "in" / "out", "train") == ["train.trees"]


def test_traces_go_with_their_constituents_and_punctuation_stays(tmp_path):
    traced = "( (S (NP-SBJ (-NONE- *T*-1)) (VP (VBZ barks) (NP (-NONE- *)) (NP (NN it)))) (. .) )"
    lines = [traced, "( (S (NP (-NONE- *))) )", *(tree(f"w{i}") for i in range(18))]
    prepared = prepare_treebank("brackets", write(tmp_path / "some", "\n".join(lines)), tmp_path / "out")
    first = (tmp_path / "out" / "train.trees").read_text().splitlines()[0]
    assert first == "(TOP (S (VP (VBZ barks) (NP (NN it)))) (. .))"
    train = prepared.splits["train"]
    assert (train.trees_in, len(train.kept), dict(train.dropped)) == (16, 15, {"nothing but traces": 1})
    assert dict(train.removed) == {"traces": 2, "constituents of traces alone": 2}


BROKEN = {
    "never closed": "(TOP (S (NN a)",
    "closes no bracket": "(TOP (S (NN a))))",
    "holds no word": "(TOP (S (NP) (NN a)))",
    "stands outside": "(TOP (S (NN a))) dog",
    "not UTF-8": b"(TOP (S (NN caf\xe9) (NN b)))",
}


@pytest.mark.parametrize("complaint", BROKEN)
def test_a_corrupt_tree_is_named_and_counted_and_the_rest_is_read(tmp_path, complaint):
    broken = BROKEN[complaint]
    broken = broken if isinstance(broken, bytes) else broken.encode()
    good = [tree(f"w{i}").encode() for i in range(19)]
    source = write(tmp_path / "some.trees", b"\n".join([*good[:4], broken, *good[4:]]))
    told: list[str] = []
    prepared = prepare_treebank("brackets", source, tmp_path / "out", on_corrupt=told.append)
    assert len(told) == 1
    assert told[0].startswith("some.trees, line 5: ")
    assert complaint in told[0]
    assert manifest_of(tmp_path / "out")["corrupt"] == told
    assert manifest_of(tmp_path / "out")["splits"]["train"] == {
        "trees_in": 16, "trees_out": 15, "dropped": {"corrupt": 1}, "removed_from_trees": {},
    }  # fmt: skip
    assert sum(len(split.kept) for split in prepared.splits.values()) == 19
    with pytest.raises(RamifyError, match="line 5"):
        prepare_treebank("brackets", source, tmp_path / "strict", strict=True)
    assert not (tmp_path / "strict").exists()


def test_every_tree_lost_with_a_corrupt_one_is_counted(tmp_path):
    lines = [tree("a") + tree("b") + ")" + tree("c"), *(tree(f"w{i}") for i in range(17))]
    prepared = prepare_treebank("brackets", write(tmp_path / "some", "\n".join(lines)), tmp_path / "out")
    train = prepared.splits["train"]
    assert (train.trees_in, len(train.kept), train.dropped["corrupt"]) == (16, 13, 3)
    assert trees_begun(b") (a (b) c) (d ()") == 2
    assert trees_begun(b"(a)) (b) (c)") == 3
    assert trees_begun(b"words alone") == 0


def test_trees_that_go_on_at_the_margin_are_read_as_they_are(tmp_path):
    source = write(tmp_path / "some", "\n".join(["(TOP", "(S (NN a)", "(NN b)))"] * 10))
    prepared = prepare_treebank("brackets", source, tmp_path / "out")
    assert sum(len(split.kept) for split in prepared.splits.values()) == 10


def test_passages_begin_at_the_margin():
    data = b"\xef\xbb\xbf(A\n b)\n\n(C d)\n x (E f)\n(G"
    assert list(at_margin(data)) == [(1, b"\xef\xbb\xbf(A\n b)\n\n"), (4, b"(C d)\n x (E f)\n"), (6, b"(G")]
    assert list(at_margin(b"\n\n(A b)")) == [(3, b"(A b)")]
    assert list(at_margin(b" \n")) == []
    assert list(at_margin(b"dog")) == [(1, b"dog")]


pieces = st.sampled_from(
    [tree("a"), "(S (-NONE- *))", "(TOP", "(NN b)", ")", "(", "x", "\n", "\n(S", " ", "\xff", "(S ())"]
)


@given(st.lists(pieces, max_size=20))
def test_nothing_disappears(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("prepare")
    good = "".join(tree(f"w{i}") + "\n" for i in range(30))
    content = good.encode() + "".join(lines).encode("latin-1") + b"\n" + good.encode()
    prepared = prepare_treebank("brackets", write(folder / "some", content), folder / "out", split="2/1/1")
    splits = manifest_of(folder / "out")["splits"]
    for name, split in splits.items():
        assert split["trees_in"] == split["trees_out"] + sum(split["dropped"].values())
        assert len(read_sentences(folder / "out", split=name)) == split["trees_out"]
    assert 59 <= sum(len(split.kept) for split in prepared.splits.values()) <= 60 + 2 * len(lines)


def test_the_guess_is_put_to_the_question(tmp_path):
    source = twenty(tmp_path / "some.trees")
    asked: list[WordRule] = []
    with pytest.raises(RamifyError, match="--punctuation-tags"):
        prepare_treebank("brackets", source, tmp_path / "out", confirm=lambda rule, _: bool(asked.append(rule)))
    assert asked == [PTB_WORDS]
    assert not (tmp_path / "out").exists()
    told = prepare_treebank(
        "brackets", source, tmp_path / "out", punctuation_tags="VBZ .", confirm=lambda *_: pytest.fail("asked")
    )
    assert told.word_rule == WordRule.from_name(". VBZ")


def test_a_prepared_folder_brings_its_rule(tmp_path):
    out = tmp_path / "out"
    prepare_treebank("brackets", twenty(tmp_path / "some.trees"), out, punctuation_tags="VBZ")
    rule = WordRule.from_name("VBZ")
    assert manifest_word_rule(out) == manifest_word_rule(out / "dev.trees") == rule
    assert word_rule_for(read_sentences(out, split="dev")) == rule
    assert word_rule_for(read_sentences(out / "test.trees")) == rule
    write(out / "other.trees", tree("a"))
    assert manifest_word_rule(out / "other.trees") is None
    assert manifest_word_rule(out / "nowhere") is None
    assert word_rule_for(read_sentences(tmp_path / "some.trees")) == PTB_WORDS
    for content in ("{", "[]", '{"words": "PU"}', "[" * 100_000):
        write(out / "manifest.json", content)
        assert manifest_word_rule(out) is None
    write(out / "manifest.json", '{"made_by": "ramify prepare", "words": 3}')
    with pytest.raises(RamifyError, match=r"manifest\.json: does not say"):
        manifest_word_rule(out)
    write(out / "manifest.json", '{"made_by": "ramify prepare", "outputs": 3}')
    assert manifest_word_rule(out / "dev.trees") is None


def test_only_what_was_prepared_is_overwritten(tmp_path):
    source, out = twenty(tmp_path / "some.trees"), tmp_path / "deep" / "out"
    out.mkdir(parents=True)
    prepare_treebank("brackets", source, out)
    write(out / "mine.txt", "notes")
    with pytest.raises(RamifyError, match="not empty"):
        prepare_treebank("brackets", source, out)
    write(source, source.read_text().replace("w0", "changed"))
    prepare_treebank("brackets", source, out, overwrite=True)
    assert words_of(out, "train")[0] == "changed"
    assert (out / "mine.txt").read_text() == "notes"
    assert len(list(out.iterdir())) == 5
    write(tmp_path / "else" / "manifest.json", "{}")
    with pytest.raises(RamifyError, match="not made by"):
        prepare_treebank("brackets", source, tmp_path / "else", overwrite=True)
    with pytest.raises(RamifyError, match="is a file"):
        prepare_treebank("brackets", out, source)
    with pytest.raises(RamifyError, match="treebank itself"):
        prepare_treebank("brackets", out, out, overwrite=True)


def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    real = Path.write_bytes

    def full_disk(path: Path, content: bytes) -> int:
        if path.name == "test.trees":
            raise OSError(28, "No space left on device")
        return real(path, content)

    source = twenty(tmp_path / "some.trees")
    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(RamifyError, match="No space left"):
        prepare_treebank("brackets", source, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["some.trees"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("html", "some.trees", "out"), "html"),
        (("brackets", None, "out"), "Say where"),
        (("brackets", "nowhere", "out"), "no such file"),
        (("brackets", "empty", "out"), "no files"),
        (("wsj", "nowhere", "out"), "no such folder"),
        (("wsj", "empty", "out"), "wsj_0200.mrg"),
        (("ctb", "empty", "out"), "chtb_001.fid"),
        (("spmrl", "empty", "out"), "train.French.gold.ptb"),
        (("nltk:treebank", "some.trees", "out"), "leave out the path"),
        (("nltk:nothing", None, "out"), "no treebank of this name"),
        (("nltk:reader", None, "out"), "no treebank of this name"),
    ],
)
def test_what_cannot_be_found_is_named(tmp_path, monkeypatch, arguments, complaint):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    twenty(tmp_path / "some.trees")
    with pytest.raises(RamifyError, match=complaint):
        prepare_treebank(*arguments)
    assert not (tmp_path / "out").exists()


def test_options_of_another_kind_are_refused(tmp_path):
    for options in ({"split": "80/10/10"}, {"punctuation_tags": "PU"}, {"language": "french"}):
        with pytest.raises(RamifyError, match="leave out"):
            prepare_treebank("wsj", tmp_path, tmp_path / "out", **options)


@pytest.fixture
def nltk_data(tmp_path, monkeypatch):
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path / "nltk_data")])
    yield tmp_path / "nltk_data" / "corpora"
    for name in ("treebank", "sinica_treebank", "floresta"):
        getattr(nltk.corpus, name)._unload()


def test_treebanks_of_nltk(tmp_path, nltk_data):
    with pytest.raises(RamifyError, match=r"python -m nltk.downloader treebank"):
        prepare_treebank("nltk:treebank", None, tmp_path / "out")
    for number in range(10):
        write(nltk_data / "treebank" / "combined" / f"wsj_000{number}.mrg", f"\n( {tree(f'w{number}')} )\n( (S (NP)\n")
    prepared = prepare_treebank("nltk:treebank", None, tmp_path / "out")
    assert prepared.word_rule == PTB_WORDS
    assert words_of(tmp_path / "out", "test") == ["w9"]
    assert prepared.splits["train"].dropped["corrupt"] == 8
    assert manifest_of(tmp_path / "out")["corrupt"][0].startswith("wsj_0000.mrg, line 3: ")


def test_treebanks_that_nltk_keeps_zipped_and_with_comments(tmp_path, nltk_data):
    nltk_data.mkdir(parents=True)
    with zipfile.ZipFile(nltk_data / "floresta.zip", "w") as archive:
        archive.writestr("floresta/floresta.ptb", ("# a comment\n" + "(S (N é) (V b))\n# (S\n" * 10).encode("latin-1"))
    prepared = prepare_treebank("nltk:floresta", None, tmp_path / "out", strict=True)
    assert sum(split.trees_in for split in prepared.splits.values()) == 10
    assert words_of(tmp_path / "out", "dev") == ["é"]


def test_treebanks_that_nltk_keeps_in_another_form(tmp_path, nltk_data):
    line = "#1:1.[0] NP(property:Nba:嘉珍|Head:VC2:住)#。(PERIODCATEGORY)\n"
    write(nltk_data / "sinica_treebank" / "parsed", line * 10)
    prepared = prepare_treebank("nltk:sinica_treebank", None, tmp_path / "out")
    assert read_sentences(tmp_path / "out", split="dev").parses[0].words == ("嘉珍", "住")
    assert sum(split.trees_in for split in prepared.splits.values()) == 10


def ramify(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ramify", *map(str, arguments)]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def test_the_command_says_what_it_decided_skipped_and_counted(tmp_path):
    lines = [*["(S (N a)"] * 22, *(f"(S (N w{i}) (V b) (PONCT .) (PONCT «))" for i in range(48))]
    write(tmp_path / "some.trees", "\n".join(lines))
    result = ramify("prepare", "brackets", tmp_path / "some.trees", "--out", tmp_path / "out", "--split", "8/1/1")
    assert result.returncode == 0, result.stderr
    assert "PONCT (. «)" in result.stderr
    assert "skipped: some.trees, line 1: " in result.stderr
    assert "line 20" in result.stderr
    assert "line 21" not in result.stderr
    assert "2 more" in result.stderr
    assert "Words by the rule: PONCT" in result.stderr
    assert not result.stdout
    again = ramify("prepare", "brackets", tmp_path / "some.trees", "--out", tmp_path / "strict", "--strict")
    assert again.returncode == 2
    assert again.stderr.startswith("error: some.trees, line 1: ")
    assert len(again.stderr.splitlines()) == 1
    scored = ramify("evaluate", "--baseline", "right", tmp_path / "out" / "test.trees")
    assert "PONCT" in scored.stdout
