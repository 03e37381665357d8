"""Sentences from files: bracketed trees or text, a single file or a folder of them."""

from __future__ import annotations

import codecs
import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from ramify.corpus.brackets import read_brackets
from ramify.corpus.cleaning import WordRule, remove_non_words
from ramify.corpus.punctuation import Punctuation
from ramify.corpus.sentence import PUNCTUATION_TAG, Sentence
from ramify.corpus.splitting import Splitter
from ramify.corpus.text import TextRules
from ramify.corpus.tree import UNTAGGED, Parse
from ramify.errors import RamifyError

Kind = Literal["auto", "text", "brackets"]
AS_IS = TextRules(punctuation=Punctuation(keep=True))
"""Text whose tokens are all words"""
SPLITS = ("train", "dev", "test")

TEXT_WORDS = WordRule(removed=frozenset([PUNCTUATION_TAG]))
"""The words of text: what counts as punctuation was settled when it was read."""

HEAD = 1 << 16
"""Bytes of a file that are enough to tell its kind"""

# Trees of a single leaf, then `(S (NP the` up to the first `)`. Labels touch their bracket, unlike words of
# tokenised text such as `( see ( smith 2010 ) )`; outer ones are empty or begin with a letter or digit.
_LOOKS_LIKE_TREES = re.compile(
    r"\s*+(?:\([^\s()]++[ \t]++[^\s()]++\)\s*+)*+"
    r"(?P<tree>(?:\((?:\w[^\s()]*+)?+\s*+(?=\())++\([^\s()]++\s++[^()]*+\))"
)
# What begins like a tree looks like one with some of these behind it: it may end before or in a label, behind it, in
# a word, or in or behind a tree of a single leaf.
_RESTS_OF_TREES = ("((A a)", "(A a)", " a)", ")", ")((A a)", " a)((A a)", "a)((A a)")


@dataclass(frozen=True)
class Corpus:
    """Sentences and where they come from."""

    parses: list[Parse]
    """With gold trees if `has_trees`; else tokens alone: no spans, tags `_` for words and `PUNCT` for the rest."""
    kind: Literal["text", "brackets"]
    source: str
    checksum: str
    """sha256 of the bytes read, the files of a folder in order one after another"""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many lines or sentences were left out, by reason"""

    @property
    def has_trees(self) -> bool:
        """Whether the parses are gold trees."""
        return self.kind == "brackets"

    def __len__(self) -> int:
        return len(self.parses)

    def words_only(self, rule: WordRule) -> Corpus:
        """Every sentence without the leaves that are no words; sentences of nothing else are dropped."""
        cleaned = [remove_non_words(parse, rule) for parse in self.parses]
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


def read_sentences(
    path: str | Path, kind: Kind = "auto", split: str | None = None, text_rules: TextRules = AS_IS
) -> Corpus:
    """All sentences of a file, or of every file of a folder and its subfolders, hidden ones excepted.

    Of a folder that holds train, dev and test files, `split` says which to read. The kind `auto` takes a file
    for bracketed trees if it begins like one. Blank lines are skipped. `text_rules` say how text is read.
    """
    check_kind(kind)
    path = Path(path)
    checksum = hashlib.sha256()
    parses: list[Parse] = []
    blank_lines = 0
    kinds: dict[Literal["text", "brackets"], Path] = {}
    for file in _files(path, split):
        data = _bytes_of(file)
        checksum.update(data)
        found = guess_kind(data) if kind == "auto" else kind
        kinds.setdefault(found, file)
        if len(kinds) > 1:
            raise RamifyError(
                f"{path}: {kinds['brackets'].name} holds trees and {kinds['text'].name} text; "
                "keep one kind in the folder, or say which kind it is."
            )
        if found == "brackets":
            parses.extend(read_brackets(decoded_lines(io.BytesIO(data), str(file)), str(file)))
            continue
        for sentence in text_rules.sentences(decoded_lines(io.BytesIO(data), str(file)), str(file)):
            if sentence.offsets:
                parses.append(_unparsed(sentence))
            else:
                blank_lines += 1
    if not parses:
        raise RamifyError(f"{path}: there is no sentence in it; give a file with one sentence a line or with trees.")
    dropped = {"blank lines": blank_lines} if blank_lines else {}
    return Corpus(parses, next(iter(kinds)), str(path), checksum.hexdigest(), dropped)


def learn_splitter(path: str | Path, split: str | None = None) -> Splitter:
    """Where sentences end, learnt from the prose of a file or folder."""
    files = _files(Path(path), split)
    return Splitter.learnt_from("".join(decoded_lines(io.BytesIO(_bytes_of(file)), str(file))) for file in files)


def _unparsed(sentence: Sentence) -> Parse:
    tags = tuple(UNTAGGED if is_word else PUNCTUATION_TAG for is_word in sentence.is_word)
    return Parse(sentence.tokens, tags, np.empty((0, 2), dtype=np.int32), ())


def check_kind(kind: str) -> None:
    """Refuse a kind of data that is not known."""
    if kind not in get_args(Kind):
        raise RamifyError(f"The kind of data {kind!r} is unknown; give one of {', '.join(get_args(Kind))}.")


def guess_kind(data: bytes) -> Literal["text", "brackets"]:
    """`brackets` if the file begins like a tree and no word follows the end of that tree."""
    head = _head(data)
    match = _LOOKS_LIKE_TREES.match(head)
    if match is None:
        return "text"
    behind = _behind_tree(head[match.start("tree") :])
    return "brackets" if behind is None or behind.lstrip()[:1] in ("", "(", ")") else "text"


def is_undecided(data: bytes) -> bool:
    """Whether the kind of a file that goes on behind `data` cannot be guessed yet: its first tree is not whole."""
    head = _head(data)
    match = _LOOKS_LIKE_TREES.match(head)
    if match is None:
        return any(_LOOKS_LIKE_TREES.match(head + rest) for rest in _RESTS_OF_TREES)
    behind = _behind_tree(head[match.start("tree") :])
    # What follows on the line of the tree's end tells trees from text.
    return behind is None or not (behind.strip() or "\n" in behind)


def _head(data: bytes) -> str:
    return data[:HEAD].decode("utf-8-sig", errors="replace")


def _behind_tree(text: str) -> str | None:
    """What follows the tree that `text` begins with; None if that is not closed."""
    depth = 0
    for bracket in re.finditer(r"[()]", text):
        depth += 1 if bracket.group() == "(" else -1
        if depth == 0:
            return text[bracket.end() :]
    return None


def split_paths(folder: str | Path) -> dict[str, Path]:
    """The files of `folder` named `train`, `dev` (or `valid`) and `test`, whatever their endings."""
    if not Path(folder).is_dir():
        raise RamifyError(f"{folder}: there is no such folder; check the name.")
    found: dict[str, Path] = {}
    for file in sorted(Path(folder).iterdir()):
        name = file.name.partition(".")[0]
        name = "dev" if name == "valid" else name
        if name not in SPLITS or not file.is_file():
            continue
        if name in found:
            raise RamifyError(f"{folder}: both {found[name].name} and {file.name} could be the {name} set; keep one.")
        found[name] = file
    return found


def decoded_lines(handle: Iterable[bytes], source: str) -> Iterator[str]:
    """The lines of a UTF-8 file; one without line feeds ends its lines with carriage returns, as on old Macs."""
    lines = decoded(handle, source)
    for first in lines:
        yield from [first] if first.endswith("\n") else io.StringIO(first, newline=None)
        break
    yield from lines


def decoded(handle: Iterable[bytes], source: str, first_line: int = 1, encoding: str = "utf-8") -> Iterator[str]:
    """Lines of text, without a byte order mark; lines that are not in the encoding are named in the error."""
    for number, line in enumerate(handle, start=first_line):
        try:
            text = line.decode(encoding)
        except UnicodeDecodeError as error:
            other = "utf-16" if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "latin1"
            raise RamifyError(
                f"{source}, line {number}: this is not {encoding.upper()}; convert the file, "
                f"for example with iconv -f {other} -t utf-8."
            ) from error
        yield text.removeprefix("\ufeff") if number == 1 else text


def _files(path: Path, split: str | None) -> list[Path]:
    if not path.exists():
        raise RamifyError(f"{path}: there is no such file or folder; check the name.")
    if not path.is_dir():
        return [path]
    splits = split_paths(path)
    if split is not None:
        if split not in splits:
            raise RamifyError(
                f"{path}: there is no {split} file in this folder; name one {split}.trees or {split}.txt."
            )
        return [splits[split]]
    if splits:
        raise RamifyError(f"{path}: this folder holds {', '.join(splits)} files; say which of them to read.")
    inside = sorted(path.rglob("*"))
    files = [f for f in inside if f.is_file() and not any(p.startswith(".") for p in f.relative_to(path).parts)]
    if not files:
        raise RamifyError(f"{path}: this folder holds no files; give one with trees or text in it.")
    return files


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise RamifyError(f"{file}: this file cannot be read ({error.strerror}); check its permissions.") from error
