"""What others have published on the same treebanks, from `published.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from ramify.report.results import Result, Spread


@dataclass(frozen=True)
class System:
    """One published system: F1 by treebank, and recall by label on WSJ."""

    name: str
    source: str
    f1: dict[str, float]
    preterminals: int | None = None
    decoder: str = "mbr"
    std: dict[str, float] = field(default_factory=dict)
    max: dict[str, float] = field(default_factory=dict)
    recall: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Published:
    """All of it."""

    note: str
    treebanks: dict[str, str]
    """By the names that folders may have"""
    sentences: dict[str, int]
    """Of the test sets, where it is known"""
    systems: tuple[System, ...]

    def treebank(self, data: str) -> str | None:
        """Which published treebank the data of this name are, by the list alone."""
        return self.treebanks.get(data.lower().replace("_", "-"))

    def f1(self, result: Result) -> Spread | None:
        """The published F1 of the system that `result` is of; the runs of a Spread from print are not counted."""
        treebank, system = self.treebank(result.data), self._system(result)
        if treebank is None or system is None or treebank not in system.f1:
            return None
        f1 = system.f1[treebank]
        return Spread(f1, system.std.get(treebank), system.max.get(treebank, f1), 0)

    def recall(self, result: Result) -> dict[str, float]:
        """The published recall by label, which there is of WSJ alone."""
        system = self._system(result)
        return system.recall if system and self.treebank(result.data) == "wsj" else {}

    def remarks(self, results: list[Result]) -> list[str]:
        """What a reader must know who compares these results with the published ones."""
        found = {treebank: r for r in results if (treebank := self.treebank(r.data)) is not None}
        odd = [
            f"The published test set of {r.data} has {self.sentences[treebank]:,} sentences, this one {r.sentences:,}: "
            "the figures are not of the same sentences."
            for treebank, r in found.items()
            if r.sentences is not None and self.sentences.get(treebank, r.sentences) != r.sentences
        ]
        return [self.note, *odd] if found else []

    def _system(self, result: Result) -> System | None:
        family = result.model if result.is_baseline else result.settings.get("model")
        # A changed activation or a compound grammar is another system than the published one of its family.
        if result.settings.get("compound") is True or result.settings.get("activation", "relu") != "relu":
            return None
        for system in self.systems:
            same_size = system.preterminals is None or system.preterminals == result.settings.get("preterminals")
            if system.name == family and same_size and (result.is_baseline or system.decoder == result.decoder):
                return system
        return None


@cache
def published() -> Published:
    """As it lies in the package."""
    content = tomllib.loads(files("ramify.report").joinpath("published.toml").read_text(encoding="utf-8"))
    treebanks = content["treebanks"]
    return Published(
        content["note"],
        {name: treebank for treebank, about in treebanks.items() for name in about["names"]},
        {treebank: about["sentences"] for treebank, about in treebanks.items() if "sentences" in about},
        tuple(System(**entry) for entry in content["systems"]),
    )
