import hashlib
from pathlib import Path

import pytest

from ramify.corpus.cleaning import WordRule
from ramify.corpus.guessing import guess_kind, is_undecided
from ramify.corpus.lines import read_text_lines
from ramify.corpus.reading import AS_IS, read_sentences, split_paths
from ramify.corpus.tree import parse_of_words
from ramify.errors import RamifyError

TREE = "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .)))\n"


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        TREE,
        "\n\n" + TREE,
        "\ufeff" + TREE,
        "( (S (NP (NN dog))\n   (VP (VBZ barks))) )",
        "((S (NN dog) (VBZ barks)))",
        "(S (NP the dog) barks)",
        "(NN Dogs)\n(NN Cats)\n(S (NN a) (NN b))",
        "(X1 (2 (_ a) (_ b)))",
        "(S (NP (NN dog)) (VP (VBZ barks",
        "(S (NP (NN dog))))",
    ],
)
def test_trees_are_recognised(tmp_path: Path, content: str) -> None:
    path = write(tmp_path / "data", content)
    if content.count("(") == content.count(")"):
        assert read_sentences(path).kind == "brackets"
        assert read_sentences(path).has_trees
    else:
        with pytest.raises(RamifyError, match=r"line \d+: .*(bracket|closed|matching)"):
            read_sentences(path)


@pytest.mark.parametrize(
    "first_line",
    [
        "the dog barks",
        ":-)",
        "( laughter ) he said",
        "( he laughed ) and left",
        "(he laughed)",
        "( see ( smith 2010 ) ) for more",
        "(see (smith 2010)) for more",
        "( ( laughter ) )",
        "((( laughter )))",
        "(: (: hello :)",
        "(",
        ")",
        "( (",
        "\x01 \x1b",
    ],
)
def test_other_files_are_text(tmp_path: Path, first_line: str) -> None:
    corpus = read_sentences(write(tmp_path / "data", f"{first_line}\nThe dog barks .\n"))
    assert (corpus.kind, corpus.has_trees) == ("text", False)
    assert corpus.parses == [parse_of_words(first_line.split()), parse_of_words(["The", "dog", "barks", "."])]


def test_the_kind_can_be_given(tmp_path: Path) -> None:
    assert read_sentences(write(tmp_path / "trees", TREE), kind="text").parses[0].words[0] == "(TOP"
    with pytest.raises(RamifyError, match="line 1: 'the' is outside"):
        read_sentences(write(tmp_path / "text", "the dog"), kind="brackets")
    with pytest.raises(RamifyError, match="html"):
        read_sentences(tmp_path / "text", kind="html")  # type: ignore[arg-type]


def test_text_is_split_at_white_space_alone_and_blank_lines_are_counted(tmp_path: Path) -> None:
    content = "\ufeffthe  dog\tbarks.\r\n\n \t\r\ndon't\u00a0stop\u2028now\n"
    corpus = read_sentences(write(tmp_path / "data", content))
    assert [parse.words for parse in corpus.parses] == [("the", "dog", "barks."), ("don't", "stop", "now")]
    assert corpus.dropped == {"blank lines": 2}
    assert corpus.checksum == hashlib.sha256(content.encode()).hexdigest()
    assert corpus.source == str(tmp_path / "data")


def test_streamed_lines_keep_their_places() -> None:
    sentences = list(AS_IS.sentences(read_text_lines([b"a b\n", b"\n", b"c"], "stdin"), "stdin"))
    assert [sentence.tokens for sentence in sentences] == [("a", "b"), (), ("c",)]
    assert sentences[2].where == "stdin, line 3"
    with pytest.raises(RamifyError, match=r"stdin, line 2: .*iconv"):
        list(read_text_lines([b"a b\n", b"caf\xe9\n"], "stdin"))


@pytest.mark.parametrize("before", ["(S (NN a) (NN b))\n", "a b\n"])
def test_other_encodings_are_refused_by_line(tmp_path: Path, before: str) -> None:
    path = write(tmp_path / "latin", before.encode() * 2 + b"(S (NN caf\xe9) (NN a))\n")
    with pytest.raises(RamifyError, match=r"latin, line 3: .*UTF-8"):
        read_sentences(path)
    with pytest.raises(RamifyError, match="line 1"):
        read_sentences(write(tmp_path / "utf16", "the dog\n".encode("utf-16")))


@pytest.mark.parametrize("content", [b"", b"\n \n\t\n", b"\xef\xbb\xbf"])
def test_files_without_sentences_are_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(RamifyError, match="empty: contains no sentences"):
        read_sentences(write(tmp_path / "empty", content))


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RamifyError, match="nowhere: does not exist"):
        read_sentences(tmp_path / "nowhere")
    with pytest.raises(RamifyError, match="nowhere: does not exist"):
        split_paths(tmp_path / "nowhere")
    with pytest.raises(RamifyError, match="is empty"):
        read_sentences(tmp_path)


def test_a_folder_is_read_whole_in_order_without_hidden_files(tmp_path: Path) -> None:
    for name in ["02/b.mrg", "02/a.mrg", "01/c.mrg", ".hidden", ".git/x", "02/.a.mrg.swp"]:
        write(tmp_path / name, f"( (S (NN {name}) (NN x)) )\n")
    corpus = read_sentences(tmp_path)
    assert [parse.words[0] for parse in corpus.parses] == ["01/c.mrg", "02/a.mrg", "02/b.mrg"]
    assert corpus.kind == "brackets"
    ordered = b"".join((tmp_path / name).read_bytes() for name in ["01/c.mrg", "02/a.mrg", "02/b.mrg"])
    assert corpus.checksum == hashlib.sha256(ordered).hexdigest()


def test_trees_and_text_do_not_mix(tmp_path: Path) -> None:
    write(tmp_path / "a.trees", TREE)
    write(tmp_path / "README", "about these trees\n")
    with pytest.raises(RamifyError, match=r"a\.trees contains trees and README text"):
        read_sentences(tmp_path)


def test_the_caller_chooses_train_dev_or_test(tmp_path: Path) -> None:
    for name in [
        "train.French.ptb",
        "valid.txt",
        "test.trees",
        "train5k.French.ptb",
        "README.md",
        ".train.swp",
    ]:
        write(tmp_path / name, f"(S (NN {name}) (NN x))\n")
    assert {split: path.name for split, path in split_paths(tmp_path).items()} == {
        "train": "train.French.ptb",
        "dev": "valid.txt",
        "test": "test.trees",
    }
    assert read_sentences(tmp_path, split="dev").parses[0].words[0] == "valid.txt"
    with pytest.raises(RamifyError, match="test, train, dev files; give one"):
        read_sentences(tmp_path)
    write(tmp_path / "dev.txt", "a b\n")
    with pytest.raises(RamifyError, match=r"dev\.txt and valid\.txt"):
        split_paths(tmp_path)


def test_a_missing_split_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "train.txt", "a b\n")
    with pytest.raises(RamifyError, match="no dev file"):
        read_sentences(tmp_path, split="dev")


def test_sentences_left_out_are_counted_by_reason(tmp_path: Path) -> None:
    trees = ["(S (. .))", "(S (NN a) (. .))", "(S (NN a) (NN b) (. .))", "(S (NN a) (NN b) (NN c))"]
    corpus = read_sentences(write(tmp_path / "data", "\n".join([TREE, *trees])))
    kept = corpus.words_only(WordRule.from_name("ptb")).of_lengths(2, 2)
    assert [parse.words for parse in kept.parses] == [("a", "b")]
    assert kept.dropped == {"without words": 1, "under 2 words": 1, "over 2 words": 2}
    assert len(corpus) == 5
    assert not corpus.dropped


def test_unreadable_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    path = write(tmp_path / "secret", "a b")
    monkeypatch.setattr("ramify.corpus.lines.FileIO", refuse)
    with pytest.raises(RamifyError, match="secret: cannot be read"):
        read_sentences(path)


@pytest.mark.parametrize(
    "trees",
    [
        b"(S (NP (DT the) (NN dog)) (VP (VBZ barks)))\n",
        b"\n( (S (NP the dog)\n  (VP barks)) )\n",
        b"(UH yes)\n(, ,) (S (A a) (B b)) (C c)\n",
        b"(S\n(A\na b)\n)\n",
    ],
)
def test_no_part_of_a_tree_is_guessed_to_be_text(trees):
    assert guess_kind(trees) == "brackets"
    assert not is_undecided(trees)
    for size in range(len(trees)):
        assert is_undecided(trees[:size]) or guess_kind(trees[:size]) == "brackets"


@pytest.mark.parametrize("text", [b"a", b"( see", b"(he said so", b"(see)", b"( ( smith", b"(S (A a) (B b)) is a tree"])
def test_text_is_recognised_immediately(text):
    assert guess_kind(text) == "text"
    assert not is_undecided(text)


def test_lines_may_end_with_carriage_returns_alone():
    assert list(read_text_lines([b"\xef\xbb\xbfa b\rc d\r"], "old")) == ["a b\n", "c d\n"]
    assert list(read_text_lines([b"a\rb\r\n", b"c\rd"], "mixed")) == ["a\rb\r\n", "c\rd"]
