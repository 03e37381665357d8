"""Sentences from files: bracketed trees, CoNLL-U or text, a single file or a folder of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np

from ramify.corpus.brackets import read_brackets
from ramify.corpus.breaks import phrase_breaks
from ramify.corpus.cleaning import WordRule, keep_leaves
from ramify.corpus.conllu import ConlluSentence, read_conllu
from ramify.corpus.guessing import Kind, KnownKind
from ramify.corpus.lines import LineReader, open_input, read_text_lines
from ramify.corpus.parquet_rows import parquet_cells
from ramify.corpus.punctuation import Punctuation
from ramify.corpus.sentence import PUNCTUATION_TAG, Sentence
from ramify.corpus.table_rows import TABLES, TEXT, Cell, Columns, RowCount, json_cells, sentences_from_cells
from ramify.corpus.text import TextRules
from ramify.corpus.tree import UNTAGGED, Parse
from ramify.errors import RamifyError

if TYPE_CHECKING:
    from ramify.corpus.sentence_splitting import Splitter

AS_IS = TextRules(punctuation=Punctuation(keep=True))
"""Reads text in which all tokens are words"""
SPLITS = ("train", "dev", "test")

TEXT_WORDS = WordRule(removed=frozenset([PUNCTUATION_TAG]))
"""The words of text and CoNLL-U, whose punctuation was determined when they were read."""
CONTENTS: dict[KnownKind, str] = {
    "text": "text",
    "brackets": "trees",
    "conllu": "CoNLL-U",
    "jsonl": "rows of JSON",
    "parquet": "a Parquet table",
}
"""The content of each kind of file, in words"""


@dataclass(frozen=True)
class Corpus:
    """Sentences and their source."""

    parses: list[Parse]
    """Gold trees if `has_trees`, otherwise only tokens: no spans, the tag `_` for words and `PUNCT` for the others"""
    kind: KnownKind
    source: str
    checksum: str
    """sha256 of the bytes read, after decompression; of a folder, of its files in order"""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Number of lines or sentences left out, by reason"""

    @property
    def has_trees(self) -> bool:
        """Whether the parses are gold trees."""
        return self.kind == "brackets"

    def __len__(self) -> int:
        return len(self.parses)

    def words_only(self, rule: WordRule) -> Corpus:
        """All sentences without the leaves that are not words; sentences without words are dropped.

        A sentence keeps the places where punctuation was removed.
        """
        cleaned = [_words_of(parse, rule) for parse in self.parses]
        return self._keeping([parse for parse in cleaned if len(parse) > 0], "without words")

    def of_lengths(self, shortest: int = 2, longest: int | None = None) -> Corpus:
        """The sentences of `shortest` to `longest` words."""
        long_enough = self._keeping([p for p in self.parses if len(p) >= shortest], f"under {shortest} words")
        if longest is None:
            return long_enough
        fitting = [p for p in long_enough.parses if len(p) <= longest]
        return long_enough._keeping(fitting, f"over {longest} words")

    def _keeping(self, parses: list[Parse], reason: str) -> Corpus:
        lost = len(self.parses) - len(parses)
        dropped = {**self.dropped, reason: self.dropped.get(reason, 0) + lost} if lost else self.dropped
        return replace(self, parses=parses, dropped=dropped)


def _words_of(parse: Parse, rule: WordRule) -> Parse:
    keep = rule.word_mask(parse.tags)
    if all(keep):
        return parse
    return replace(keep_leaves(parse, keep), breaks=phrase_breaks(parse.words, parse.tags, keep))


def corpus_from_sentences(
    sentences: Iterable[str | Sequence[str]], rules: TextRules, source: str = "sentences"
) -> Corpus:
    """Sentences in memory, each a string or a list of tokens, as a corpus."""
    if not isinstance(sentences, Iterable):
        raise RamifyError(f"{source}: give a list of sentences or the name of a file, not {sentences!r}.")
    checksum, parses = hashlib.sha256(), []
    for number, sentence in enumerate(sentences, start=1):
        if not isinstance(sentence, str | Sequence) or isinstance(sentence, bytes):
            raise RamifyError(f"{source}: number {number} is {sentence!r}; give a string or a list of tokens.")
        read = rules.sentence(sentence) if isinstance(sentence, str) else rules.sentence_of(sentence)
        checksum.update((" ".join(read.tokens) + "\n").encode("utf-8", "backslashreplace"))
        if read.tokens:
            parses.append(parse_without_tree(read))
    if not parses:
        raise RamifyError(f"{source}: the list is empty; give at least two sentences.")
    return Corpus(parses, "text", source, checksum.hexdigest())


def read_sentences(
    path: str | Path,
    kind: Kind = "auto",
    split: str | None = None,
    text_rules: TextRules = AS_IS,
    column: str | None = None,
) -> Corpus:
    """All sentences of a file, or of all files of a folder and its subfolders except hidden ones.

    If a folder has train, dev and test files, `split` says which of them to read. With the kind `auto`, the beginning
    of a file decides its kind. Blank lines are skipped. `text_rules` say how text is read, and which tokens of CoNLL-U
    without UPOS are words. `column` is the column of JSON lines or Parquet that contains the text.
    """
    check_kind(kind)
    path = Path(path)
    checksum = hashlib.sha256()
    parses: list[Parse] = []
    blank_lines = 0
    kinds: dict[KnownKind, Path] = {}
    for file in _files(path, split):
        with open_input(file) as raw:
            reader = LineReader(raw, str(file))
            found = reader.guessed_kind() if kind == "auto" else kind
            kinds.setdefault(found, file)
            if len(kinds) > 1:
                (one, of_one), (other, of_other) = sorted(kinds.items())
                raise RamifyError(
                    f"{path}: {of_one.name} contains {CONTENTS[one]} and {of_other.name} {CONTENTS[other]}; "
                    "keep only one kind in the folder, or choose one with the setting input."
                )
            _check_column(column, found, file)
            lines = read_text_lines(_hashed(reader, checksum), str(file))
            if found == "brackets":
                parses.extend(read_brackets(lines, str(file)))
                continue
            if found == "conllu":
                sentences = read_conllu(lines, str(file))
                parses.extend(parse_without_tree(each.with_words(text_rules.punctuation)) for each in sentences)
                continue
            if found == "parquet":
                with file.open("rb") as handle:
                    checksum.update(hashlib.file_digest(handle, "sha256").digest())
            sentences_read = (
                sentences_from_cells(_cells(lines, file, found, column), text_rules, RowCount())
                if found in TABLES
                else text_rules.sentences(lines, str(file), expects_no_tree=kind == "auto")
            )
            for sentence in sentences_read:
                if sentence.offsets:
                    parses.append(parse_without_tree(sentence))
                else:
                    blank_lines += 1
    if not parses:
        raise RamifyError(f"{path}: contains no sentences; give text with one sentence per line, trees or CoNLL-U.")
    dropped = {"blank lines": blank_lines} if blank_lines else {}
    return Corpus(parses, next(iter(kinds)), str(path), checksum.hexdigest(), dropped)


def read_dependencies(path: str | Path) -> tuple[Corpus, list[ConlluSentence]]:
    """All sentences of a file in CoNLL-U, with their heads; UPOS decides which tokens are words."""
    file = Path(path)
    checksum = hashlib.sha256()
    with open_input(file) as raw:
        lines = read_text_lines(_hashed(LineReader(raw, str(file)), checksum), str(file))
        sentences = list(read_conllu(lines, str(file)))
    if not sentences:
        raise RamifyError(f"{file}: contains no sentences; give a file in CoNLL-U.")
    parses = [parse_without_tree(sentence.with_words(TextRules().punctuation)) for sentence in sentences]
    return Corpus(parses, "conllu", str(file), checksum.hexdigest()), sentences


def learn_splitter(
    path: str | Path, split: str | None = None, kind: Kind = "auto", column: str | None = None
) -> Splitter:
    """A sentence splitter, learnt from the prose of a file or folder."""
    from ramify.corpus.sentence_splitting import Splitter  # imports NLTK, which is slow

    return Splitter.learnt_from(_text_of(file, kind, column) for file in _files(Path(path), split))


def _text_of(file: Path, kind: Kind, column: str | None) -> str:
    """The prose of a file; a row of a table is a paragraph."""
    with open_input(file) as raw:
        reader = LineReader(raw, str(file))
        found = reader.guessed_kind() if kind == "auto" else kind
        lines = read_text_lines(reader, str(file))
        if found not in TABLES:
            return "".join(lines)
        contents = (cell.content for cell in _cells(lines, file, found, column))
        return "".join(f"{content}\n\n" for content in contents if isinstance(content, str))


def _cells(lines: Iterator[str], file: Path, kind: KnownKind, column: str | None) -> Iterator[Cell]:
    columns = Columns(column or TEXT, ())
    return parquet_cells(file, str(file), columns) if kind == "parquet" else json_cells(lines, str(file), columns)


def _check_column(column: str | None, kind: KnownKind, file: Path) -> None:
    if column is not None and kind not in TABLES:
        raise RamifyError(f"{file}: contains {CONTENTS[kind]}, which has no columns; leave out --column.")


def guess_file_kind(file: Path) -> KnownKind:
    """Trees, CoNLL-U or text, guessed from the beginning of the file."""
    with open_input(file) as raw:
        return LineReader(raw, str(file)).guessed_kind()


def _hashed(lines: Iterable[bytes], checksum: hashlib._Hash) -> Iterator[bytes]:
    for line in lines:
        checksum.update(line)
        yield line


def parse_without_tree(sentence: Sentence) -> Parse:
    """A sentence without a tree; its tags distinguish punctuation from words."""
    tags = tuple(UNTAGGED if is_word else PUNCTUATION_TAG for is_word in sentence.is_word)
    return Parse(sentence.tokens, tags, np.empty((0, 2), dtype=np.int32), ())


def check_kind(kind: str) -> None:
    """Refuse an unknown kind of data."""
    if kind not in get_args(Kind):
        raise RamifyError(f"The kind of data {kind!r} is unknown; choose one of {', '.join(get_args(Kind))}.")


def split_paths(folder: str | Path) -> dict[str, Path]:
    """The files of `folder` named `train`, `dev` (or `valid`) and `test`, with any extension."""
    if not Path(folder).is_dir():
        raise RamifyError(f"{folder}: does not exist; check the name.")
    try:
        files = sorted(Path(folder).iterdir())
    except OSError as error:
        raise RamifyError(f"{folder}: cannot be read ({error.strerror}); check its permissions.") from error
    found: dict[str, Path] = {}
    for file in files:
        name = file.name.partition(".")[0]
        name = "dev" if name == "valid" else name
        if name not in SPLITS or not file.is_file():
            continue
        if name in found:
            raise RamifyError(f"{folder}: both {found[name].name} and {file.name} could be the {name} set; keep one.")
        found[name] = file
    return found


def _files(path: Path, split: str | None) -> list[Path]:
    if not path.exists():
        raise RamifyError(f"{path}: does not exist; check the name.")
    if not path.is_dir():
        return [path]
    splits = split_paths(path)
    if split is not None:
        if split not in splits:
            raise RamifyError(
                f"{path}: this folder has no {split} file; name one {split}.trees, {split}.txt or {split}.conllu."
            )
        return [splits[split]]
    if splits:
        raise RamifyError(f"{path}: this folder contains {', '.join(splits)} files; give one of them.")
    inside = sorted(path.rglob("*"))
    files = [f for f in inside if f.is_file() and not any(p.startswith(".") for p in f.relative_to(path).parts)]
    if not files:
        raise RamifyError(f"{path}: this folder is empty; give one with trees, CoNLL-U or text.")
    return files
