"""The interface of everything that parses, whether it is one model or several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ramify.corpus.cleaning import WordRule
from ramify.corpus.constraint_reading import constrain_by_punctuation
from ramify.corpus.constraints import Constraints, forbidden_spans
from ramify.corpus.sentence import Sentence
from ramify.corpus.streaming import WINDOW, Pause
from ramify.corpus.text import TextRules
from ramify.corpus.tree import UNTAGGED
from ramify.decoding.best_trees import DECODERS as BY_POSTERIORS
from ramify.decoding.decoders import DECODERS
from ramify.decoding.heads import HeadDecoder
from ramify.errors import RamifyError
from ramify.evaluation.coverage import Coverage
from ramify.evaluation.spans import Spans
from ramify.parser.analysis import Analysis
from ramify.parser.parallel_windows import Batch, Window, results_in_order
from ramify.runtime.compilation import expect_words

if TYPE_CHECKING:
    import nltk

NO_LABEL = "X"
"""The label of constituents found by a parser without labels"""
SentenceInput = str | Sequence[str] | Sentence
"""A string, which is read like the model's text; a list of tokens; or a `Sentence`."""
ConstraintsInput = Constraints | Mapping[str, Any] | Literal["punctuation"] | None
"""Also as JSON values such as `{"must": [[0, 3]], "must_not": [[4, 6]]}`"""


@dataclass(frozen=True)
class TreeLabels:
    """The labels of a given tree, and the tags of its words."""

    labels: tuple[str, ...]
    label_posteriors: NDArray[np.float32]
    """(constituents,) given the tree"""
    tags: tuple[str, ...]
    tag_posteriors: NDArray[np.float32]
    """(N,) given the tree"""
    unknown: NDArray[np.bool_]
    """(N,) words that are not in the vocabulary"""

    @classmethod
    def without_labels(cls, length: int, unknown: NDArray[np.bool_] | None = None) -> TreeLabels:
        """The labels of a binary tree of which only the brackets are known."""
        ones = np.ones(max(length - 1, 0), np.float32), np.ones(length, np.float32)
        unknown = np.zeros(length, np.bool_) if unknown is None else unknown
        return cls((NO_LABEL,) * len(ones[0]), ones[0], (UNTAGGED,) * length, ones[1], unknown)


@dataclass(frozen=True)
class Decoding:
    """Options of decoding; the fields are the arguments of `TreeParser.analyse_many`."""

    decoder: str
    seed: int
    max_length: int | None
    branching: float
    """The bonus that is added"""
    heads: HeadDecoder


class TreeParser(ABC):
    """Sentences in, analyses out."""

    text_rules: TextRules
    """The rules by which strings are read"""
    word_rule: WordRule | None
    """Which leaves of trees are words; None for a parser that was learnt from text"""
    has_likelihood: bool
    """Whether the log-probabilities of its analyses are log p(w), or a lower bound of it"""
    has_posteriors: bool
    """Whether its posteriors are probabilities, not 1 for the spans of one tree and 0 for all others"""
    branching: float = 0.0
    """Bonus for spans at one end of the sentence when a tree is decoded: above zero the right end, below zero the left
    end. It does not change the posteriors."""
    works_ahead: bool = False
    """Whether batches of sentences are parsed in other threads while earlier results are used"""

    def bonus_for(self, decoder: str, branching: float | None = None) -> float:
        """The branching bonus in use: the one given or, for decoders that can have one, that of the parser."""
        if branching is None:
            return self.branching if decoder in BY_POSTERIORS else 0.0
        return branching

    def analyse_many(
        self,
        sentences: Iterable[SentenceInput | Pause],
        decoder: str = "mbr",
        seed: int = 0,
        max_length: int | None = None,
        branching: float | None = None,
        heads: HeadDecoder = "projective",
    ) -> Iterator[Analysis]:
        """`analyse` for a stream of sentences, in order.

        With the decoder `sample`, a tree depends on `seed` and on the place of its sentence in the stream. A sentence
        of more than `max_length` words, or too long for the free memory, gets a flat tree. `branching` is a bonus, for
        the decoders `mbr` and `mbr-labelled`, as in the attribute of that name, which is the default. `heads` is for
        models with heads: `projective` finds the best projective tree, and `constituents` the best tree in which every
        constituent has one head.
        """
        check_positive("max_length", max_length)
        how = Decoding(decoder, seed, max_length, self.bonus_for(decoder, branching), heads)
        self._check(how)
        return results_in_order(self._start_windows(sentences, how), self.works_ahead)

    def decoders(self) -> tuple[str, ...]:
        """The decoders that this parser supports."""
        return tuple(decoder for decoder in DECODERS if self._can(decoder))

    def _can(self, decoder: str) -> bool:
        try:
            self._check(Decoding(decoder, 0, None, 0.0, "projective"))
        except RamifyError:
            return False
        return True

    @abstractmethod
    def _check(self, how: Decoding) -> None:
        """Refuse options of decoding that this parser does not support."""

    def _start_windows(self, sentences: Iterable[SentenceInput | Pause], how: Decoding) -> Iterator[Window]:
        done = 0
        for window, is_last in self._windows(sentences):
            yield Window(len(window), self._analyse_window(window, how, done), is_last)
            done += len(window)

    @abstractmethod
    def _analyse_window(self, window: list[Sentence], how: Decoding, done: int) -> list[Batch]:
        """Batches of some sentences; `done` is the number of earlier sentences in the stream."""

    @abstractmethod
    def label_trees(self, sentences: Sequence[Sentence], trees: Sequence[Spans]) -> list[TreeLabels]:
        """The most probable labels of given binary trees over the words of sentences, and tags of these words."""

    @abstractmethod
    def coverage(
        self, sentences: Sequence[Sentence], log_p: Sequence[float], too_long: Collection[int] = ()
    ) -> Coverage | None:
        """The unknown words of sentences whose log p(w) is given, and perplexities that account for them.

        `too_long` are the places of sentences that were too long to parse. None without a likelihood.
        """

    def rule_cosine(self) -> float | None:
        """The mean cosine between the rules of two nonterminals; None unless the parser is a single PCFG."""
        return None

    def __call__(self, sentence: SentenceInput) -> Analysis:
        """The same as `analyse`: one sentence, given as a string or as a list of tokens."""
        return self.analyse(sentence)

    def pipe(self, sentences: Iterable[SentenceInput | Pause], decoder: str = "mbr") -> Iterator[Analysis]:
        """The same as `analyse_many`: a stream of sentences, in order."""
        return self.analyse_many(sentences, decoder)

    def parse(self, sentence: SentenceInput, constraints: ConstraintsInput = None) -> nltk.Tree:
        """The tree of one sentence, punctuation included, given as a string or as a list of tokens.

        Its root is `TOP`. Without a derivation it is flat, and `Analysis.failure` gives the reason.
        `constraints` as for `analyse`.
        """
        return self.analyse(sentence, constraints=constraints).tree

    def parse_many(
        self,
        sentences: Iterable[SentenceInput | Pause],
        decoder: str = "mbr",
        seed: int = 0,
        max_length: int | None = None,
    ) -> Iterator[nltk.Tree]:
        """The trees of a stream of sentences, in order; the stream may be endless."""
        return (analysis.tree for analysis in self.analyse_many(sentences, decoder, seed, max_length))

    def posteriors(self, sentence: SentenceInput) -> NDArray[np.float32]:
        """(N+1, N+1): entry [i, j] is the probability that tokens[i:j] are a constituent."""
        return self.analyse(sentence).posteriors

    def analyse(
        self, sentence: SentenceInput, decoder: str = "mbr", seed: int = 0, constraints: ConstraintsInput = None
    ) -> Analysis:
        """The parse of one sentence with its probability and posteriors.

        `constraints` are spans of tokens that must or must not be constituents: `Constraints`, or a dictionary such as
        `{"must": [[0, 3]], "must_not": [[4, 6]]}`. With `"punctuation"`, no constituent crosses a punctuation mark.
        """
        if constraints == "punctuation":
            sentence = constrain_by_punctuation(self._sentence(sentence))
        elif constraints is not None:
            sentence = replace(self._sentence(sentence), constraints=Constraints.of(constraints))
        return next(self.analyse_many([sentence], decoder, seed))

    def _windows(self, sentences: Iterable[SentenceInput | Pause]) -> Iterator[tuple[list[Sentence], bool]]:
        """Enough sentences to form batches, or fewer if no further ones have arrived, and whether this is the case."""
        if not isinstance(sentences, Iterable):
            raise RamifyError(f"{sentences!r} is not a list of sentences; give a list.")
        if isinstance(sentences, str):
            raise RamifyError("A list of sentences is needed, not a string; put it into a list.")
        window: list[Sentence] = []
        for item in sentences:
            if not isinstance(item, Pause):
                window.append(self._sentence(item))
                if not any(window[-1].is_word):
                    forbidden_spans(window[-1])  # refuses constraints on words that do not exist
            if len(window) == WINDOW or isinstance(item, Pause):
                yield _announce_words(window), isinstance(item, Pause)
                window = []
        if window:
            yield _announce_words(window), True

    def _sentence(self, sentence: SentenceInput) -> Sentence:
        if isinstance(sentence, Sentence):
            return sentence
        if not isinstance(sentence, str | Sequence) or isinstance(sentence, bytes):
            raise RamifyError(f"{sentence!r} is not a sentence; give a string or a list of tokens.")
        return (
            self.text_rules.sentence(sentence) if isinstance(sentence, str) else self.text_rules.sentence_of(sentence)
        )


def _announce_words(window: list[Sentence]) -> list[Sentence]:
    expect_words(sum(sum(sentence.is_word) for sentence in window))
    return window


def check_positive(name: str, number: int | None) -> None:
    """Refuse a count or a limit below one; None means no limit."""
    if number is not None and number < 1:
        raise RamifyError(f"{name} is {number}, but must be at least 1.")
