"""The prepared folder: its rule for words, overwriting, errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from ramify.corpus.cleaning import PTB_WORDS, WordRule
from ramify.corpus.prepare import prepare_treebank
from ramify.corpus.prepare.manifest import manifest_word_rule, word_rule_for
from ramify.corpus.reading import read_sentences
from ramify.errors import RamifyError
from tests.corpus.prepare.common import tree, twenty, words_of, write


def test_the_user_is_asked_to_confirm_the_guess(tmp_path):
    source = twenty(tmp_path / "some.trees")
    asked: list[WordRule] = []
    with pytest.raises(RamifyError, match="--punctuation-tags"):
        prepare_treebank("brackets", source, tmp_path / "out", confirm=lambda rule, _: bool(asked.append(rule)))
    assert asked == [PTB_WORDS]
    assert not (tmp_path / "out").exists()
    reported = prepare_treebank(
        "brackets", source, tmp_path / "out", punctuation_tags="VBZ .", confirm=lambda *_: pytest.fail("asked")
    )
    assert reported.word_rule == WordRule.from_name(". VBZ")


def test_a_prepared_folder_has_its_rule(tmp_path):
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
    with pytest.raises(RamifyError, match=r"manifest\.json: the rule for words"):
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
        (("brackets", None, "out"), "brackets treebank is missing"),
        (("brackets", "nowhere", "out"), "nowhere: does not exist"),
        (("brackets", "empty", "out"), "empty: this folder is empty"),
        (("wsj", "nowhere", "out"), "nowhere: does not exist"),
        (("wsj", "empty", "out"), "wsj_0200.mrg"),
        (("ctb", "empty", "out"), "chtb_001.fid"),
        (("spmrl", "empty", "out"), "train.French.gold.ptb"),
        (("nltk:treebank", "some.trees", "out"), "leave out the path"),
        (("nltk:nothing", None, "out"), "no treebank of this name"),
        (("nltk:reader", None, "out"), "no treebank of this name"),
    ],
)
def test_missing_files_are_named(tmp_path, monkeypatch, arguments, complaint):
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


@pytest.mark.parametrize("name", [".", "link"])
def test_the_folder_may_be_this_one_or_a_link(tmp_path, monkeypatch, name):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / ("empty" if name == "link" else "elsewhere"))
    prepare_treebank("brackets", twenty(tmp_path / "some.trees"), name)
    names = {path.name for path in (tmp_path / "elsewhere").iterdir()}
    assert names == {"train.trees", "dev.trees", "test.trees", "manifest.json"}
