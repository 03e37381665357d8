"""Grammar families: one file each, one line each in the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ramify.runtime.lazy import LazyRegistry, attributes_from

if TYPE_CHECKING:
    from ramify.grammars.base import Grammar, SharedDenseRules, SharedRules, TableGrammar
    from ramify.grammars.c_pcfg import CPCFG
    from ramify.grammars.em_pcfg import EMPCFG
    from ramify.grammars.n_pcfg import NPCFG
    from ramify.grammars.sc_pcfg import SCPCFG
    from ramify.grammars.sn_pcfg import SNPCFG
    from ramify.grammars.td_pcfg import TDPCFG
    from ramify.grammars.tn_pcfg import TNPCFG

_FAMILIES = {
    "tn-pcfg": ("ramify.grammars.tn_pcfg", "TNPCFG"),
    "td-pcfg": ("ramify.grammars.td_pcfg", "TDPCFG"),
    "sn-pcfg": ("ramify.grammars.sn_pcfg", "SNPCFG"),
    "sc-pcfg": ("ramify.grammars.sc_pcfg", "SCPCFG"),
    "n-pcfg": ("ramify.grammars.n_pcfg", "NPCFG"),
    "c-pcfg": ("ramify.grammars.c_pcfg", "CPCFG"),
    "em-pcfg": ("ramify.grammars.em_pcfg", "EMPCFG"),
}

FAMILIES: LazyRegistry[type[Grammar]] = LazyRegistry(_FAMILIES)

__all__ = [
    "CPCFG",
    "EMPCFG",
    "FAMILIES",
    "NPCFG",
    "SCPCFG",
    "SNPCFG",
    "TDPCFG",
    "TNPCFG",
    "Grammar",
    "SharedDenseRules",
    "SharedRules",
    "TableGrammar",
]

__getattr__ = attributes_from(
    __name__,
    dict.fromkeys(("Grammar", "SharedDenseRules", "SharedRules", "TableGrammar"), "ramify.grammars.base")
    | {name: module for module, name in _FAMILIES.values()},
)
