"""Default settings that depend on the amount of text: initialisation, batch size and epochs.

The two rows were chosen on the dev sets of fr-sequoia and en-craft; docs/better-trees.md has the figures.
"""

from __future__ import annotations

from typing import Any

FEW_SENTENCES = 10_000


def sizes_for_text(model: str, sentences: int) -> dict[str, Any]:
    """Settings, by name, for training a family of models on this many sentences."""
    few = sentences < FEW_SENTENCES
    chosen: dict[str, Any] = {"epochs": 10, "batch_size": 8} if few else {"epochs": 4, "batch_size": 16}
    if model == "tn-pcfg":
        chosen["patience"] = 2
        if few:  # with more text, grammars with this initialisation are still poor after four epochs
            chosen |= {"initialisation": "xavier-normal", "shared_projection": True, "tied_embeddings": True}
    return chosen
