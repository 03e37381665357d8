"""The input of scoring: the sentences of a treebank, and the trees of a system for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ramify.corpus.cleaning import WordRule, remove_non_words
from ramify.corpus.prepare.manifest import word_rule_for
from ramify.corpus.reading import Corpus, read_sentences
from ramify.corpus.tree import UNTAGGED, Parse
from ramify.errors import RamifyError
from ramify.evaluation.calibration import Reliability
from ramify.evaluation.coverage import Coverage
from ramify.evaluation.scores import range_name
from ramify.evaluation.spans import Convention, Spans
from ramify.version import VERSION

SHORTEST = 2
"""A sentence of one word has nothing to bracket."""


@dataclass(frozen=True)
class Gold:
    """A treebank ready for scoring."""

    corpus: Corpus
    """The treebank as read, including punctuation and short sentences"""
    rule: WordRule
    parses: list[Parse]
    """Only the words, of the sentences that are scored"""
    places: list[int]
    """Place of each of these parses in the corpus"""
    longest: int | None = None

    @cached_property
    def lengths(self) -> list[int]:
        """The numbers of words."""
        return [len(parse) for parse in self.parses]

    @cached_property
    def spans(self) -> list[Spans]:
        """The constituents of each sentence."""
        return [parse.spans for parse in self.parses]

    def signature(self, convention: Convention, options: Sequence[str] = ()) -> str:
        """What must be equal to compare two scores: version, convention, words, lengths, options, data."""
        sentences = f"sentences of {range_name(SHORTEST, self.longest)} words"
        return self.signed(f"S-F1 {convention}", f"words {self.rule}", sentences, *options)

    def signed(self, *parts: str) -> str:
        """A signature with these parts between version and data."""
        return " | ".join([f"ramify {VERSION}", *parts, f"data sha256:{self.corpus.checksum[:8]}"])


@dataclass(frozen=True)
class Prediction:
    """A system's trees for the gold sentences, in their order."""

    system: str
    parses: Sequence[Parse]
    """Parses of the same words; unknown labels are empty, unknown tags `_`"""
    log_probabilities: Sequence[float] | None = None
    """log p(w) of each sentence in nats, if the system has it"""
    calibration: Reliability | None = None
    coverage: Coverage | None = None
    """Coverage of the gold sentences, if the system has a vocabulary"""
    whole: Sequence[tuple[Parse, Parse]] | None = None
    """Gold and predicted trees of all predicted sentences, with all shared leaves including punctuation"""
    failures: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The sentences without a parse by reason, as numbers from 1 in the treebank; they count with their flat trees"""
    in_log_space: int = 0
    """Number of sentences whose numbers underflowed in float32"""
    agreement: dict[str, Any] | None = None
    """Agreement of the members of an ensemble, as `MemberAgreement` records it"""
    rule_cosine: float | None = None
    """The mean cosine between the rules of two nonterminals, from PCFGs"""
    options: tuple[str, ...] = ()
    """Decoding options that differ from the default, for the signature"""

    @property
    def spans(self) -> list[Spans]:
        """The constituents of each sentence."""
        return [parse.spans for parse in self.parses]

    @property
    def has_labels(self) -> bool:
        """Whether the system labels its constituents."""
        return any(map(any, (parse.labels for parse in self.parses)))


def load_gold(trees: str | Path | Corpus, rule: WordRule | None = None, longest: int | None = None) -> Gold:
    """A treebank, to score its sentences of two to `longest` words; the rule for words is guessed if not given."""
    corpus = trees if isinstance(trees, Corpus) else read_sentences(trees)
    if corpus.kind == "conllu":
        raise RamifyError(f"{corpus.source}: contains heads in CoNLL-U, not trees; give a file of bracketed trees.")
    if not corpus.has_trees:
        raise RamifyError(f"{corpus.source}: contains no trees to score against; give a file of bracketed trees.")
    return gold_from_corpus(corpus, rule or word_rule_for(corpus), longest)


def gold_from_corpus(corpus: Corpus, rule: WordRule, longest: int | None = None) -> Gold:
    """A corpus, to score its sentences of two to `longest` words."""
    if longest is not None and longest < SHORTEST:
        raise RamifyError(f"longest is {longest}, but a sentence with a tree has {SHORTEST} words or more.")
    cleaned = [remove_non_words(parse, rule) for parse in corpus.parses]
    places = [
        place for place, parse in enumerate(cleaned) if len(parse) >= SHORTEST and len(parse) <= (longest or len(parse))
    ]
    if not places:
        raise RamifyError(
            f"{corpus.source}: no sentence has {range_name(SHORTEST, longest)} words; give longer sentences to score."
        )
    return Gold(corpus, rule, [cleaned[place] for place in places], places, longest)


def unlabelled_parse(words: Sequence[str], spans: Spans) -> Parse:
    """A tree of which only the brackets are known."""
    return Parse(tuple(words), (UNTAGGED,) * len(words), spans, ("",) * len(spans))
