"""Words of plain English as the Penn Treebank divides them: `do n't`, `the dog 's`, `well-known`, `$ 5`.

It follows the conventions of the Treebank's tokeniser (MacIntyre 1995), with these differences: characters do not
change, so quotation marks keep their form; typographic quotation marks and apostrophes are treated like plain ones; the
final full stop of an abbreviation such as `U.S.` stays with its word. Text must be split into sentences: only the last
full stop of a sentence is separated.
"""

from __future__ import annotations

import re

CURRENCY = frozenset(["$", "US$", "C$", "A$", "NZ$", "HK$", "S$", "#", "£", "€", "¥"])
"""Signs that the Penn Treebank does not tag as words"""

_PIECE = re.compile(
    r"""
      (?:https?|ftp)://[^\s<>"]*[^\s<>"'.,;:?!()\[\]]  # addresses
    | ``|''|\.{2,}|-{2,}                              # quotation marks, dots, dashes
    | (?:US|C|A|NZ|HK|S)?\$|[#£€¥]                    # before numbers
    | [\[\](){}<>"“”„«»…—―;?!%]                       # alone, wherever they are
    | [,:](?![0-9])|(?<![0-9])[,:]                    # but not within 1,000 and 5:30
    | (?: (?!--|''|\.{2})[^\s\[\](){}<>"“”„«»…—―;?!%,:] | (?<=[0-9])[,:](?=[0-9]) )+
    """,
    re.VERBOSE,
)
_APOSTROPHES = "'’‘`"
_CLOSING = "\"'”’)]} \t\n\r"
_CLITIC = re.compile(r"(?<=[\w.])(?:n['’]t|['’](?:s|m|d|re|ve|ll))$", re.IGNORECASE)
_DIVIDED = frozenset(["'s", "'m", "'d", "'re", "'ve", "'ll", "'em"])
"""Words that begin with an apostrophe"""
_TWO_WORDS = {"cannot": 3, "gonna": 3, "gotta": 3, "wanna": 3, "gimme": 3, "lemme": 3, "'tis": 2, "'twas": 2}
"""The length of the first word, by the form of the whole"""
_LONGEST = max(map(len, _TWO_WORDS))


def penn_tokens(text: str) -> list[tuple[int, int]]:
    """The offsets of the tokens of one sentence."""
    last = len(text.rstrip(_CLOSING))
    found: list[tuple[int, int]] = []
    for piece in _PIECE.finditer(text):
        found += _divided(text, *piece.span(), last)
    return found


def _divided(text: str, start: int, end: int, last: int) -> list[tuple[int, int]]:
    """Separate quotation marks, the full stop at the end of the sentence, and a clitic from a piece of text."""
    if not any(map(str.isalnum, text[start:end])):
        return [(start, end)]
    before: list[tuple[int, int]] = []
    after: list[tuple[int, int]] = []
    while text[start] in _APOSTROPHES and not _begins_with_apostrophe(text, start, end):
        before.append((start, start + 1))
        start += 1
    while text[end - 1] in _APOSTROPHES or (end == last and _ends_sentence(text, start, end)):
        end -= 1
        after.append((end, end + 1))
    clitic = _CLITIC.search(text, start, end)
    cut = start + _TWO_WORDS.get(_plain(text, start, end), 0)
    cut = clitic.start() if clitic else cut
    words = [(start, cut), (cut, end)] if start < cut else [(start, end)]
    return [*before, *words, *reversed(after)]


def _plain(text: str, start: int, end: int) -> str:
    """A word in the form used in the tables; empty if it is longer than all their entries."""
    return text[start:end].lower().replace("’", "'") if end - start <= _LONGEST else ""


def _begins_with_apostrophe(text: str, start: int, end: int) -> bool:
    word = _plain(text, start, end)
    return word in _DIVIDED or word in _TWO_WORDS


def _ends_sentence(text: str, start: int, end: int) -> bool:
    """Whether the last character is a full stop that does not belong to U.S., e.g. or an initial."""
    if text[end - 1] != ".":
        return False
    has_another = text.rfind(".", start, end - 1) >= 0 and text[end - 2].isalpha()
    return not (has_another or (end - start == 2 and text[start].isupper()))
