"""Train, dev and test of treebanks without a standard split."""

from __future__ import annotations

import hashlib

import pytest

from ramify.corpus.cleaning import PTB_WORDS
from ramify.corpus.prepare import prepare_treebank
from ramify.corpus.prepare.data_splits import block_splits, read_shares, split_files
from ramify.corpus.reading import SPLITS
from ramify.errors import RamifyError
from tests.corpus.prepare.common import manifest_of, tree, twenty, words_of, write


def test_a_file_is_divided_by_blocks(tmp_path):
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


def test_blocks_of_fifty_in_the_requested_proportion():
    splits = block_splits(1200, (8, 1, 1))
    assert [splits.count(name) for name in SPLITS] == [1000, 100, 100]
    assert splits[399:401] == ["train", "dev"]
    assert splits[499:501] == ["test", "train"]
    assert read_shares("80/10/10") == (8, 1, 1)
    assert read_shares("train=a dev=b test=c") is None
    for wrong in ("80/20/0", "0/0/0"):
        with pytest.raises(RamifyError, match="empty"):
            read_shares(wrong)
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


def test_a_folder_keeps_its_split_and_reports_unused_files(tmp_path):
    for name in ("train.trees", "valid.trees", "test.mrg", "more.trees"):
        write(tmp_path / "in" / name, tree(name))
    prepared = prepare_treebank("brackets", tmp_path / "in", tmp_path / "out")
    assert [words_of(tmp_path / "out", name) for name in SPLITS] == [["train.trees"], ["valid.trees"], ["test.mrg"]]
    assert list(prepared.source.unused) == ["more.trees"]
    assert manifest_of(tmp_path / "out")["files_of_no_split"] == ["more.trees"]
    prepare_treebank("brackets", tmp_path / "in", tmp_path / "in" / "out", split="train=[mt]*s dev=v* test=test.*")
    assert words_of(tmp_path / "in" / "out", "train") == ["more.trees", "train.trees"]
    # A folder prepared inside the source is not part of the source.
    prepare_treebank(
        "brackets", tmp_path / "in", tmp_path / "in" / "out", split="train=*train* dev=v* test=t*.mrg", overwrite=True
    )
    assert words_of(tmp_path / "in" / "out", "train") == ["train.trees"]
