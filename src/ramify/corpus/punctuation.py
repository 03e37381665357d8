"""The rule that decides which tokens of a text are punctuation. It is saved with the model."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

from ramify.corpus.cleaning import BRACKET_WORDS, WordRule
from ramify.corpus.penn import CURRENCY
from ramify.corpus.tree import Parse
from ramify.errors import RamifyError

# Unicode counts these as punctuation, but they are read aloud. Their full-width and Arabic forms follow below.
_WORD_LIKE_SIGNS = frozenset("%‰‱&@#§" + "٪﹪％＆﹠＠＃﹟")
# Unicode counts these as symbols, but they stand for quotation marks.
_QUOTATION_SIGNS = frozenset("`´")


@lru_cache(maxsize=1 << 16)
def unicode_punctuation(token: str) -> bool:
    """Whether a token is only punctuation; `%`, `&` and similar signs are words, invisible characters are not."""
    if token in BRACKET_WORDS:
        return True
    return all(
        character in _QUOTATION_SIGNS
        or (_is_silent(unicodedata.category(character)) and character not in _WORD_LIKE_SIGNS)
        for character in token
    )


def _is_silent(category: str) -> bool:
    return category[0] == "P" or category in ("Cf", "Cc")


@dataclass(frozen=True)
class Punctuation:
    """Tokens that are punctuation in Unicode or in `also`, but not in `never`; with `keep`, no token is punctuation."""

    also: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    keep: bool = False

    def __contains__(self, token: str) -> bool:
        if self.keep:
            return False
        return token in self.also or (token not in self.never and unicode_punctuation(token))

    @classmethod
    def named(cls, name: str) -> Punctuation:
        """The rule with this name in the settings; `penn` removes currency signs too, as the tags of the Penn "
        "Treebank do."""
        return cls(also=CURRENCY if name == "penn" else frozenset(), keep=name == "keep")

    @classmethod
    def from_trees(cls, parses: Iterable[Parse], rule: WordRule) -> Punctuation:
        """Forms seen only with tags of non-words count as punctuation, and forms seen as words do not.

        Other forms are judged as in text.
        """
        leaves = set(chain.from_iterable(zip(parse.tags, parse.words, strict=True) for parse in parses))
        tags = sorted({tag for tag, _ in leaves})
        of_words = {tag for tag, is_word in zip(tags, rule.word_mask(tags), strict=True) if is_word}
        words = {form for tag, form in leaves if tag in of_words}
        others = {form for tag, form in leaves if tag not in of_words} - words
        return cls(
            also=frozenset(form for form in others if not unicode_punctuation(form)),
            never=frozenset(form for form in words if unicode_punctuation(form)),
        )

    def as_record(self) -> dict[str, Any]:
        """As JSON values."""
        if self.keep:
            return {"rule": "keep"}
        return {"rule": "unicode", "also": sorted(self.also), "never": sorted(self.never)}

    @classmethod
    def from_record(cls, record: Any) -> Punctuation:
        """The rule that `as_record` returned."""
        if record == {"rule": "keep"}:
            return cls(keep=True)
        forms = [record.get(name) for name in ("also", "never")] if isinstance(record, dict) else []
        known = bool(forms) and record.get("rule") == "unicode"
        if not known or not all(isinstance(each, list) and all(isinstance(f, str) for f in each) for each in forms):
            raise RamifyError(
                "the rule for punctuation is unknown to this version; use the version of ramify that wrote it."
            )
        return cls(frozenset(record["also"]), frozenset(record["never"]))
