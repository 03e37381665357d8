"""How large a grammar is, and how long it is trained, where nobody chose: by the amount of text.

The rows were chosen on the dev sets of fr-sequoia and en-craft; docs/better-trees.md has the figures.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class _Row(NamedTuple):
    sentences: int
    """From this many training sentences on"""
    preterminals: int
    epochs: int
    batch_size: int


_ROWS = (_Row(0, 30, 15, 4), _Row(1_000, 60, 10, 8), _Row(10_000, 60, 5, 16), _Row(100_000, 120, 2, 16))
_MANY_SYMBOLS = frozenset(["tn-pcfg"])
"""Families for which the number of symbols depends on the text; others keep their published number"""


def sizes_for_text(model: str, sentences: int) -> dict[str, Any]:
    """Settings, by name, for training a family of models on this many sentences."""
    row = max(row for row in _ROWS if row.sentences <= sentences)
    sizes: dict[str, Any] = {"epochs": row.epochs, "batch_size": row.batch_size}
    return sizes | {"preterminals": row.preterminals} if model in _MANY_SYMBOLS else sizes
