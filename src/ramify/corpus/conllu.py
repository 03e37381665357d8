"""CoNLL-U, the format of Universal Dependencies: ten columns separated by tabs, a blank line after each sentence.

How a line is read:

- A line with a number as ID is a syntactic word. These words are the tokens: of the French `2-3 du`, `2 de`, `3 le` the
  tokens are `de` and `le`, because only syntactic words have heads.
- A range such as `2-3` says how the words 2 to 3 are written; an empty node such as `8.1` stands for an omitted word.
  Both are checked and then left out.
- White space inside a FORM, as in `10 000`, becomes a no-break space: trees and vocabularies separate words by spaces.

Only scoring needs heads, so only `ConlluSentence.head_numbers` checks the HEAD column.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ramify.corpus.brackets import read_brackets, write_brackets
from ramify.corpus.punctuation import Punctuation
from ramify.corpus.sentence import PUNCTUATION_TAG, Sentence
from ramify.corpus.tree import Parse
from ramify.errors import RamifyError, RamifyWarning, shortened

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
UNSPECIFIED = "_"
"""The content of an empty column"""
CONSTITUENCY = "# constituency = "
"""The comment in which Stanza keeps the constituents of a sentence"""
_ROOT = "ROOT"
"""The label of Stanza's outermost bracket"""

# Nine digits are more than any sentence needs; Python refuses to convert thousands of them.
_ID = re.compile(r"([0-9]{1,9})(?:([-.])([0-9]{1,9}))?", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_WHITE_SPACE = re.compile(r"\s", re.ASCII)
_NAMES_A_SENTENCE = re.compile(r"#\s*(sent_id|text)\s*=")
_NAMES_COLUMNS = re.compile(r"#\s*global\.columns\s*=(.*)")


@dataclass(frozen=True)
class ConlluSentence:
    """The syntactic words of a sentence, with HEAD as it is written."""

    forms: tuple[str, ...]
    upos: tuple[str, ...]
    heads: tuple[str, ...]
    comments: tuple[str, ...]
    source: str
    lines: tuple[int, ...]
    """Line number of each word, counted from 1"""

    @property
    def where(self) -> str:
        """File and line, for errors."""
        return f"{self.source}, line {self.lines[0]}"

    def with_words(self, punctuation: Punctuation) -> Sentence:
        """The sentence. UPOS decides which tokens are words; without UPOS, or if punctuation is kept, `punctuation`."""
        is_word = [
            form not in punctuation if punctuation.keep or upos == UNSPECIFIED else upos != PUNCTUATION_TAG
            for form, upos in zip(self.forms, self.upos, strict=True)
        ]
        return Sentence.from_tokens(self.forms, is_word, self.where)

    def head_numbers(self) -> tuple[int, ...]:
        """The head of each word, 0 for the root; checks that there is one root, from which every word is reachable."""
        heads = tuple(self._head(place) for place in range(len(self.heads)))
        roots = [place for place, head in enumerate(heads) if head == 0]
        if len(roots) > 1:
            raise RamifyError(
                f"{self.source}, line {self.lines[roots[1]]}: {shortened(self.forms[roots[1]])} is a second root, "
                f"after {shortened(self.forms[roots[0]])} in line {self.lines[roots[0]]}; give HEAD 0 to one word."
            )
        cycle = _cycle(heads)
        if cycle:
            named = " -> ".join(shortened(self.forms[place]) for place in cycle[:4]) + (" ..." if cycle[4:] else "")
            raise RamifyError(
                f"{self.source}, line {self.lines[cycle[0]]}: the heads form a cycle, {named} and back, without "
                "reaching the root; correct one of them."
            )
        return heads

    def _head(self, place: int) -> int:
        text, where = self.heads[place], f"{self.source}, line {self.lines[place]}"
        if text in (UNSPECIFIED, ""):
            raise RamifyError(
                f"{where}: {shortened(self.forms[place])} has no head; give its number in column 7, HEAD, or 0 for the "
                "root."
            )
        if not _NUMBER.fullmatch(text):
            raise RamifyError(
                f"{where}: the HEAD {shortened(text)} is not a number; give the ID of a word of this sentence, or 0."
            )
        head = int(text)
        if head > len(self.heads):
            raise RamifyError(
                f"{where}: the HEAD {head} is outside the sentence, which has {len(self.heads)} words; give the ID of "
                "one of them, or 0."
            )
        if head == place + 1:
            raise RamifyError(f"{where}: {shortened(self.forms[place])} is its own head; give another, or 0.")
        return head

    def constituency(self) -> Parse | None:
        """The tree in the comment that Stanza writes; None without such a comment."""
        comments = [comment.removeprefix(CONSTITUENCY) for comment in self.comments if comment.startswith(CONSTITUENCY)]
        if not comments:
            return None
        trees = list(read_brackets(comments, f"{self.where}, comment constituency"))
        if len(trees) != 1:
            raise RamifyError(f"{self.where}: the comment constituency has {len(trees)} trees; keep one.")
        return trees[0]


def _cycle(heads: Sequence[int]) -> list[int]:
    """The places of words whose heads form a cycle, beginning with the first of them; empty if there is no cycle."""
    reaches_root = [False] * len(heads)
    for start in range(len(heads)):
        path: dict[int, None] = {}
        place = start
        while place >= 0 and not reaches_root[place]:
            if place in path:
                visited = list(path)
                cycle = visited[visited.index(place) :]
                first = cycle.index(min(cycle))
                return cycle[first:] + cycle[:first]
            path[place] = None
            place = heads[place] - 1
        for each in path:
            reaches_root[each] = True
    return []


@dataclass
class _Builder:
    """The sentence being read."""

    source: str
    first_line: int
    comments: list[str] = field(default_factory=list)
    forms: list[str] = field(default_factory=list)
    upos: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    range_end: int = 0
    """Last word of the latest range"""
    range_line: int = 0
    empty_nodes: int = 0
    """After the latest word"""

    def add(self, line: str, number: int) -> None:
        where = f"{self.source}, line {number}"
        columns = line.split("\t")
        if len(columns) != len(COLUMNS):
            separated = "no tabs" if len(columns) == 1 else f"{len(columns)} columns"
            raise RamifyError(
                f"{where}: this line has {separated}, but CoNLL-U has {len(COLUMNS)} columns separated by tabs; "
                "check whether "
                "tabs were lost."
            )
        found = _ID.fullmatch(columns[0])
        if found is None:
            raise RamifyError(
                f"{where}: the ID {shortened(columns[0])} is not a number such as 3, a range such as 3-4 or an empty "
                "node such as 3.1; correct it."
            )
        first, mark, last = int(found[1]), found[2], int(found[3] or 0)
        if mark == "-":
            self._add_range(first, last, where, number)
        elif mark == ".":
            self._add_empty_node(first, last, where)
        else:
            self._add_word(first, columns, where, number)

    def _add_word(self, identity: int, columns: Sequence[str], where: str, number: int) -> None:
        if identity != len(self.forms) + 1:
            raise RamifyError(
                f"{where}: the word has the ID {identity} instead of {len(self.forms) + 1}; add the lines that are "
                "missing, or the blank line between two sentences."
            )
        form = columns[1]
        if not form.strip():
            raise RamifyError(f"{where}: the FORM of word {identity} is empty; give the word, or _ for an underscore.")
        self.forms.append(_WHITE_SPACE.sub("\u00a0", form.strip()))
        self.upos.append(columns[3])
        self.heads.append(columns[6])
        self.lines.append(number)
        self.empty_nodes = 0

    def _add_range(self, first: int, last: int, where: str, number: int) -> None:
        if first <= self.range_end:
            raise RamifyError(
                f"{where}: the range {first}-{last} overlaps the one in line {self.range_line}, which ends with word "
                f"{self.range_end}; put each word into one range at most."
            )
        if first != len(self.forms) + 1 or last < first:
            raise RamifyError(
                f"{where}: the range {first}-{last} must begin with word {len(self.forms) + 1}, which comes next, and "
                "must not end before it; correct it."
            )
        self.range_end, self.range_line = last, number

    def _add_empty_node(self, after: int, count: int, where: str) -> None:
        expected = (len(self.forms), self.empty_nodes + 1)
        if (after, count) != expected:
            raise RamifyError(
                f"{where}: the empty node {after}.{count} must have the ID {expected[0]}.{expected[1]} here; correct "
                "it."
            )
        self.empty_nodes = count

    def finish(self) -> Iterator[ConlluSentence]:
        """The sentence, if there is one; a block of comments without a sentence is allowed."""
        if not self.forms:
            if self.range_line or self.empty_nodes or any(map(_NAMES_A_SENTENCE.match, self.comments)):
                raise RamifyError(
                    f"{self.source}, line {self.first_line}: the sentence that begins here has no words; add them, or "
                    "remove it."
                )
            return
        if self.range_end > len(self.forms):
            raise RamifyError(
                f"{self.source}, line {self.range_line}: the range ends with word {self.range_end}, but the sentence "
                f"has {len(self.forms)} words; correct it, or add the words."
            )
        if len(self.forms) > 1 and set(self.forms) == {UNSPECIFIED}:
            raise RamifyError(
                f"{self.source}, line {self.lines[0]}: all forms of the sentence are _, so this treebank was published "
                "without its text; add the text first."
            )
        yield ConlluSentence(
            tuple(self.forms),
            tuple(self.upos),
            tuple(self.heads),
            tuple(self.comments),
            self.source,
            tuple(self.lines),
        )


def read_conllu(lines: Iterable[str], source: str) -> Iterator[ConlluSentence]:
    """Every sentence in order; an error names the file and the line.

    A file that ends without a blank line may be truncated, so its last sentence is read with a warning.
    """
    sentence, number = _Builder(source, 1), 0
    for number, line in enumerate(lines, start=1):
        text = line.rstrip("\r\n")
        if not text.strip(" "):
            yield from sentence.finish()
            sentence = _Builder(source, number + 1)
        elif text.startswith("#"):
            _check_columns(text, f"{source}, line {number}")
            sentence.comments.append(text)
        else:
            sentence.add(text, number)
    if sentence.forms:
        warnings.warn(
            f"{source}, line {number}: no blank line follows the last sentence, which may be incomplete; check that "
            "the file is not truncated.",
            RamifyWarning,
            stacklevel=2,
        )
    yield from sentence.finish()


def _check_columns(comment: str, where: str) -> None:
    found = _NAMES_COLUMNS.match(comment)
    if found and tuple(found[1].split()) != COLUMNS:
        raise RamifyError(
            f"{where}: the columns are not the ten of CoNLL-U ({' '.join(COLUMNS)}); convert the file first."
        )


def write_conllu(sentence: Sentence, tags: Sequence[str], tree: Parse, heads: Sequence[int] | None) -> str:
    """A sentence with a line for each token and a line end after the last; an empty string if it has no tokens.

    The tags of words are XPOS; UPOS says which tokens are punctuation. Relations have no names: `root`, `punct` for
    punctuation and `dep`, or `_` without heads. The tree is a comment.
    """
    if not sentence.offsets:
        return ""
    text, words = "", []
    following = [start for start, _ in sentence.offsets[1:]]
    for place, token in enumerate(sentence.tokens):
        is_word, tag = sentence.is_word[place], tags[place]
        joined = place < len(following) and following[place] == sentence.offsets[place][1]
        text += token + ("" if joined or place == len(following) else " ")
        head, relation = UNSPECIFIED, UNSPECIFIED
        if heads is not None:
            head = str(heads[place])
            relation = "root" if head == "0" else "dep" if is_word else "punct"
        upos, xpos = (UNSPECIFIED, tag) if is_word else (PUNCTUATION_TAG, UNSPECIFIED)
        misc = "SpaceAfter=No" if joined else UNSPECIFIED
        columns = (str(place + 1), token, UNSPECIFIED, upos, xpos, UNSPECIFIED, head, relation, UNSPECIFIED, misc)
        words.append("\t".join(columns) + "\n")
    return f"# text = {text}\n{CONSTITUENCY}{write_brackets(tree, _ROOT)}\n{''.join(words)}"
