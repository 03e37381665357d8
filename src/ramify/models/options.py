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
        False, "Separate rules for every sentence, as c-pcfg has; for tn-pcfg, n-pcfg and sn-pcfg."
    )
    activation: str = setting("relu", f"Inside the rule networks: {', '.join(ACTIVATIONS)}.")
    shared_projection: bool = setting(False, "The three rule networks of tn-pcfg end in one projection to the rank.")
    tied_embeddings: bool = setting(False, "Words and rules of tn-pcfg share the embeddings of the preterminals.")
    initialisation: str = setting("own", f"Of all matrices of tn-pcfg: {', '.join(INITIALISATIONS)}.")
    pre_norm: bool = setting(
        False, "Networks of tn-pcfg with residual blocks of RMSNorm and GELU, normalised before each block."
    )
    unit_rows: bool = setting(False, "Logits of tn-pcfg are cosines times learnt temperatures.")
    gain: float = setting(1.0, "Scale of the initial logits; more than 1 tells symbols apart sooner.")
