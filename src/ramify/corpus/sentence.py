"""A sentence as it was written: its text, its tokens, and which of them are words."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING

from ramify.corpus.constraints import Constraints
from ramify.corpus.tree import Parse
from ramify.errors import RamifyError

if TYPE_CHECKING:
    from ramify.corpus.table_rows import Row

_SURROGATE = re.compile("[\ud800-\udfff]")
PUNCTUATION_TAG = "PUNCT"
"""The tag of tokens that the grammar never sees"""


@dataclass(frozen=True, slots=True)
class Sentence:
    """`text[i:j]` is a token for each (i, j) in `offsets`; between tokens there is only white space."""

    text: str
    offsets: tuple[tuple[int, int], ...]
    is_word: tuple[bool, ...]
    """For each token whether it is a word; the others are punctuation."""
    where: str = ""
    """File and line, for errors"""
    tree: Parse | None = None
    """Its tree over all tokens, if it was read from one"""
    constraints: Constraints | None = None
    """Spans that must or must not be constituents when it is parsed"""
    row: Row | None = field(default=None, compare=False)
    """The other columns of its row, if it was read from a table"""

    def __post_init__(self) -> None:
        # The same checks as for files, so that every tree can be written.
        if "\0" in self.text:
            raise RamifyError(
                f"{self.where or 'The sentence'}: contains a NUL character, so it is not text; remove it."
            )
        if not self.text.isascii() and _SURROGATE.search(self.text):
            raise RamifyError(
                f"{self.where or 'The sentence'}: contains an unpaired surrogate; decode the text as UTF-8."
            )

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens, exactly as in the text."""
        return tuple([self.text[start:end] for start, end in self.offsets])

    @property
    def words(self) -> tuple[str, ...]:
        """The tokens that are words."""
        return tuple(compress(self.tokens, self.is_word))

    @classmethod
    def from_tokens(cls, tokens: Sequence[str], is_word: Sequence[bool] | None = None, where: str = "") -> Sentence:
        """A sentence of which only the tokens are known; its text has one space between them."""
        offsets, start = [], 0
        for token in tokens:
            # Trees separate words by ASCII white space only, so other white space is a leaf like any other.
            if not isinstance(token, str) or not token.strip(string.whitespace):
                raise RamifyError(f"{token!r} is not a token of a sentence; give a string that is not blank.")
            offsets.append((start, start + len(token)))
            start += len(token) + 1
        return cls(" ".join(tokens), tuple(offsets), tuple(is_word or [True] * len(tokens)), where)
