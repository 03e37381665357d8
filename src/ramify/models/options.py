"""The options of the built-in families: typed and explained, apart from torch, so that help needs no import of it.

A family takes those that its constructor names, and `load_settings` refuses the others. A family from outside the
package may have further ones; they are its constructor's arguments too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

ACTIVATIONS = {"relu": "ReLU", "tanh": "Tanh", "sigmoid": "Sigmoid", "gelu": "GELU"}
"""By our names those of `torch.nn`"""
INITIALISATIONS = ("own", "xavier-normal", "xavier-uniform")
"""Of all matrices; `own` is that of the family"""
TEMPERATURES = {"root": 2.0, "rules": 12.5, "words": 9.0}
"""With which logits that are cosines begin to be multiplied; those of Hol-PCFG"""


def setting(default: Any, explanation: str, **about: Any) -> Any:
    """A field with its help."""
    return field(default=default, metadata={"help": explanation, **about})


@dataclass(frozen=True)
class ModelOptions:
    """What a family may let choose; defaults are those of Yang, Zhao and Tu (2021)."""

    nonterminals: int | None = setting(None, "Number of nonterminals n \\[default: half of the preterminals].")
    preterminals: int = setting(60, "Number of preterminals p.")
    rank: int | None = setting(None, "Rank d of the rule tensor \\[default: p if p > 200, else 200].")
    embedding: int | None = setting(None, "Size of the embeddings of symbols or words \\[default: the family's].")
    width: int | None = setting(
        None, "Size of the hidden layers of structformer, on-lstm, prpn, diora and crf \\[default: the family's]."
    )
    layers: int | None = setting(None, "Number of layers of structformer, on-lstm and crf \\[default: the family's].")
    compound: bool = setting(
        False, "Compound grammar, with separate rules for every sentence; for tn-pcfg, n-pcfg and sn-pcfg."
    )
    activation: str = setting("relu", f"Activation in the rule networks: {', '.join(ACTIVATIONS)}.")
    shared_projection: bool = setting(False, "Share the last projection of the three rule networks (tn-pcfg).")
    tied_embeddings: bool = setting(False, "Share the preterminal embeddings between words and rules (tn-pcfg).")
    initialisation: str = setting(
        "own", f"Initialisation of all matrices (tn-pcfg): {', '.join(INITIALISATIONS)}.", by_text=True
    )
    pre_norm: bool = setting(False, "Residual blocks with RMSNorm before each block and GELU inside (tn-pcfg).")
    unit_rows: bool = setting(False, "Logits are cosines times learnt temperatures (tn-pcfg).")
    gain: float = setting(1.0, "Scale of the initial logits; with more than 1, symbols differ earlier.")
