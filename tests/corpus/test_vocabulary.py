from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.corpus.vocabulary import LONGEST_WORD, UNKNOWN, Vocabulary
from ramify.errors import RamifyError
from tests.vocabularies import vocabulary_of


def test_equally_frequent_words_are_ordered_by_first_occurrence() -> None:
    sentences = [["b", "a", "c"], ["d", "c", "a"], ["e", "c"]]
    assert vocabulary_of(sentences, size=3).words == ("<unk>", "c", "a", "b")
    assert vocabulary_of(sentences).words == ("<unk>", "c", "a", "b", "d", "e")


def test_forms_of_one_word_are_counted_together() -> None:
    assert vocabulary_of([["Dog", "dog", "Dog", "dog", "cat", "cat", "cat"]], size=1).words == ("<unk>", "dog")


def test_unk_in_a_text_is_the_unknown_word() -> None:
    vocabulary = vocabulary_of([["<unk>", "<unk>", "a"]], size=1)
    assert vocabulary.words == ("<unk>", "a")
    assert vocabulary.encode(["<unk>", "a", "<UNK>"]).tolist() == [0, 1, 0]


def test_a_very_long_word_is_unknown(tmp_path: Path) -> None:
    vocabulary = vocabulary_of([["a", "b" * LONGEST_WORD, "c" * (LONGEST_WORD + 1)]])
    assert vocabulary.words == (UNKNOWN, "a", "b" * LONGEST_WORD)
    vocabulary.save(tmp_path / "vocab")
    assert Vocabulary.load(tmp_path / "vocab", size=3) == vocabulary
    with pytest.raises(RamifyError, match="more than the 2 words"):
        Vocabulary.load(tmp_path / "vocab", size=2)
    (tmp_path / "vocab").write_text(f"{UNKNOWN}\n" + "a" * 5000)
    with pytest.raises(RamifyError, match="vocab: word 2 is longer"):
        Vocabulary.load(tmp_path / "vocab")


def test_the_checksum_is_of_words_in_their_order() -> None:
    found = {Vocabulary([UNKNOWN, *words]).checksum for words in ("ab", "ba", ["a", "bc"], ["ab", "c"])}
    assert len(found) == 4


def test_encoding_normalises() -> None:
    vocabulary = vocabulary_of([["the", "3", "dogs"]])
    numbers = vocabulary.encode(["THE", "1,000", "Dogs", "cats", "N"])
    assert numbers.tolist() == [1, 2, 3, 0, 0]
    assert numbers.dtype == np.int64
    assert vocabulary.encode([]).shape == (0,)
    assert "dogs" in vocabulary
    assert "Dogs" not in vocabulary
    assert len(vocabulary) == 4


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_saved_and_loaded_it_is_the_same(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("vocabulary") / "words.txt"
    vocabulary = vocabulary_of(text.split() for text in texts)
    vocabulary.save(path)
    assert Vocabulary.load(path) == vocabulary
    assert path.read_bytes().count(b"\n") == len(vocabulary)


def test_words_are_equal_in_every_normal_form() -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    for form in ("NFC", "NFD"):
        vocabulary = vocabulary_of([[composed, decomposed]], normal_form=form)
        assert vocabulary.words == (UNKNOWN, {"NFC": composed, "NFD": decomposed}[form])
        assert vocabulary.encode([composed, decomposed, decomposed.upper()]).tolist() == [1, 1, 1]
    assert vocabulary_of([["\ufb01n"]], normal_form="NFKC").words == (UNKNOWN, "fin")


def test_line_separators_other_than_newline_belong_to_words(tmp_path: Path) -> None:
    vocabulary = Vocabulary([UNKNOWN, "a\rb", "c\u2028d", "e\x85f"])
    vocabulary.save(tmp_path / "words.txt")
    assert Vocabulary.load(tmp_path / "words.txt") == vocabulary


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "first word"),
        (b"a\n<unk>\n", "first word"),
        (b"<unk>\r\na\r\n", "first word"),
        (b"<unk>\na\nb\na\n", "'a' 2 times"),
        (b"<unk>\n\na\n", "Word 2"),
        (b"<unk>\n\xff\n", "UTF-8"),
    ],
)
def test_damaged_files_are_refused_by_name(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes(content)
    with pytest.raises(RamifyError, match=complaint) as caught:
        Vocabulary.load(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RamifyError, match=r"missing\.txt"):
        Vocabulary.load(tmp_path / "missing.txt")


def test_a_word_with_a_line_break_cannot_be_kept() -> None:
    with pytest.raises(RamifyError, match="line break"):
        Vocabulary([UNKNOWN, "a\nb"])
