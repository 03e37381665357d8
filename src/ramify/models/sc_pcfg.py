"""SC-PCFG: the compound Simple PCFG, with separate rules for every sentence (Liu, Yang, Kim and Tu 2023)."""

from __future__ import annotations

from ramify.models.compound import LATENT_SIZE
from ramify.models.sn_pcfg import SNPCFG


class SCPCFG(SNPCFG):
    """The SN-PCFG's networks with z joined to the embeddings of parents and preterminals, and an encoder."""

    def __init__(
        self,
        nonterminals: int,
        preterminals: int,
        words: int,
        embedding: int = 512,
        gain: float = 1.0,
        latent: int = LATENT_SIZE,
    ) -> None:
        super().__init__(nonterminals, preterminals, words, embedding, gain, latent)
