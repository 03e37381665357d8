"""Treebanks from NLTK's data folder."""

from __future__ import annotations

import zipfile

import nltk
import pytest

from ramify.corpus.cleaning import PTB_WORDS
from ramify.corpus.prepare import prepare_treebank
from ramify.corpus.reading import read_sentences
from ramify.errors import RamifyError
from tests.corpus.prepare.common import manifest_of, tree, words_of, write


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
