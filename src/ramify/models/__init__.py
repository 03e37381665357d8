"""Families of models: one file each, one line each in the registry.

A family from outside the package registers its class with `@register("name")`, or by an entry point in the group
`ramify.models` with the name of the family.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, TypeVar

from ramify.runtime.lazy import LazyRegistry, attributes_from

if TYPE_CHECKING:
    from ramify.models.base import Model
    from ramify.models.c_pcfg import CPCFG
    from ramify.models.crf import CRF
    from ramify.models.diora import DIORA
    from ramify.models.em_pcfg import EMPCFG
    from ramify.models.generative import GenerativeModel
    from ramify.models.grammar import Grammar, TableGrammar
    from ramify.models.hol_pcfg import HolPCFG
    from ramify.models.n_pcfg import NPCFG
    from ramify.models.nbl_pcfg import NBLPCFG
    from ramify.models.nl_pcfg import NLPCFG
    from ramify.models.on_lstm import ONLSTM
    from ramify.models.prpn import PRPN
    from ramify.models.sc_pcfg import SCPCFG
    from ramify.models.sn_pcfg import SNPCFG
    from ramify.models.structformer import StructFormer
    from ramify.models.td_pcfg import TDPCFG
    from ramify.models.tn_pcfg import TNPCFG

Class = TypeVar("Class", bound="type[Model]")

_FAMILIES = {
    "tn-pcfg": ("ramify.models.tn_pcfg", "TNPCFG"),
    "td-pcfg": ("ramify.models.td_pcfg", "TDPCFG"),
    "sn-pcfg": ("ramify.models.sn_pcfg", "SNPCFG"),
    "sc-pcfg": ("ramify.models.sc_pcfg", "SCPCFG"),
    "hol-pcfg": ("ramify.models.hol_pcfg", "HolPCFG"),
    "n-pcfg": ("ramify.models.n_pcfg", "NPCFG"),
    "c-pcfg": ("ramify.models.c_pcfg", "CPCFG"),
    "em-pcfg": ("ramify.models.em_pcfg", "EMPCFG"),
    "nbl-pcfg": ("ramify.models.nbl_pcfg", "NBLPCFG"),
    "nl-pcfg": ("ramify.models.nl_pcfg", "NLPCFG"),
    "on-lstm": ("ramify.models.on_lstm", "ONLSTM"),
    "prpn": ("ramify.models.prpn", "PRPN"),
    "crf": ("ramify.models.crf", "CRF"),
    "structformer": ("ramify.models.structformer", "StructFormer"),
    "diora": ("ramify.models.diora", "DIORA"),
}
_CLASSES = {name: module for module, name in _FAMILIES.values()}
for _point in entry_points(group="ramify.models"):
    _FAMILIES.setdefault(_point.name, (_point.module, _point.attr))

FAMILIES: LazyRegistry[type[Model]] = LazyRegistry(_FAMILIES)
"""Classes by the names of their families; a class is imported when it is looked up."""


def register(name: str) -> Callable[[Class], Class]:
    """Register a subclass of `Model` as a family; a class decorator."""

    def decorate(family: Class) -> Class:
        from ramify.models.base import Model

        if not (isinstance(family, type) and issubclass(family, Model)):
            raise TypeError(f"{family!r} is not a subclass of ramify.Model")
        home = (family.__module__, family.__qualname__)
        if name in FAMILIES and home != (FAMILIES[name].__module__, FAMILIES[name].__qualname__):
            raise ValueError(f"there is already a family {name!r}")
        FAMILIES.add(name, family)
        return family

    return decorate


__all__ = [
    "CPCFG",
    "CRF",
    "DIORA",
    "EMPCFG",
    "FAMILIES",
    "NBLPCFG",
    "NLPCFG",
    "NPCFG",
    "ONLSTM",
    "PRPN",
    "SCPCFG",
    "SNPCFG",
    "TDPCFG",
    "TNPCFG",
    "GenerativeModel",
    "Grammar",
    "HolPCFG",
    "Model",
    "StructFormer",
    "TableGrammar",
    "register",
]

__getattr__ = attributes_from(
    __name__,
    {"Model": "ramify.models.base", "GenerativeModel": "ramify.models.generative"}
    | dict.fromkeys(("Grammar", "TableGrammar"), "ramify.models.grammar")
    | _CLASSES,
)
