"""Sentences one after another from a file or a pipe of any length."""

from __future__ import annotations

import io
import os
import select
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Literal

from ramify.corpus.brackets import read_brackets
from ramify.corpus.cleaning import WordRule
from ramify.corpus.reading import HEAD, Kind, check_kind, decoded_lines, guess_kind, is_undecided
from ramify.corpus.sentence import Sentence
from ramify.corpus.splitting import Splitter
from ramify.corpus.text import LONGEST_PARAGRAPH, TextRules
from ramify.errors import RamifyError

STANDARD_INPUT = Path("-")
LONGEST_LINE = 1 << 28
WINDOW = 1024
"""How many sentences a parser reads ahead, so that sentences of like length share a batch"""


class Pause:
    """Stands in a stream where no further sentence is ready: whoever waits for the earlier ones should get them."""


PAUSE = Pause()


class SentenceStream:
    """The sentences of a file or, for `-`, of standard input, in order; a `PAUSE` where a pipe runs dry.

    A blank line of text is a sentence without tokens, so that line n out belongs to line n in, unless prose is
    split into sentences. The leaves of trees are tokens; those that are words are told by `word_rule` or, where
    there is none, as in text. The trees come along.
    """

    def __init__(
        self,
        file: Path,
        kind: Kind,
        text_rules: TextRules,
        word_rule: WordRule | None,
        split_sentences: bool = False,
        on_bytes: Callable[[int], None] = lambda _: None,
    ) -> None:
        check_kind(kind)
        self.source = "standard input" if file == STANDARD_INPUT else str(file)
        self._file, self._kind, self._on_bytes = file, kind, on_bytes
        self._text_rules, self._word_rule, self._split = text_rules, word_rule, split_sentences

    def __iter__(self) -> Iterator[Sentence | Pause]:
        with _opened(self._file) as raw:
            reader = LineReader(raw, self.source)
            kind = reader.guessed_kind() if self._kind == "auto" else self._kind
            lines = decoded_lines(self._counted(reader), self.source)
            for sentence in self._of_trees(lines) if kind == "brackets" else self._of_text(lines):
                yield sentence
                if reader.is_dry():
                    yield PAUSE

    def _counted(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        for line in lines:
            self._on_bytes(len(line))
            yield line

    def _of_trees(self, lines: Iterable[str]) -> Iterator[Sentence]:
        if self._split:
            raise RamifyError(f"{self.source}: holds trees, one a sentence already; leave out --split-sentences.")
        for number, parse in enumerate(read_brackets(lines, self.source), start=1):
            yield replace(self._leaves(parse.words, parse.tags, f"{self.source}, tree {number}"), tree=parse)

    def _of_text(self, lines: Iterator[str]) -> Iterator[Sentence]:
        rules = self._text_rules
        if not self._split:
            rules = replace(rules, splitter=None)
        elif rules.splitter is None:
            rules, lines = self._with_splitter(lines)
        return rules.sentences(lines, self.source)

    def _leaves(self, words: tuple[str, ...], tags: tuple[str, ...], where: str) -> Sentence:
        if self._word_rule is None:
            return self._text_rules.sentence_of(words, where)
        return Sentence.from_tokens(words, self._word_rule.which_are_words(tags), where)

    def _with_splitter(self, lines: Iterator[str]) -> tuple[TextRules, Iterator[str]]:
        """The model has no splitter of its own: one that learns from how the text begins."""
        head, size = [], 0
        for line in lines:
            head.append(line)
            size += len(line)
            if size > LONGEST_PARAGRAPH:
                break
        return replace(self._text_rules, splitter=Splitter.learnt_from(["".join(head)])), chain(head, lines)


class LineReader:
    """The lines of a file or a pipe, and whether the next one is there yet."""

    def __init__(self, raw: io.FileIO, source: str) -> None:
        self._raw, self._source = raw, source
        self.head = raw.read(HEAD) or b""
        """What was read to look at, before any line is given out"""
        self._lines_ready = 0
        # Elsewhere only sockets can be asked whether something is ready.
        self._may_run_dry = os.name == "posix" and not stat.S_ISREG(os.fstat(raw.fileno()).st_mode)

    def guessed_kind(self) -> Literal["text", "brackets"]:
        """Trees or text; a pipe may have handed over no more than a piece of the first tree."""
        while len(self.head) < HEAD and is_undecided(self.head):
            more = self._raw.read(HEAD - len(self.head))
            if not more:
                break
            self.head += more
        return guess_kind(self.head)

    def __iter__(self) -> Iterator[bytes]:
        begun: list[bytes] = []
        chunk, size = self.head, 0
        while chunk:
            *ended, rest = chunk.split(b"\n")
            if ended:
                ended[0] = b"".join([*begun, ended[0]])
                begun, size = [], 0
            self._lines_ready = len(ended)
            for line in ended:
                self._lines_ready -= 1
                yield line + b"\n"
            begun.append(rest)
            size += len(rest)
            if size > LONGEST_LINE:
                raise RamifyError(
                    f"{self._source}: a line is longer than {LONGEST_LINE >> 20} MB; give text, one sentence a line."
                )
            chunk = self._raw.read(HEAD) or b""
        if size:
            yield b"".join(begun)

    def is_dry(self) -> bool:
        """Whether reading on would mean waiting for whoever writes into the pipe."""
        return self._may_run_dry and not self._lines_ready and not select.select([self._raw], [], [], 0)[0]


def size_of(file: Path) -> int | None:
    """Bytes of a file, if that can be known beforehand."""
    return file.stat().st_size if file != STANDARD_INPUT and file.is_file() else None


def _opened(file: Path) -> io.FileIO:
    if file == STANDARD_INPUT and sys.stdin is None:
        raise RamifyError("standard input is closed; give the name of a file.")
    try:
        # The process's own standard input stays open when this reader is closed.
        return io.FileIO(sys.stdin.fileno(), closefd=False) if file == STANDARD_INPUT else io.FileIO(file)
    except OSError as error:
        raise RamifyError(f"{file}: cannot be read ({error.strerror}); check the name.") from error
