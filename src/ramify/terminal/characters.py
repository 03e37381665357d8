"""Characters beyond ASCII, and their replacements if standard output cannot show them."""

from __future__ import annotations

import sys
from typing import Literal

_ASCII = str.maketrans({"≤": "<=", "±": "+-", "→": "->"})
_LINES = "─│┌┐┬┴┼"


def ascii_if_needed(text: str) -> str:
    """Our `text`, in ASCII if necessary; not for the words of a user, which must not change."""
    return text if _can_show(text) else text.translate(_ASCII)


def tree_format() -> Literal["pretty", "ascii"]:
    """The format in which trees can be drawn on standard output."""
    return "pretty" if _can_show(_LINES) else "ascii"


def _can_show(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
