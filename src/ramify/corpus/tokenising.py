"""Tokenises plain prose with spaCy's rules for each language, or with ours for English; no character is lost."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from ramify.corpus.penn import penn_tokens
from ramify.errors import RamifyError, RamifyWarning

Offsets = list[tuple[int, int]]

WHITE_SPACE = "none"
"""The tokeniser for text that is already tokenised"""
PENN = "penn"
"""The tokeniser for English as in the Penn Treebank, which needs no other package"""

_WITHOUT_SPACES = {
    "CJK": "Chinese or Japanese",
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "THAI": "Thai",
    "LAO": "Lao",
    "KHMER": "Khmer",
    "MYANMAR": "Burmese",
    "TIBETAN": "Tibetan",
}
_LONG_WORD, _LONG_PHRASE = 12, 4
_THAI = "\u0e00"
_PAUSES = frozenset("。，、！？；：")
_LANGUAGES_WITHOUT_SPACES = frozenset(["zh", "ja", "th", "lo", "km", "my", "bo"])
_HYPHENS = frozenset("-‐‑")


def split_at_spaces(text: str) -> Offsets:
    """The tokens of text that is already tokenised."""
    offsets, start = [], 0
    for token in text.split():
        start = text.index(token, start)
        offsets.append((start, start + len(token)))
        start += len(token)
    return offsets


def check_code(language: str) -> None:
    """Refuse a string that does not have the form of a language code, because importing spaCy takes a second."""
    if language not in (WHITE_SPACE, PENN) and not re.fullmatch("[a-z]{2,3}", language):
        raise RamifyError(
            f"no tokeniser is known for {language[:40]!r}; give a language code, such as en, xx for any, or penn."
        )


@cache
def tokeniser(language: str) -> Callable[[str], Offsets]:
    """A function from text to the offsets of its tokens: white space for `none`, our rules for `penn`, else spaCy's."""
    check_code(language)
    if language == WHITE_SPACE:
        return split_at_spaces
    if language == PENN:
        return penn_tokens
    if language in _LANGUAGES_WITHOUT_SPACES:
        raise RamifyError(
            f"text in {language!r} has no spaces between words; split it into words with a segmenter for that "
            "language first, and leave out tokenise."
        )
    try:
        import spacy
    except ImportError as error:
        raise RamifyError("--tokenise needs spaCy; install it with: pip install 'ramify[text]'.") from error
    try:
        pipeline = spacy.blank(language)
        if pipeline.lang in _LANGUAGES_WITHOUT_SPACES:
            raise ValueError("its tokeniser would cut other text into letters")
    except (ImportError, OSError, ValueError, AttributeError) as error:
        raise RamifyError(
            f"spaCy has no tokeniser for {language!r} that works here; give the code of another language, "
            "or xx, which suits any language with spaces."
        ) from error

    def tokenise(text: str) -> Offsets:
        # The memory zone frees the words again: without it, memory would grow with every new word of an endless text.
        with pipeline.memory_zone():
            tokens = [(token.idx, token.idx + len(token)) for token in pipeline.tokenizer(text) if not token.is_space]
        return _with_hyphenated_words(text, tokens)

    return tokenise


def _with_hyphenated_words(text: str, tokens: Offsets) -> Offsets:
    """Join words such as `well-known`, which the tokeniser divides at hyphens."""
    joined: Offsets = []
    for start, end in tokens:
        before = joined[-1] if joined else (-1, -1)
        touches = before[1] == start
        after_hyphen = touches and text[start].isalnum() and before[1] - before[0] > 1 and text[start - 1] in _HYPHENS
        is_hyphen = touches and end - start == 1 and text[start] in _HYPHENS and text[start - 1].isalnum()
        if after_hyphen or (is_hyphen and text[end : end + 1].isalnum()):
            joined[-1] = (before[0], end)
        else:
            joined.append((start, end))
    return joined


def script_without_spaces(tokens: Sequence[str]) -> str | None:
    """The languages without spaces in whose script a sentence is written, if it does not look tokenised.

    It does not if a token is longer than any word, or longer than most words and the only token, or joined with
    punctuation.
    """
    for token in tokens:
        joined = len(tokens) == 1 or not _PAUSES.isdisjoint(token)
        limit = _LONG_PHRASE if joined else _LONG_WORD
        if len(token) < limit or max(token) < _THAI:  # no other of these scripts comes before it in Unicode
            continue
        names = (unicodedata.name(character, "").partition(" ")[0] for character in token)
        known = [_WITHOUT_SPACES[name] for name in names if name in _WITHOUT_SPACES]
        if len(known) >= limit:
            return known[0]
    return None


def warn_about_script(text: str, where: str) -> bool:
    """Warn if a line is in a script without spaces and not tokenised; returns whether there was a warning."""
    script = script_without_spaces(text.split())
    if script:
        warnings.warn(
            f"{where}: this looks like {script} without spaces between words; split it into words first, with a "
            "segmenter for that language.",
            RamifyWarning,
            stacklevel=2,
        )
    return script is not None


def warn_about_prose(tokens: Iterable[str], where: str) -> bool:
    """Warn if a token consists of a word and punctuation; returns whether there was a warning."""
    joined = next((token for token in tokens if len(token) > 2 and token[-1] in ",;?" and token[:-1].isalpha()), None)
    if joined is not None:
        warnings.warn(
            f"{where}: {joined!r} contains a word and punctuation; if this is plain prose, --tokenise LANGUAGE "
            "(such as en, or xx for any) separates them.",
            RamifyWarning,
            stacklevel=2,
        )
    return joined is not None
