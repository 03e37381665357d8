"""Several parsers for the same sentences: members of an ensemble, or teachers of a focused grammar.

A member is a model, which gives span posteriors, or a file of trees of any parser, whose spans count as 0 and 1.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ramify.corpus.sentence import Sentence
from ramify.errors import RamifyError, RamifyWarning
from ramify.evaluation.agreement import MemberAgreement
from ramify.evaluation.failures import Failure
from ramify.evaluation.spans import Spans
from ramify.evaluation.tree_lookup import TreeLookup
from ramify.model_names import split_name, system_kind
from ramify.parser.loading import load
from ramify.parser.tree_parser import TreeParser
from ramify.storage.ensemble_folder import checksum_of

MemberInput = str | Path | TreeParser
"""A parser, a model folder, or a file of trees"""
COMPARED_SENTENCES = 500
"""Number of sentences that are parsed to find collapsed members"""


@dataclass(frozen=True)
class View:
    """The result of one member for one sentence of N words."""

    posteriors: NDArray[np.float32]
    """(N+1, N+1) posteriors of spans; zero if the member has no parse"""
    spans: Spans
    """Spans of the member's tree"""
    failure: Failure | None = None


class Member(ABC):
    """One of several parsers."""

    name: str
    sha256: str
    """Checksum of the model folder or the file; empty for a parser that was never saved"""

    @property
    @abstractmethod
    def has_posteriors(self) -> bool:
        """Whether it gives probabilities of spans, and not only a tree."""

    @abstractmethod
    def views(self, sentences: Sequence[Sentence], max_length: int | None = None) -> Iterator[View]:
        """The result for each sentence, given as words."""

    def as_record(self) -> dict[str, str]:
        """Name and checksum as JSON values."""
        return {"name": self.name, "sha256": self.sha256}


class ModelMember(Member):
    """A parser."""

    def __init__(self, parser: TreeParser, name: str, sha256: str = "") -> None:
        self.parser, self.name, self.sha256 = parser, name, sha256

    @property
    def has_posteriors(self) -> bool:
        """True if its model has posteriors, or if it is an ensemble."""
        return self.parser.has_posteriors

    def views(self, sentences: Sequence[Sentence], max_length: int | None = None) -> Iterator[View]:
        """Its posteriors, and its tree with the highest expected number of correct brackets, without a bonus."""
        for analysis in self.parser.analyse_many(sentences, max_length=max_length, branching=0.0):
            yield View(analysis.posteriors, analysis.parse.spans, analysis.failure)


class TreesMember(Member):
    """A file of trees."""

    def __init__(self, path: Path, name: str) -> None:
        self._trees = TreeLookup(path)
        self.name, self.sha256 = name, checksum_of(path)

    @property
    def has_posteriors(self) -> bool:
        """False, because a file has only trees."""
        return False

    def views(self, sentences: Sequence[Sentence], max_length: int | None = None) -> Iterator[View]:
        """1 for every span of the tree."""
        for sentence in sentences:
            N = len(sentence.words)
            if N < 2 or (max_length is not None and max_length < N):
                yield View(np.zeros((N + 1, N + 1), np.float32), np.zeros((0, 2), np.int32))
                continue
            found = self._trees.spans_of(sentence.words, sentence.where)
            spans = found[found[:, 1] - found[:, 0] > 1]
            yield View(table_of(spans, N), spans)


def table_of(spans: Spans, length: int) -> NDArray[np.float32]:
    """(N+1, N+1) 1 for the spans of a tree, 0 for all others."""
    table = np.zeros((length + 1, length + 1), np.float32)
    table[spans[:, 0], spans[:, 1]] = 1
    return table


def open_member(member: MemberInput, device: str = "auto") -> Member:
    """The member given by `PATH` or `NAME=PATH` of a model folder, a file of rules or of trees, or by a parser."""
    if isinstance(member, TreeParser):
        return ModelMember(member, repr(member))
    check_member(member)
    name, path = split_name(str(member))
    if system_kind(str(member)) == "predicted":
        return TreesMember(path, name or path.name)
    return ModelMember(load(path, device), name or path.name, checksum_of(path))


def check_member(member: MemberInput) -> None:
    """Refuse a name that is neither a model nor a file of trees."""
    if not isinstance(member, TreeParser) and system_kind(str(member)) == "baseline":
        raise RamifyError(f"{member}: is neither a model folder nor a file of trees; check the name.")


def some_of(sentences: Sequence[Sentence]) -> Sequence[Sentence]:
    """About `COMPARED_SENTENCES` of the sentences, evenly spaced."""
    return sentences[:: max(1, len(sentences) // COMPARED_SENTENCES)]


def without_collapsed(members: Sequence[Member], sentences: Sequence[Sentence]) -> list[Member]:
    """The members without collapsed models, with warnings; files of trees stay, and all models if all collapsed."""
    models = [each for each in members if isinstance(each, ModelMember)]
    collapsed = _collapsed(models, sentences) if len(models) > 1 else {}
    if len(collapsed) == len(models):
        return [*members]
    for place, reason in collapsed.items():
        warnings.warn(f"{models[place].name} is left out, because {reason}.", RamifyWarning, stacklevel=2)
    left_out = [models[place] for place in collapsed]
    return [member for member in members if member not in left_out]


def _collapsed(members: Sequence[Member], sentences: Sequence[Sentence]) -> dict[int, str]:
    """The places of the collapsed members, with the reason, judged by their trees for some of the sentences."""
    compared = some_of(sentences)
    agreement = MemberAgreement([str(place) for place in range(len(members))])
    for sentence, *views in zip(compared, *(member.views(compared) for member in members), strict=True):
        if not any(view.failure for view in views):
            agreement.add([view.spans for view in views], views[0].spans, len(sentence.words))
    return {int(place): reason for place, reason in agreement.collapsed().items()}
