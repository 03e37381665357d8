"""Several parsers as one: the tree with the highest sum of their span posteriors.

Let c(i, j) be the weighted mean of the members' posteriors, where the spans of a given tree count as 0 and 1. The tree
with the largest sum of c over its spans is the minimum-Bayes-risk tree under the mixture of the members. If all members
are trees, it is the tree with the largest mean F1 against them (Shayegh et al. 2024).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ramify.corpus.cleaning import WordRule
from ramify.corpus.constraints import forbidden_spans
from ramify.corpus.reading import AS_IS
from ramify.corpus.sentence import Sentence
from ramify.corpus.text import CommonTextRules
from ramify.corpus.tree import Parse
from ramify.decoding.best_trees import best_trees
from ramify.decoding.decoders import check_branching
from ramify.errors import RamifyError
from ramify.evaluation.agreement import MemberAgreement
from ramify.evaluation.coverage import Coverage
from ramify.evaluation.spans import Spans
from ramify.model_names import split_name
from ramify.parser.analysis import Analysis
from ramify.parser.ensemble_members import (
    Member,
    MemberInput,
    ModelMember,
    View,
    open_member,
    without_collapsed,
)
from ramify.parser.loading import load
from ramify.parser.parallel_windows import Batch
from ramify.parser.parser import Parser
from ramify.parser.tree_parser import Decoding, SentenceInput, TreeLabels, TreeParser
from ramify.storage.ensemble_folder import StoredMember, save_ensemble

TREES_WEIGHT = 0.25
"""Weight of a member with only trees among members with posteriors, which its spans of 0 and 1 would outvote. On the
dev sets of fr-sequoia and en-craft, such members improve averages with this weight, and make them worse with equal
weights (docs/neural-parsers.md)."""
DECODED_AT_ONCE = 64
"""Number of sentences of similar length that are decoded together"""


class Ensemble(TreeParser):
    """Parses with the average of its members, which may differ in family, symbols and vocabulary.

    Members are parsers, model folders or files of trees. Without `weights` all have the same weight, except
    that members with only trees have `TREES_WEIGHT` if others have posteriors. Labels and tags are the most probable
    ones of the first model, given the averaged tree. The branching bonus is the mean of the members' own.
    """

    has_likelihood = False
    has_posteriors = True

    def __init__(
        self,
        members: Sequence[MemberInput | Member],
        weights: Sequence[float] | None = None,
        device: str = "auto",
    ) -> None:
        if isinstance(members, str | Path) or not members:
            raise RamifyError("An ensemble needs a list of members; give at least one.")
        if weights and (len(weights) != len(members) or not all(0 < weight < np.inf for weight in weights)):
            raise RamifyError(
                f"The weights {', '.join(map(str, weights))} do not fit {len(members)} members; give a positive number "
                "for each member."
            )
        opened = [each if isinstance(each, Member) else open_member(each, device) for each in members]
        given = tuple(map(float, weights or _default_weights(opened)))
        parts = [part for each, weight in zip(opened, given, strict=True) for part in _parts(each, weight)]
        self.members = [member for member, _ in parts]
        """In the given order; the members of an ensemble take its place. The first model labels the trees"""
        self.weights = tuple(weight for _, weight in parts)
        parsers = [member.parser for member in self.members if isinstance(member, ModelMember)]
        self.text_rules = CommonTextRules.of([parser.text_rules for parser in parsers]) if parsers else AS_IS
        self.word_rule = _common_rule(self.members)
        own = [member.parser.branching if isinstance(member, ModelMember) else 0.0 for member in self.members]
        self.branching = float(np.average(own, weights=self.weights))
        self._labeller = parsers[0] if parsers else None

    def __repr__(self) -> str:
        return f"<Ensemble of {len(self.members)}: {', '.join(member.name for member in self.members)}>"

    @property
    def names(self) -> tuple[str, ...]:
        """Different names of the members."""
        names = [member.name for member in self.members]
        return tuple(
            name if names.count(name) == 1 else f"{name} #{place}" for place, name in enumerate(names, start=1)
        )

    def _check(self, how: Decoding) -> None:
        if how.decoder != "mbr":
            raise RamifyError(
                f"The decoder {how.decoder} needs a single model, but an average has several; use mbr for the average."
            )
        check_branching(how.decoder, how.branching)

    def _analyse_window(self, window: list[Sentence], how: Decoding, done: int) -> list[Batch]:
        """An average has no heads; an ensemble of one member parses like this member."""
        only = self.members[0]
        if len(self.members) == 1 and isinstance(only, ModelMember):
            return only.parser._analyse_window(window, how, done)
        return [lambda: enumerate(self._averaged(window, how))]

    def _averaged(self, window: list[Sentence], how: Decoding) -> Iterator[Analysis]:
        words = [Sentence.from_tokens(sentence.words, where=sentence.where) for sentence in window]
        views = [*zip(*(list(member.views(words, how.max_length)) for member in self.members), strict=True)]
        posteriors = [self._mean(of_members) for of_members in views]
        tables = {place: mean for place, mean in enumerate(posteriors) if mean is not None and len(mean) > 2}
        trees = _trees(tables, window, how.branching)
        labels = dict(zip(trees, self.label_trees([words[place] for place in trees], [*trees.values()]), strict=True))
        for place, sentence in enumerate(window):
            if place not in trees:
                failure = next((view.failure for view in views[place] if view.failure), None)
                yield Analysis.flat(sentence, self._unknown(words[place]), failure)
                continue
            analysis = _build_analysis(sentence, tables[place], trees[place], labels[place])
            yield replace(analysis, member_spans=tuple(view.spans for view in views[place]))

    def _mean(self, views: Sequence[View]) -> NDArray[np.float32] | None:
        """(N+1, N+1) mean over the members that have a parse; None if no member has one."""
        having = [
            (weight, view.posteriors) for weight, view in zip(self.weights, views, strict=True) if not view.failure
        ]
        if not having:
            return None
        total = sum(weight for weight, _ in having)
        mean: NDArray[np.float32] = sum(np.float32(weight / total) * each for weight, each in having)  # type: ignore[assignment]
        return mean

    def label_trees(self, sentences: Sequence[Sentence], trees: Sequence[Spans]) -> list[TreeLabels]:
        """The labels and tags of the first model; `X` if no member is a model."""
        if self._labeller is None:
            return [TreeLabels.without_labels(len(sentence.words)) for sentence in sentences]
        return self._labeller.label_trees(sentences, trees)

    def _unknown(self, sentence: Sentence) -> NDArray[np.bool_]:
        if isinstance(self._labeller, Parser):
            unknown: NDArray[np.bool_] = self._labeller.vocabulary.encode(sentence.words) == 0
            return unknown
        return np.zeros(len(sentence.words), np.bool_)

    def coverage(self, *_: object) -> Coverage | None:
        """None: an ensemble has no likelihood."""
        return None

    def agreement(self, sentences: Iterable[SentenceInput]) -> MemberAgreement:
        """The agreement of the members on these sentences, and the collapsed members."""
        found = MemberAgreement(self.names)
        for analysis in self.analyse_many(sentences):
            add_agreement(found, analysis)
        return found

    def without(self, collapsed: Mapping[str, str]) -> Ensemble:
        """The ensemble without some members, by name with the reason, as `MemberAgreement.collapsed` gives them."""
        kept = [place for place, name in enumerate(self.names) if name not in collapsed]
        if not kept:
            reasons = "; ".join(f"{name}, {reason}" for name, reason in collapsed.items())
            raise RamifyError(f"All members have collapsed ({reasons}); train other models.")
        weights = [self.weights[place] for place in kept]
        return Ensemble([self.members[place] for place in kept], weights)

    def without_collapsed(self, sentences: Sequence[Sentence]) -> Ensemble:
        """The ensemble without the models that collapsed, judged on some of the sentences; each has a warning."""
        kept = without_collapsed(self.members, sentences)
        weights = [weight for member, weight in zip(self.members, self.weights, strict=True) if member in kept]
        return Ensemble(kept, weights)

    def save(self, folder: str | Path) -> None:
        """Save the ensemble to a folder that `ramify.load` reads; each member is a model folder in it."""
        stored = []
        for member, weight in zip(self.members, self.weights, strict=True):
            if not (isinstance(member, ModelMember) and isinstance(member.parser, Parser)):
                raise RamifyError(f"{member.name}: is not a trained model; save an ensemble of model folders only.")
            stored.append(StoredMember(member.name, weight, member.parser.save))
        save_ensemble(Path(folder), stored, self.word_rule)


def add_agreement(agreement: MemberAgreement, analysis: Analysis) -> None:
    """Count one sentence that an ensemble parsed."""
    if analysis.member_spans:
        words = sum(analysis.sentence.is_word)
        agreement.add(analysis.member_spans, _spans_of_words(analysis), words)


def _spans_of_words(analysis: Analysis) -> Spans:
    """The constituents as spans of words, without punctuation."""
    before = np.concatenate([[0], np.cumsum(analysis.sentence.is_word)])
    spans: Spans = before[analysis.parse.spans].astype(np.int32)
    return spans


def _trees(
    tables: Mapping[int, NDArray[np.float32]],
    window: Sequence[Sentence],
    branching: float,
) -> dict[int, Spans]:
    """The best tree that meets all constraints for each table of span scores, a few of similar size at a time."""
    order = iter(sorted(tables, key=lambda place: len(tables[place])))
    found: dict[int, Spans] = {}
    while places := list(islice(order, DECODED_AT_ONCE)):
        sizes = [len(tables[place]) for place in places]
        scores = torch.zeros(len(places), sizes[-1], sizes[-1])
        for row, place, size in zip(scores, places, sizes, strict=True):
            row[:size, :size] = torch.from_numpy(tables[place])
            if (forbidden := forbidden_spans(window[place])) is not None:
                row[:size, :size][torch.from_numpy(forbidden)] = -torch.inf
        found |= zip(places, best_trees(scores, torch.tensor(sizes) - 1, branching), strict=True)
    return found


def _build_analysis(sentence: Sentence, posteriors: NDArray[np.float32], spans: Spans, labels: TreeLabels) -> Analysis:
    """The probability of a labelled constituent is the mean posterior of its span times that of the label given the
    tree."""
    parse = Parse(sentence.words, labels.tags, spans, labels.labels)
    with_labels = posteriors[spans[:, 0], spans[:, 1]] * labels.label_posteriors
    return Analysis.from_words(sentence, parse, np.nan, posteriors, with_labels, labels.tag_posteriors, labels.unknown)


def _default_weights(members: Sequence[Member]) -> list[float]:
    mixed = any(member.has_posteriors for member in members)
    return [TREES_WEIGHT if mixed and not member.has_posteriors else 1.0 for member in members]


def _parts(member: Member, weight: float) -> list[tuple[Member, float]]:
    """A member with its weight; an ensemble is replaced by its members, which share its weight."""
    if not (isinstance(member, ModelMember) and isinstance(member.parser, Ensemble)):
        return [(member, weight)]
    inner, total = member.parser, sum(member.parser.weights)
    return [(each, weight * own / total) for each, own in zip(inner.members, inner.weights, strict=True)]


def _common_rule(members: Sequence[Member]) -> WordRule | None:
    """Which leaves of trees are words; members that were learnt from text accept any rule."""
    rules = {
        str(member.parser.word_rule): (member.name, member.parser.word_rule)
        for member in members
        if isinstance(member, ModelMember) and member.parser.word_rule is not None
    }
    if len(rules) > 1:
        shown = ", ".join(f"{name} with {rule}" for rule, (name, _) in rules.items())
        raise RamifyError(
            f"The members were trained with different rules for words ({shown}); average models with the same rule."
        )
    return next((rule for _, rule in rules.values()), None)


def load_several(members: Sequence[str], device: str = "auto") -> TreeParser:
    """The parser of one model, or the ensemble of several models and files of trees."""
    if len(members) == 1:
        return load(split_name(members[0])[1], device)
    return Ensemble(list(members), device=device)
