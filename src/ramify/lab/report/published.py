"""What others have published about the same treebanks, from `published.toml`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

from ramify.lab.results.schema import Result, Spread

VARIANTS = ("compound", "pre_norm", "unit_rows")
"""Options that make a grammar another one than the published one"""


class System(Struct, frozen=True):
    """One published system: F1 by treebank, and recall by label on WSJ."""

    name: str
    source: str
    f1: dict[str, float]
    nonterminals: int | None = None
    preterminals: int | None = None
    rank: int | None = None
    decoder: str = "mbr"
    std: dict[str, float] = {}
    max: dict[str, float] = {}
    recall: dict[str, float] = {}
    recall_std: dict[str, float] = {}

    def has_size_of(self, settings: dict[str, Any]) -> bool:
        """Whether a grammar is as large; nonterminals and rank that were not set are as published."""
        others = (("nonterminals", self.nonterminals), ("rank", self.rank))
        same = all(size is None or settings.get(name) in (None, size) for name, size in others)
        return same and self.preterminals in (None, settings.get("preterminals"))


class Treebank(Struct, frozen=True):
    """A treebank with published figures."""

    names: list[str]
    """Of folders that contain it"""
    sentences: int | None = None
    """Of its test set, if their number is known"""
    note: str = ""


class Published(Struct, frozen=True):
    """All published figures."""

    sources: dict[str, str]
    treebanks: dict[str, Treebank]
    systems: tuple[System, ...]

    def treebank(self, data: str) -> str | None:
        """Which published treebank the data of this name are, by the list alone."""
        called = data.lower().replace("_", "-")
        return next((treebank for treebank, about in self.treebanks.items() if called in about.names), None)

    def f1(self, result: Result) -> Spread | None:
        """The published F1 of the system of `result`."""
        treebank, system = self.treebank(result.data), self._system(result)
        if treebank is None or system is None or treebank not in system.f1:
            return None
        f1 = system.f1[treebank]
        return Spread(f1, system.std.get(treebank), system.max.get(treebank, f1))

    def recall(self, result: Result) -> dict[str, Spread]:
        """The published recall by label, which exists only for WSJ."""
        system = self._system(result)
        if system is None or self.treebank(result.data) != "wsj":
            return {}
        return {label: Spread(value, system.recall_std.get(label), value) for label, value in system.recall.items()}

    def remarks(self, results: list[Result]) -> list[str]:
        """What a reader must know who compares these results with the published ones."""
        compared = [r for r in results if self.f1(r)]
        if not compared:
            return []
        sources = dict.fromkeys(self.sources[system.source] for r in compared if (system := self._system(r)))
        notes = [f"Published figures are as printed, of the whole treebank: {'; '.join(sources)}."]
        for data, sentences in {r.data: r.scores.scores.sentences for r in compared}.items():
            about = self.treebanks[self.treebank(data) or ""]
            notes += [about.note] if about.note else []
            if about.sentences not in (None, sentences):
                notes.append(
                    f"The published test set of {data} has {about.sentences:,} sentences, this one {sentences:,}: the "
                    "figures are not of the same sentences."
                )
        return notes

    def _system(self, result: Result) -> System | None:
        settings = result.settings or {}
        family = result.model if result.is_baseline else settings.get("model")
        # A changed activation or a compound grammar is another system than the published one of its family.
        changed = any(settings.get(name) is True for name in VARIANTS) or settings.get("activation", "relu") != "relu"
        if changed or result.split != "test":
            return None
        for system in self.systems:
            same_decoder = result.is_baseline or system.decoder == result.decoder
            if system.name == family and same_decoder and system.has_size_of(settings):
                return system
        return None


@cache
def published() -> Published:
    """The figures in the package."""
    return msgspec.toml.decode(files("ramify.lab.report").joinpath("published.toml").read_bytes(), type=Published)
