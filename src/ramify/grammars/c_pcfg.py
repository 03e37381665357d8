"""C-PCFG: the compound PCFG, an N-PCFG with rules of its own for every sentence (Kim, Dyer and Rush 2019, sec. 2.2)."""

from __future__ import annotations

from ramify.grammars.compound import LATENT
from ramify.grammars.n_pcfg import NPCFG


class CPCFG(NPCFG):
    """The N-PCFG's networks with z joined to every symbol's embedding, and an encoder of sentences."""

    def __init__(
        self,
        nonterminals: int,
        preterminals: int,
        words: int,
        embedding: int = 256,
        gain: float = 1.0,
        latent: int = LATENT,
    ) -> None:
        super().__init__(nonterminals, preterminals, words, embedding, gain, latent)
