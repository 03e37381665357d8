"""Raw text: every token is kept, at its place."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ramify.corpus.brackets import read_brackets
from ramify.corpus.cleaning import WordRule
from ramify.corpus.punctuation import Punctuation, unicode_punctuation
from ramify.corpus.reading import AS_IS, learn_splitter, read_sentences
from ramify.corpus.sentence import Sentence
from ramify.corpus.sentence_splitting import Splitter
from ramify.corpus.streaming import PAUSE, SentenceStream
from ramify.corpus.text import TextRules, split_prose
from ramify.corpus.tokenising import script_without_spaces, tokeniser
from ramify.errors import RamifyError, RamifyWarning

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


def covers(sentence: Sentence) -> None:
    """Tokens are in order and do not overlap, with only white space between them."""
    end = 0
    for start, stop in sentence.offsets:
        assert end <= start < stop
        assert not sentence.text[end:start].strip()
        end = stop
    assert not sentence.text[end:].strip()


@pytest.mark.needs("spacy")
@given(ANY_TEXT, st.sampled_from(["none", "en", "xx", "fr", "ar", "hi"]))
def test_no_character_is_lost_by_any_tokeniser(text: str, language: str) -> None:
    covers(TextRules(language).sentence(text))


@pytest.mark.needs("spacy")
@pytest.mark.parametrize(
    ("language", "text", "tokens"),
    [
        ("en", 'He said: "Don\'t (ever) go—at 3.50%!"', 'He said : " Do n\'t ( ever ) go — at 3.50 % ! "'),
        ("en", "a well-known co-op, 1990-91.", "a well-known co-op , 1990-91 ."),
        ("fr", "L’homme d'ici, n'est-ce pas ?", "L’ homme d' ici , n' est -ce pas ?"),
        ("hi", "राम ने कहा, “चलो।”", "राम ने कहा , “ चलो । ”"),
        ("ar", "هل أنت هنا؟ نعم، أنا هنا.", "هل أنت هنا ؟ نعم ، أنا هنا ."),
        ("xx", "Þetta er «gott».", "Þetta er « gott » ."),
        ("ca", "va dir: -sí, franco-alemany", "va dir : - sí , franco-alemany"),
        ("none", "as , it is.", "as , it is."),
    ],
)
def test_tokens_of_prose(language: str, text: str, tokens: str) -> None:
    assert list(TextRules(language).sentence(text).tokens) == tokens.split()


@pytest.mark.needs("spacy")
def test_unknown_tokenisers_are_refused() -> None:
    with pytest.raises(RamifyError, match="no tokeniser for 'tlh'"):
        tokeniser("tlh")
    with pytest.raises(RamifyError, match="no tokeniser is known for"):
        tokeniser("../x")
    with pytest.raises(RamifyError, match="has no spaces between words"):
        tokeniser("zh")


@pytest.mark.parametrize("token", [".", "...", "``", "''", "«", "؟", "।", "—", "-LRB-", "¿", "\u200f،", "\u200b", "?!"])
def test_punctuation(token: str) -> None:
    assert unicode_punctuation(token)


@pytest.mark.parametrize(
    "token", ["%", "&", "'s", "n't", "well-known", "$", "@", "U.S.", "3.5", "a", "٪", "+", "😀", "-ce"]
)
def test_word_like_signs_are_words(token: str) -> None:
    assert not unicode_punctuation(token)


def test_repeated_tokens_have_the_right_offsets() -> None:
    sentence = TextRules().sentence("a ab a  ab a")
    assert sentence.offsets == ((0, 1), (2, 4), (5, 6), (8, 10), (11, 12))


def test_punctuation_is_learnt_from_trees() -> None:
    trees = "(S (NN a) ($ $) (, ,) (POS ')) (S (: -) (HYPH -) (XX *) (CD /))"
    parses = list(read_brackets([trees], "here"))
    punctuation = Punctuation.from_trees(parses, WordRule.from_name("$ , : XX"))
    assert [form for form in "$ , ' - * / ; a".split() if form in punctuation] == ["$", ",", "*", ";"]
    assert Punctuation.from_record(punctuation.as_record()) == punctuation
    assert "." not in Punctuation(keep=True)
    assert Punctuation.from_record(Punctuation(keep=True).as_record()) == Punctuation(keep=True)


def test_a_form_seen_as_word_and_as_punctuation_is_a_word() -> None:
    trees = "(S (PU o) (NN o) (PU x) (NN y) (PU -) (NN -))"  # a bullet and a letter, and a dash that is a word too
    punctuation = Punctuation.from_trees(list(read_brackets([trees], "here")), WordRule.from_name("PU"))
    assert [form for form in "oxy-" if form in punctuation] == ["x"]
    assert (punctuation.also, punctuation.never) == ({"x"}, {"-"})


@pytest.mark.parametrize(
    "record", [None, {}, {"rule": "x"}, {"rule": "unicode"}, {"rule": "unicode", "also": 1, "never": []}]
)
def test_other_rules_for_punctuation_are_refused(record: object) -> None:
    with pytest.raises(RamifyError, match="rule for punctuation"):
        Punctuation.from_record(record)


PROSE = """Dr. Smith met Mr. Jones at 3 p.m. on
Tuesday. "Hello," he said. Was it
Mr. Smith? It was.

A new paragraph without an end
"""


def test_prose_is_split_over_the_ends_of_lines() -> None:
    splitter = Splitter.learnt_from([PROSE * 20])
    found = list(split_prose(PROSE.splitlines(keepends=True), splitter))
    assert [line for _, line in found] == [1, 2, 2, 3, 5]
    assert [text.split()[0] for text, _ in found] == ["Dr.", '"Hello,"', "Was", "It", "A"]
    again = Splitter.from_record(splitter.as_record())
    assert list(split_prose(PROSE.splitlines(keepends=True), again)) == found


@given(ANY_TEXT)
def test_splitting_loses_nothing(text: str) -> None:
    lines = [line + "\n" for line in text.split("\n")]
    sentences = [sentence for sentence, _ in split_prose(lines, Splitter())]
    assert "".join("".join(sentence.split()) for sentence in sentences) == "".join(text.split())


@pytest.mark.parametrize("end", [".\n", ",\n"])
def test_a_paragraph_without_end_is_held_in_parts_alone(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    """Also if a part ends within a sentence, which is the usual case."""
    begun = [f"This is sentence {i} of" for i in range(200)]
    lines = [line for text in begun for line in (f"{text}\n", "very\n", f"many{end}", "and so on.\n")]
    whole = list(split_prose(lines, Splitter()))
    monkeypatch.setattr("ramify.corpus.text.LONGEST_PARAGRAPH", 300)
    assert list(split_prose(lines, Splitter())) == whole


def test_other_scripts_end_their_sentences_too() -> None:
    text = "राम आया। वह गया। هل أنت هنا؟ نعم."
    assert [text[i:j] for i, j in Splitter().spans(text)] == ["राम आया।", "वह गया।", "هل أنت هنا؟", "نعم."]


def test_an_invalid_record_of_a_splitter_is_refused() -> None:
    for record in (None, {}, {"abbreviations": [1], "collocations": [], "sentence_starters": [], "orthography": {}}):
        with pytest.raises(RamifyError, match="the sentence splitter"):
            Splitter.from_record(record)


@pytest.mark.parametrize(
    ("line", "script"),
    [
        ("我昨天在图书馆看了三本很有意思的书", "Chinese or Japanese"),
        ("ฉันชอบอ่านหนังสือในห้องสมุด", "Thai"),
        ("我喜欢你", "Chinese or Japanese"),
        ("我 昨天喜欢你。", "Chinese or Japanese"),
        ("私は Python が好きです。", "Japanese"),
        ("图书馆", None),
        ("我 喜欢 你 。", None),
        ("弗拉基米尔 来 了", None),
        ("Donaudampfschifffahrtsgesellschaft", None),
        ("한국어는 띄어쓰기를 한다.", None),
    ],
)
def test_scripts_without_spaces_are_noticed(line: str, script: str | None) -> None:
    assert script_without_spaces(line.split()) == script


@pytest.mark.needs("spacy")
@pytest.mark.parametrize("tokenise", ["none", "xx"])
def test_scripts_without_spaces_are_reported_once(tokenise: str) -> None:
    lines = ["a b\n", "我昨天在图书馆，看了三本书。\n", "我昨天在图书馆看了三本很有意思的书\n"]
    with pytest.warns(RamifyWarning, match="here, line 2: this looks like Chinese") as seen:
        list(TextRules(tokenise).sentences(lines, "here"))
    assert len(seen) == 1


def test_prose_given_as_tokens_is_noticed_once() -> None:
    with pytest.warns(RamifyWarning, match="'Hello,' contains a word and punctuation") as seen:
        list(AS_IS.sentences(["Hello, world.\n"] * 3, "here"))
    assert len(seen) == 1


def stream(path: Path, **options: object) -> list[object]:
    chosen = {"kind": "auto", "text_rules": TextRules(), "word_rule": None, **options}
    return list(SentenceStream(path, **chosen))  # type: ignore[arg-type]


def test_leaves_of_trees_keep_their_places(tmp_path: Path) -> None:
    path = tmp_path / "trees"
    path.write_text("(S (NN a) (, ;) (NN b))\n")
    (by_form,) = stream(path)
    assert (by_form.tokens, by_form.is_word) == (("a", ";", "b"), (True, False, True))
    (by_tag,) = stream(path, word_rule=WordRule.from_name("NN"))
    assert by_tag.words == (";",)
    with pytest.raises(RamifyError, match="contains trees, already split into sentences"):
        stream(path, split_sentences=True)


@pytest.mark.parametrize("leaf", ["\x1c", "\xa0", "\u2003"])
def test_a_leaf_that_only_python_takes_for_space_is_a_leaf(tmp_path: Path, leaf: str) -> None:
    path = tmp_path / "trees"
    path.write_text(f"(S (NN a) (NN {leaf}))\n", encoding="utf-8")
    (sentence,) = stream(path)
    assert sentence.tokens == read_sentences(path).parses[0].words == ("a", leaf)


@pytest.mark.needs("spacy")
def test_a_text_without_a_splitter_teaches_its_own(tmp_path: Path) -> None:
    path = tmp_path / "prose"
    path.write_text(PROSE * 20)
    rules = TextRules("en")
    sentences = stream(path, text_rules=rules, split_sentences=True)
    assert [s.tokens[0] for s in sentences[:5]] == ["Dr.", '"', "Was", "It", "A"]
    learnt = TextRules("en", splitter=learn_splitter(path))
    corpus = read_sentences(path, text_rules=learnt)
    assert [parse.words for parse in corpus.parses] == [s.tokens for s in sentences]


@pytest.mark.parametrize(
    ("pieces", "rest"),
    [
        ((b"a b\nc d\nbegun ",), b"and ended"),
        ((b"\n(S (NN", b" a) (NN b)", b")\n", b"(S (NN c) (NN d))\n(S (NN begun)"), b"\n(NN and) (NN ended))"),
    ],
)
def test_lines_of_a_pipe_are_answered_as_they_arrive(tmp_path: Path, pieces: tuple[bytes, ...], rest: bytes) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    answered = threading.Event()

    def write() -> None:
        with path.open("wb", buffering=0) as pipe:
            for piece in pieces:
                pipe.write(piece)
                time.sleep(0.05)  # so that it is read alone
            assert answered.wait(20), "nothing came back while the pipe was dry"
            pipe.write(rest)

    writer = threading.Thread(target=write)
    writer.start()
    items = iter(SentenceStream(path, "auto", TextRules(), None))
    sentences = (item for item in items if item is not PAUSE)
    assert [next(sentences).words, next(sentences).words] == [("a", "b"), ("c", "d")]
    assert next(items) is PAUSE
    answered.set()
    assert [item.words for item in items if item is not PAUSE] == [("begun", "and", "ended")]
    writer.join()


def test_a_pipe_with_buffered_lines_does_not_pause(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    answered = threading.Event()

    def write() -> None:
        with path.open("wb", buffering=0) as pipe:
            pipe.write(b"a\nb\nc\n")
            answered.wait(20)

    writer = threading.Thread(target=write)
    writer.start()
    items = iter(SentenceStream(path, "text", TextRules(), None))
    found = [next(items) for _ in range(4)]
    answered.set()
    writer.join()
    assert [item is PAUSE for item in found] == [False, False, False, True]


@pytest.mark.filterwarnings("ignore::ramify.errors.RamifyWarning")
@given(st.lists(ANY_TEXT.filter(lambda text: "\n" not in text)), st.integers(1, 9))
def test_lines_are_read_alike_in_chunks_of_any_size(tmp_path_factory, lines, size) -> None:
    path = tmp_path_factory.mktemp("chunks") / "text"
    assume(len(lines) > 1 or "\r" not in "".join(lines))  # which would end lines
    path.write_bytes("\n".join(lines).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ramify.corpus.lines.HEAD", size)
        found = [sentence.text for sentence in stream(path, kind="text", text_rules=AS_IS)]
    expected = (
        "\n".join(lines).removesuffix("\n").removeprefix("\ufeff").split("\n") if any(lines) or len(lines) > 1 else []
    )
    assert found == expected


def test_an_endless_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramify.corpus.lines.LONGEST_LINE", 1000)
    path = tmp_path / "text"
    path.write_text("a " * 100_000)
    with pytest.raises(RamifyError, match="a line is longer than"):
        stream(path)
