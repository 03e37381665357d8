"""The rule for words of a treebank, and the normal form of words."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Literal

import numpy as np

from ramify.corpus.tree import UNTAGGED, Parse
from ramify.errors import RamifyError, RamifyWarning

_PTB_WORD_TAG_LIST = (
    "CC CD DT EX FW IN JJ JJR JJS LS MD NN NNS NNP NNPS PDT POS PRP PRP$ RB RBR RBS RP SYM TO UH "
    "VB VBD VBG VBN VBP VBZ WDT WP WP$ WRB"
)
PTB_WORD_TAGS = frozenset(_PTB_WORD_TAG_LIST.split())
"""The 36 tags of words in the Penn Treebank; punctuation, traces and currency signs have others."""

BRACKET_WORDS = frozenset(["-LRB-", "-RRB-", "-LSB-", "-RSB-", "-LCB-", "-RCB-"])
_TRACE_TAG = "-NONE-"
_PTB_PUNCTUATION_TAGS = frozenset([",", ".", ":", "``", "''", '"', "$", "#"])
# Tags that the Penn Treebank's successors (OntoNotes, CRAFT, web text) added.
_PTB_LATER_TAGS = frozenset(["HYPH", "AFX", "ADD", "NFP", "GW", "XX", "NML"])
_PTB_TAGS = PTB_WORD_TAGS | BRACKET_WORDS | _PTB_PUNCTUATION_TAGS | _PTB_LATER_TAGS | {_TRACE_TAG}

_NEARLY_ALL = 0.99
# A tag that is this rare is not judged: two leaves in a whole treebank do not show what a tag stands for.
_TOO_RARE = 1 / 20_000

NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]
_NUMBER = re.compile(r"[0-9]+(?:[,.][0-9]+)*")
_COMMA_LIST = re.compile(r"[^\W_],[^\W_]")


@dataclass(frozen=True)
class WordRule:
    """Which leaves are words, by tag: those with one of the 36 tags if `ptb`, else all but the `removed`.

    Its name is `ptb`, `none`, or the removed tags separated by white space, such as `PU -LRB- -RRB-`.
    """

    removed: frozenset[str] = frozenset()
    ptb: bool = False

    @classmethod
    def from_name(cls, name: str) -> WordRule:
        """The rule that `str` gives this name."""
        tags = set(name.split())
        if not tags:
            raise RamifyError("The rule for words is empty; give ptb, none, or tags such as 'PU -LRB- -RRB-'.")
        if tags == {"ptb"}:
            return PTB_WORDS
        if tags == {"none"}:
            return ALL_WORDS
        for tag in sorted(tags):
            if _COMMA_LIST.search(tag):
                raise RamifyError(
                    f"The rule for words contains {tag[:40]!r}, but its tags must be separated by spaces; replace each "
                    "comma by a space."
                )
        return cls(removed=frozenset(tags))

    def __str__(self) -> str:
        if self.ptb:
            return "ptb"
        return " ".join(sorted(self.removed)) or "none"

    def word_mask(self, tags: Iterable[str]) -> list[bool]:
        """For each leaf, whether it is a word according to its tag."""
        if self.ptb:
            return [tag in PTB_WORD_TAGS for tag in tags]
        removed = self.removed
        return [tag not in removed for tag in tags]


def warn_about_absent_tags(rule: WordRule, parses: Iterable[Parse], source: str) -> None:
    """Warn about tags to remove that do not occur: they may be misspelt."""
    absent = rule.removed.difference(*(parse.tags for parse in parses))
    if absent:
        warnings.warn(
            f"{source}: no leaf has the tag {' or '.join(sorted(absent))}, so nothing is removed; check its spelling.",
            RamifyWarning,
            stacklevel=2,
        )


PTB_WORDS = WordRule(ptb=True)
ALL_WORDS = WordRule()


def guess_word_rule(parses: Iterable[Parse]) -> WordRule:
    """The rule that suits a treebank, judged by its tags and their leaves.

    The rule is `ptb` if nearly all leaves have tags of the Penn Treebank. Otherwise it removes traces, and every tag
    nearly all of whose leaves consist only of punctuation and symbols, unless most of these contain no punctuation: a
    circle or a plus sign is read aloud, so a tag for symbols counts as a tag for words, as in the Penn Treebank. Tags
    on fewer than one leaf in 20,000 are kept, and so are words without a tag.
    """
    leaves = Counter(chain.from_iterable(zip(parse.tags, parse.words, strict=True) for parse in parses))
    tokens, symbols, punctuation = Counter[str](), Counter[str](), Counter[str]()
    for (tag, word), count in leaves.items():
        tokens[tag] += count
        kinds = _kinds_of_characters(word)
        if kinds <= {"P", "S"}:
            symbols[tag] += count
            punctuation[tag] += count * ("P" in kinds)

    has_ptb_words = not PTB_WORD_TAGS.isdisjoint(tokens)
    if has_ptb_words and sum(tokens[tag] for tag in _PTB_TAGS) >= _NEARLY_ALL * tokens.total():
        return PTB_WORDS
    removed = {
        tag
        for tag, count in tokens.items()
        if symbols[tag] >= _NEARLY_ALL * count and punctuation[tag] > count / 2 and count >= _TOO_RARE * tokens.total()
    }
    if _TRACE_TAG in tokens:
        removed.add(_TRACE_TAG)
    return WordRule(removed=frozenset(removed - {UNTAGGED}))


def has_no_letters(word: str) -> bool:
    """Whether a token consists only of punctuation and symbols."""
    return _kinds_of_characters(word) <= {"P", "S"}


def _kinds_of_characters(word: str) -> set[str]:
    """The first letters of their Unicode categories: P is punctuation, S a symbol."""
    return {"P"} if word in BRACKET_WORDS else {unicodedata.category(character)[0] for character in word}


def remove_non_words(parse: Parse, rule: WordRule) -> Parse:
    """`parse` without the leaves that are not words, and without constituents that contained only such leaves."""
    return keep_leaves(parse, rule.word_mask(parse.tags))


def keep_leaves(parse: Parse, keep: Sequence[bool]) -> Parse:
    """`parse` with only the leaves for which `keep` is true, and the constituents that contain any of these."""
    if all(keep):
        return parse
    kept_before = np.zeros(len(keep) + 1, dtype=np.int32)
    np.cumsum(keep, out=kept_before[1:])
    spans = kept_before[parse.spans]
    filled = spans[:, 0] < spans[:, 1]
    return Parse(
        words=tuple(compress(parse.words, keep)),
        tags=tuple(compress(parse.tags, keep)),
        spans=spans[filled],
        labels=tuple(compress(parse.labels, filled)),
    )


def normalise(word: str, form: NormalForm = "NFC") -> str:
    """`word` in a Unicode normal form, lower-cased, every number in it (`1,234.5`) replaced with `N`.

    Do not apply it twice: the `N` of a normalised word would be lower-cased.
    """
    if word.isascii():
        return replace_numbers(word.lower())
    # Twice, because lower-casing may undo the normal form.
    lowered = unicodedata.normalize(form, unicodedata.normalize(form, word).lower())
    return replace_numbers(lowered)


def replace_numbers(word: str) -> str:
    """`word` with every number in it (`1,234.5`) replaced with `N`."""
    return _NUMBER.sub("N", word)
