"""C-PCFG: the compound PCFG, an N-PCFG with separate rules for every sentence (Kim, Dyer and Rush 2019, sec. 2.2)."""

from __future__ import annotations

from typing import Any

from ramify.models.compound import LATENT_SIZE
from ramify.models.n_pcfg import NPCFG


class CPCFG(NPCFG):
    """The N-PCFG's networks with z joined to every symbol's embedding, and an encoder of sentences."""

    @classmethod
    def default_settings(cls) -> dict[str, Any]:
        """Sentences of at most 30 words in the first epoch (Kim et al. 2019, sec. 3.2)."""
        return {"curriculum": 30}

    def __init__(
        self,
        nonterminals: int,
        preterminals: int,
        words: int,
        embedding: int = 256,
        gain: float = 1.0,
        latent: int = LATENT_SIZE,
    ) -> None:
        super().__init__(nonterminals, preterminals, words, embedding, gain, latent)
