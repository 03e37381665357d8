"""CoNLL-U: tokens, punctuation, heads, and errors in damaged files."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.corpus.cleaning import ALL_WORDS
from ramify.corpus.conllu import read_conllu
from ramify.corpus.guessing import guess_kind, is_undecided
from ramify.corpus.punctuation import Punctuation
from ramify.corpus.reading import TEXT_WORDS, read_sentences
from ramify.corpus.streaming import SentenceStream
from ramify.corpus.text import TextRules
from ramify.errors import RamifyError, RamifyWarning
from ramify.training.data import prepare
from ramify.training.settings import Settings
from tests.command import ramify

GOOD = """\
# sent_id = 1
# text = Il parle du film.
1	Il	il	PRON	_	_	2	nsubj	_	_
2	parle	parler	VERB	_	_	0	root	_	_
2.1	parle	parler	VERB	_	_	_	_	0:root	_
3-4	du	_	_	_	_	_	_	_	_
3	de	de	ADP	_	_	5	case	_	_
4	le	le	DET	_	_	5	det	_	_
5	film	film	NOUN	_	_	2	obl	_	SpaceAfter=No
6	.	.	PUNCT	_	_	2	punct	_	_

# sent_id = 2
1	Oui	oui	INTJ	_	_	0	root	_	_
2	-	-	SYM	_	_	1	dep	_	_
3	%	%	PUNCT	_	_	1	punct	_	_
4	;	;	_	_	_	1	_	_	_

"""


def word(identity: object, form: str = "a", head: object = 0, upos: str = "X") -> str:
    return f"{identity}\t{form}\t_\t{upos}\t_\t_\t{head}\t_\t_\t_\n"


def sentences(text: str) -> list:
    return list(read_conllu(text.splitlines(keepends=True), "file"))


def test_tokens_are_the_syntactic_words():
    first, second = sentences(GOOD)
    assert first.forms == ("Il", "parle", "de", "le", "film", ".")
    assert first.head_numbers() == (2, 0, 5, 5, 2, 2)
    assert second.forms == ("Oui", "-", "%", ";")
    assert (first.where, second.where) == ("file, line 3", "file, line 13")


def test_empty_nodes_are_counted_after_each_word():
    (found,) = sentences(word("0.1") + word(1) + word("1.1") + word("1.2") + word(2, head=1) + word("2.1") + "\n")
    assert found.head_numbers() == (0, 1)


def test_upos_marks_punctuation_and_without_it_the_text_rule_decides():
    second = sentences(GOOD)[1]
    assert second.with_words(Punctuation()).is_word == (True, True, False, False)
    assert second.with_words(Punctuation(never=frozenset(";"))).is_word == (True, True, False, True)
    assert second.with_words(Punctuation(keep=True)).is_word == (True,) * 4


def test_white_space_inside_a_form_does_not_break_the_word():
    (found,) = sentences(word(1, "10 000") + word(2, "a\u2009b", 1) + "\n")
    assert found.forms == ("10\u00a0000", "a\u2009b")


BAD_WORDS = {
    "tabs lost": ("1 a _ X _ _ 0 _ _ _\n\n", "file, line 1: this line has no tabs, but CoNLL-U has 10 columns"),
    "a column lost": (word(1) + "2\ta\t_\tX\t_\t_\t0\t_\t_\n\n", "file, line 2: this line has 9 columns"),
    "broken ID": (word("1a") + "\n", "file, line 1: the ID '1a' is not a number such as 3"),
    "a word missing": (word(1) + word(3) + "\n", "file, line 2: the word has the ID 3 instead of 2"),
    "blank line missing": (
        word(1) + "# text = b\n" + word(1) + "\n",
        "file, line 3: the word has the ID 1 instead of 2",
    ),
    "counted from 0": (word(0) + word(1) + "\n", "file, line 1: the word has the ID 0 instead of 1"),
    "overlapping ranges": (
        word("1-2") + word(1) + word("2-3") + word(2) + word(3) + "\n",
        "file, line 3: the range 2-3 overlaps the one in line 1, which ends with word 2",
    ),
    "range too late": (word(1) + word("1-2") + word(2) + "\n", "file, line 2: the range 1-2 must begin with word 2"),
    "range backwards": (word("1-0") + word(1) + "\n", "file, line 1: the range 1-0 must begin with word 1"),
    "range beyond the end": (
        word("1-3") + word(1) + "\n",
        "file, line 1: the range ends with word 3, but the sentence",
    ),
    "empty node astray": (word(1) + word("2.1") + "\n", "file, line 2: the empty node 2.1 must have the ID 1.1"),
    "empty form": (word(1, "") + "\n", "file, line 1: the FORM of word 1 is empty"),
    "blank form": (word(1, " ") + "\n", "file, line 1: the FORM of word 1 is empty"),
    "text withheld": (word(1, "_") + word(2, "_") + "\n", "file, line 1: all forms of the sentence are _"),
    "no words": ("\n\n# sent_id = 1\n\n", "file, line 3: the sentence that begins here has no words"),
    "a range alone": (word("1-2") + "\n", "file, line 1: the sentence that begins here has no words"),
    "other columns": ("# global.columns = ID FORM\n1\ta\n", "file, line 1: the columns are not the ten of CoNLL-U"),
    "an ID of many digits": (word("9" * 5000) + "\n", "is not a number such as 3"),
}


@pytest.mark.parametrize("name", BAD_WORDS)
def test_damaged_words_are_reported_with_their_line(name):
    text, message = BAD_WORDS[name]
    with pytest.raises(RamifyError, match=message.replace("(", r"\(")) as raised:
        sentences(text)
    assert len(str(raised.value)) < 250
    assert "\n" not in str(raised.value)


BAD_HEADS = {
    "no head": (word(1) + word(2, "b", "_"), "file, line 2: 'b' has no head"),
    "empty head": (word(1) + word(2, "b", ""), "file, line 2: 'b' has no head"),
    "not a number": (word(1) + word(2, "b", "a"), "file, line 2: the HEAD 'a' is not a number"),
    "negative": (word(1) + word(2, "b", -1), "file, line 2: the HEAD '-1' is not a number"),
    "other digits": (word(1) + word(2, "b", "\u0661"), "is not a number"),
    "beyond the sentence": (word(1) + word(2, "b", 3), "file, line 2: the HEAD 3 is outside the sentence, which has 2"),
    "own head": (word(1) + word(2, "b", 2), "file, line 2: 'b' is its own head"),
    "two roots": (word(1) + word(2, "b"), "file, line 2: 'b' is a second root, after 'a' in line 1"),
    "cycle": (
        word(1) + word(2, "b", 4) + word(3, "c", 2) + word(4, "d", 3),
        "file, line 2: the heads form a cycle, 'b' -> 'd' -> 'c' and back",
    ),
    "no root": (word(1, "a", 2) + word(2, "b", 1), "file, line 1: the heads form a cycle, 'a' -> 'b' and back"),
}


@pytest.mark.parametrize("name", BAD_HEADS)
def test_heads_are_checked_where_they_are_used(name):
    text, message = BAD_HEADS[name]
    (found,) = sentences(text + "\n")
    assert all(found.with_words(Punctuation()).is_word)
    with pytest.raises(RamifyError, match=message) as raised:
        found.head_numbers()
    assert len(str(raised.value)) < 250


@given(st.lists(st.integers(0, 7), min_size=1, max_size=7))
def test_heads_are_accepted_exactly_if_every_word_reaches_the_one_root(heads):
    (found,) = sentences("".join(word(n, head=head) for n, head in enumerate(heads, start=1)) + "\n")

    def reaches_root(place: int) -> bool:
        for _ in heads:
            place = heads[place - 1] if 0 < place <= len(heads) else place
        return place == 0

    valid = heads.count(0) == 1 and all(reaches_root(place) for place in range(1, len(heads) + 1))
    try:
        assert found.head_numbers() == tuple(heads)
        accepted = True
    except RamifyError:
        accepted = False
    assert accepted == valid


def test_a_file_without_a_last_blank_line_is_read_and_reported():
    with pytest.warns(RamifyWarning, match="file, line 2: no blank line follows the last sentence"):
        assert len(sentences(word(1) + word(2, head=1))) == 1


def test_blank_lines_carriage_returns_and_comments_alone_do_no_harm():
    text = "\n# newdoc\n\n" + GOOD.replace("\n", "\r\n") + "\r\n"
    assert [each.forms for each in sentences(text)] == [each.forms for each in sentences(GOOD)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_files_are_recognised_and_streamed_as_they_are_read(tmp_path: Path, pack):
    file = tmp_path / "file"
    file.write_bytes(pack(GOOD.encode()))
    corpus = read_sentences(file, text_rules=TextRules())
    assert (corpus.kind, corpus.has_trees) == ("conllu", False)
    streamed = list(SentenceStream(file, "auto", TextRules(), ALL_WORDS))
    assert [sentence.tokens for sentence in streamed] == [parse.words for parse in corpus.parses]
    assert [sentence.words for sentence in streamed] == [parse.words for parse in corpus.words_only(TEXT_WORDS).parses]
    assert streamed[1].where == f"{file}, line 13"
    with pytest.raises(RamifyError, match=r"contains CoNLL-U, .*--split-sentences"):
        next(iter(SentenceStream(file, "conllu", TextRules(), None, split_sentences=True)))


@pytest.mark.parametrize("damaged", ["tabs lost", "a column lost", "broken ID", "a word missing", "overlapping ranges"])
def test_a_damaged_file_is_not_read_as_text(damaged):
    assert guess_kind(BAD_WORDS[damaged][0].encode()) == "conllu"


@pytest.mark.parametrize(
    "text",
    ["# a title\n12 apples\n", "1\tThe dog barks .\n", "3 dogs\tbark", "1 2 3 4 5 6 7 8 9 10\n", "# text = a\nb c\n"],
)
def test_text_is_not_read_as_conllu(text):
    assert guess_kind(text.encode()) == "text"


def test_no_part_of_conllu_is_guessed_to_be_text():
    for text in (GOOD.encode(), word(1).encode() + b"\n"):
        assert not is_undecided(text)
        for size in range(1, len(text)):
            assert is_undecided(text[:size]) or guess_kind(text[:size]) == "conllu"


def test_kinds_are_not_mixed(tmp_path: Path):
    (tmp_path / "one").write_text(GOOD)
    (tmp_path / "two").write_text("a b c\n")
    with pytest.raises(RamifyError, match="one contains CoNLL-U and two text"):
        read_sentences(tmp_path)


def test_training_takes_the_words_and_learns_what_is_punctuation(tmp_path: Path):
    file = tmp_path / "train.conllu"
    file.write_text(GOOD * 20)
    data = prepare(file, None, Settings())
    assert {parse.words for parse in data.train.parses} == {("Il", "parle", "de", "le", "film"), ("Oui", "-")}
    assert data.word_rule is None
    # As in trees: `-` is a word here, `%` never is, other forms are judged as in text.
    assert data.text_rules.sentence("Oui - % !").is_word == (True, True, False, False)
    kept = prepare(file, None, Settings(punctuation="keep"))
    assert {len(parse) for parse in kept.train.parses} == {4, 6}
    assert kept.text_rules.sentence("Oui !").is_word == (True, True)
    with pytest.raises(RamifyError, match="contains CoNLL-U, where UPOS decides"):
        prepare(file, None, Settings(words="ptb"))
    with pytest.raises(RamifyError, match=r"contains CoNLL-U, .*--split-sentences"):
        prepare(file, None, Settings(split_sentences=True))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("conllu")
    (folder / "train.conllu").write_text((GOOD + word(1, "Il") + word(2, "parle", 1) + "\n") * 10)
    given = ("--preterminals", 4, "--epochs", 1, "--min-count", 1)
    result = ramify("train", folder / "train.conllu", "--out", folder / "model", *given)
    assert result.returncode == 0, result.stderr
    return folder / "model"


def test_sentences_are_parsed_and_scored(model, tmp_path: Path):
    (tmp_path / "new.conllu").write_text(GOOD)
    trees = ramify("parse", "-m", model, tmp_path / "new.conllu").stdout.splitlines()
    assert len(trees) == 2
    assert trees[0].count("PUNCT") == 1
    assert ramify("parse", "-m", model, "--input", "conllu", given=GOOD).stdout.splitlines() == trees
    assert len(ramify("score", "-m", model, tmp_path / "new.conllu").stdout.splitlines()) == 2


@pytest.mark.parametrize("name", ["tabs lost", "broken ID", "a word missing", "overlapping ranges", "empty form"])
@pytest.mark.parametrize("command", ["parse", "score", "train"])
def test_commands_report_a_damaged_file_in_one_sentence(model, tmp_path: Path, command, name):
    file = tmp_path / "bad.conllu"
    file.write_text(GOOD + BAD_WORDS[name][0])
    given = ("--out", tmp_path / "out") if command == "train" else ("-m", model)
    result = ramify(command, file, *given)
    assert result.returncode == 2
    assert f"{file}, line " in result.stderr.replace("\n", "")
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


def test_real_treebanks_are_read_whole(data_folder: Path):
    for file in sorted((data_folder / "ud").rglob("*.conllu")):
        lines = file.read_text(encoding="utf-8").split("\n")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = list(read_conllu(lines, str(file)))
        assert len(found) == sum(line.startswith("# sent_id") for line in lines)
        assert sum(len(each.forms) for each in found) == sum(line.split("\t")[0].isdecimal() for line in lines)
        assert all(each.head_numbers().count(0) == 1 for each in found)
