"""The options of the built-in families, with types and help. Does not import torch, so that help appears quickly.

A family has the options that its constructor names, and `load_settings` refuses the others. A family from outside the
package may have further options, which are also arguments of its constructor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

ACTIVATIONS = {"relu": "ReLU", "tanh": "Tanh", "sigmoid": "Sigmoid", "gelu": "GELU"}
"""Names of classes in `torch.nn`, by the values of the setting"""
INITIALISATIONS = ("own", "xavier-normal", "xavier-uniform")
"""Initialisations of all matrices; `own` is the method of the family"""
TEMPERATURES = {"root": 2.0, "rules": 12.5, "words": 9.0}
"""Initial factors of logits that are cosines, as in Hol-PCFG"""


def setting(default: Any, explanation: str, **about: Any) -> Any:
    """A field with its help."""
    return field(default=default, metadata={"help": explanation, **about})


@dataclass(frozen=True)
class ModelOptions:
    """The options that families may have; the defaults are those of Yang, Zhao and Tu (2021)."""

    nonterminals: int | None = setting(None, "Number of nonterminals n \\[default: half of the preterminals].")
    preterminals: int = setting(60, "Number of preterminals p.")
    rank: int | None = setting(
        None, "Rank d of the rule tensor \\[default: --preterminals if more than 200, else 200]."
    )
    embedding: int | None = setting(None, "Size of the embeddings of symbols or words \\[default: the family's].")
    width: int | None = setting(
        None, "Size of the hidden layers of structformer, on-lstm, prpn, diora and crf \\[default: the family's]."
    )
    layers: int | None = setting(None, "Number of layers of structformer, on-lstm and crf \\[default: the family's].")
    compound: bool = setting(
        False, "Compound grammar: every sentence has its own rule probabilities; for tn-pcfg, n-pcfg and sn-pcfg."
    )
    activation: str = setting("relu", f"Activation in the rule networks: {', '.join(ACTIVATIONS)}.")
    shared_projection: bool = setting(
        False, "Share the last projection of the three rule networks (tn-pcfg).", by_text=True
    )
    tied_embeddings: bool = setting(
        False, "Share the preterminal embeddings between words and rules (tn-pcfg).", by_text=True
    )
    initialisation: str = setting(
        "own", f"Initialisation of all matrices (tn-pcfg): {', '.join(INITIALISATIONS)}.", by_text=True
    )
    pre_norm: bool = setting(False, "Pre-norm residual blocks: RMSNorm before each block, GELU inside (tn-pcfg).")
    unit_rows: bool = setting(False, "Compute logits as cosines times learnt temperatures (tn-pcfg).")
    gain: float = setting(1.0, "Scale of the initial logits; above 1, symbols differ earlier in training.")
