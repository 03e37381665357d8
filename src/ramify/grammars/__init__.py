"""Grammar families: one file each, one line each in the registry."""

from __future__ import annotations

from ramify.grammars.base import LowRankGrammar, SharedRules, TableGrammar
from ramify.grammars.td_pcfg import TDPCFG
from ramify.grammars.tn_pcfg import TNPCFG

FAMILIES: dict[str, type[LowRankGrammar]] = {
    "tn-pcfg": TNPCFG,
    "td-pcfg": TDPCFG,
}

__all__ = ["FAMILIES", "TDPCFG", "TNPCFG", "LowRankGrammar", "SharedRules", "TableGrammar"]
