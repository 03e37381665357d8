"""Sentences one after another from a file or a pipe of any length."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

from ramify.corpus.brackets import read_brackets
from ramify.corpus.cleaning import WordRule, remove_non_words
from ramify.corpus.reading import HEAD, Kind, check_kind, decoded_lines, guess_kind, iterate_text_lines
from ramify.errors import RamifyError

STANDARD_INPUT = Path("-")


def stream_sentences(file: Path, kind: Kind, word_rule: WordRule) -> Iterator[tuple[str, ...]]:
    """The words of each sentence; `-` is standard input.

    A blank line of text is a sentence without words, so that line n out belongs to line n in. Of trees only the
    leaves that are words under `word_rule` are given.
    """
    check_kind(kind)
    with _opened(file) as handle:
        source = "standard input" if file == STANDARD_INPUT else str(file)
        if kind == "auto":
            # What a pipe has ready may be less than HEAD bytes; a first line is enough to tell.
            kind = guess_kind(handle.peek(HEAD)[:HEAD])
        if kind == "text":
            yield from iterate_text_lines(handle, source)
            return
        for parse in read_brackets(decoded_lines(handle, source), source):
            yield remove_non_words(parse, word_rule).words


def _opened(file: Path) -> io.BufferedReader:
    try:
        # The process's own standard input stays open when this reader is closed.
        raw = io.FileIO(sys.stdin.fileno(), closefd=False) if file == STANDARD_INPUT else io.FileIO(file)
    except OSError as error:
        raise RamifyError(f"{file}: cannot be read ({error.strerror}); check the name.") from error
    return io.BufferedReader(raw, HEAD)
