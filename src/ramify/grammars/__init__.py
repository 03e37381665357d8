"""Grammar families: one file each, one line each in the registry."""

from __future__ import annotations

from ramify.grammars.base import Grammar, SharedDenseRules, SharedRules, TableGrammar
from ramify.grammars.c_pcfg import CPCFG
from ramify.grammars.em_pcfg import EMPCFG
from ramify.grammars.n_pcfg import NPCFG
from ramify.grammars.td_pcfg import TDPCFG
from ramify.grammars.tn_pcfg import TNPCFG

FAMILIES: dict[str, type[Grammar]] = {
    "tn-pcfg": TNPCFG,
    "td-pcfg": TDPCFG,
    "n-pcfg": NPCFG,
    "c-pcfg": CPCFG,
    "em-pcfg": EMPCFG,
}

__all__ = [
    "CPCFG",
    "EMPCFG",
    "FAMILIES",
    "NPCFG",
    "TDPCFG",
    "TNPCFG",
    "Grammar",
    "SharedDenseRules",
    "SharedRules",
    "TableGrammar",
]
