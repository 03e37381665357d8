"""A stream of sentences from a file or a pipe of any length."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from ramify.corpus.brackets import read_brackets
from ramify.corpus.cleaning import WordRule
from ramify.corpus.conllu import read_conllu
from ramify.corpus.guessing import Kind, KnownKind
from ramify.corpus.lines import STANDARD_INPUT, LineReader, open_input, read_text_lines
from ramify.corpus.parquet_rows import parquet_cells
from ramify.corpus.reading import CONTENTS, check_kind
from ramify.corpus.sentence import Sentence
from ramify.corpus.table_rows import TABLES, Cell, Columns, RowCount, json_cells, sentences_from_cells
from ramify.corpus.text import LONGEST_PARAGRAPH, TextRules
from ramify.errors import RamifyError

WINDOW = 1024
"""Number of sentences that a parser reads ahead, so that sentences of similar length share a batch"""


class Pause:
    """Marks a place in a stream where no further sentence has arrived, so earlier results should be delivered."""


PAUSE = Pause()


class SentenceStream:
    """The sentences of a file or, for `-`, of standard input, in order; a `PAUSE` if no input of a pipe is waiting.

    A blank line of text is a sentence without tokens, so output line n belongs to input line n, unless prose is split
    into sentences. `split_sentences` decides this or, if it is None, `text_rules`. The leaves of trees are tokens;
    `word_rule` says which of them are words or, if it is None, the rule for text. Sentences keep their trees. The
    tokens of CoNLL-U are its syntactic words, punctuation by UPOS. `columns` are those to read from a table (JSON
    lines or Parquet).
    """

    def __init__(
        self,
        file: Path,
        kind: Kind,
        text_rules: TextRules,
        word_rule: WordRule | None,
        split_sentences: bool | None = None,
        on_bytes: Callable[[int], None] = lambda _: None,
        columns: Columns | None = None,
    ) -> None:
        check_kind(kind)
        self.rows = RowCount()
        """Rows without text among those read so far"""
        self._columns = columns
        self.source = "standard input" if file == STANDARD_INPUT else str(file)
        self.kind: KnownKind | None = None if kind == "auto" else kind
        """Kind of the input; with `auto`, known after the first sentence was read"""
        self._file, self._kind, self._on_bytes = file, kind, on_bytes
        self._text_rules, self._word_rule, self._split = text_rules, word_rule, split_sentences

    def __iter__(self) -> Iterator[Sentence | Pause]:
        with open_input(self._file) as raw:
            reader = LineReader(raw, self.source, self._on_bytes)
            self.kind = reader.guessed_kind() if self._kind == "auto" else self._kind
            self._check_columns(self.kind)
            lines = read_text_lines(reader, self.source)
            for sentence in self._sentences(lines, self.kind):
                yield sentence
                if reader.would_block():
                    yield PAUSE

    def _check_columns(self, kind: KnownKind) -> None:
        if self._columns is not None and kind not in TABLES:
            raise RamifyError(
                f"{self.source}: contains {CONTENTS[kind]}, which has no columns; leave out --column and --keep."
            )

    def _sentences(self, lines: Iterator[str], kind: KnownKind) -> Iterator[Sentence]:
        if kind == "text":
            return self._of_text(lines)
        if kind in TABLES:
            columns = self._columns or Columns()
            if kind == "parquet":
                return self._of_rows(parquet_cells(self._file, self.source, columns, self._on_bytes))
            return self._of_rows(json_cells(lines, self.source, columns))
        if self._split:
            raise RamifyError(
                f"{self.source}: contains {CONTENTS[kind]}, already split into sentences; leave out --split-sentences."
            )
        if kind == "brackets":
            return self._of_trees(lines)
        return (each.with_words(self._text_rules.punctuation) for each in read_conllu(lines, self.source))

    def _of_trees(self, lines: Iterable[str]) -> Iterator[Sentence]:
        for number, parse in enumerate(read_brackets(lines, self.source), start=1):
            yield replace(self._leaves(parse.words, parse.tags, f"{self.source}, tree {number}"), tree=parse)

    def _of_text(self, lines: Iterator[str], first_line: int = 1) -> Iterator[Sentence]:
        rules = self._text_rules
        if self._split is False:
            rules = replace(rules, splitter=None)
        elif self._split and rules.splitter is None:
            rules, lines = self._with_splitter(lines)
        return rules.sentences(lines, self.source, self._kind == "auto", first_line)

    def _of_rows(self, cells: Iterator[Cell]) -> Iterator[Sentence]:
        rules = self._text_rules
        if self._split is False:
            rules = replace(rules, splitter=None)
        elif self._split and rules.splitter is None:
            raise RamifyError(
                f"{self.source}: this model has not learnt to split prose, and rows are too short to learn from; leave "
                "out --split-sentences."
            )
        return sentences_from_cells(cells, rules, self.rows)

    def _leaves(self, words: tuple[str, ...], tags: tuple[str, ...], where: str) -> Sentence:
        if self._word_rule is None:
            return self._text_rules.sentence_of(words, where)
        return Sentence.from_tokens(words, self._word_rule.word_mask(tags), where)

    def _with_splitter(self, lines: Iterator[str]) -> tuple[TextRules, Iterator[str]]:
        """A splitter learnt from the beginning of the text, for a model without one."""
        from ramify.corpus.sentence_splitting import Splitter  # imports NLTK, which is slow

        head, size = [], 0
        for line in lines:
            head.append(line)
            size += len(line)
            if size > LONGEST_PARAGRAPH:
                break
        return replace(self._text_rules, splitter=Splitter.learnt_from(["".join(head)])), chain(head, lines)


def size_of(file: Path) -> int | None:
    """Size of a file in bytes, if it is known in advance."""
    return file.stat().st_size if file != STANDARD_INPUT and file.is_file() else None
