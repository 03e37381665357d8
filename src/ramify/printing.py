"""Makes text safe to show, without characters that a terminal, an editor or a page would interpret."""

from __future__ import annotations

import unicodedata

_REFUSED_CATEGORIES = frozenset({"Cc", "Cs", "Cn", "Co", "Zl", "Zp"})
"""Control characters, surrogates, unassigned and private characters, ends of lines and paragraphs"""
_REFUSED_FORMATS = frozenset(
    map(
        chr,
        (
            *range(0x202A, 0x202F),  # embeddings and overrides of the writing direction
            *range(0x2066, 0x206A),  # isolates of the writing direction
            0xFEFF,  # byte order mark
            *range(0xFFF9, 0xFFFC),  # interlinear annotations
            *range(0xE0000, 0xE0080),  # tags, which are invisible
        ),
    )
)
"""These reorder or hide text; other format characters belong to spelling, such as the joiners of Persian and Hindi."""


def printable(text: str, instead: str = "\ufffd") -> str:
    """`text` with `instead` in place of every character that would be interpreted instead of shown."""
    return text if text.isprintable() else "".join(sign if _is_shown(sign) else instead for sign in text)


def _is_shown(sign: str) -> bool:
    return unicodedata.category(sign) not in _REFUSED_CATEGORIES and sign not in _REFUSED_FORMATS
