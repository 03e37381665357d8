"""Heads of words against those of a treebank in CoNLL-U: directed and undirected accuracy.

Heads are numbers as in CoNLL-U: 0 for the root, else the word's place counted from 1. Punctuation is removed on both
sides before counting, and its dependents are attached to its head.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import compress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ramify.corpus.conllu import UNSPECIFIED
from ramify.corpus.reading import TEXT_WORDS, guess_file_kind, read_dependencies
from ramify.errors import RamifyError
from ramify.evaluation.alignment import align_tokens, predicted_sentences
from ramify.evaluation.evaluation import failures_in_any_run, mean
from ramify.evaluation.gold import SHORTEST, Gold, gold_from_corpus
from ramify.evaluation.scores import LENGTHS, percent, range_name

Heads = NDArray[np.int64]
"""(N,) heads of the N words of a sentence; -1 for a word whose head a system does not give"""
NO_HEAD = -1


@dataclass(frozen=True)
class GoldHeads:
    """A treebank ready for scoring."""

    words: Gold
    """The sentences, and which of them are scored; no trees"""
    heads: list[Heads]
    """Heads of each scored sentence, among its words only"""
    all_tagged: bool
    """Whether every token has UPOS, so that UPOS alone decides which tokens are words"""

    def signature(self, options: Sequence[str] = ()) -> str:
        """What must be equal to compare two scores."""
        decided_by = "UPOS" if self.all_tagged else "UPOS or, where it is missing, form"
        lengths = f"sentences of {range_name(SHORTEST, self.words.longest)} words"
        return self.words.signed("heads, root included", f"punctuation removed by {decided_by}", lengths, *options)


def load_gold_heads(file: str | Path, longest: int | None = None) -> GoldHeads:
    """A file in CoNLL-U to score heads with, of the sentences of two to `longest` words."""
    corpus, sentences = read_dependencies(file)
    gold = gold_from_corpus(corpus, TEXT_WORDS, longest)
    heads = [
        without_punctuation(sentences[place].head_numbers(), _is_word(gold, place)) for place in range(len(sentences))
    ]
    all_tagged = all(UNSPECIFIED not in sentence.upos for sentence in sentences)
    return GoldHeads(gold, [heads[place] for place in gold.places], all_tagged)


def _is_word(gold: Gold, place: int) -> list[bool]:
    return gold.rule.word_mask(gold.corpus.parses[place].tags)


def without_punctuation(heads: Sequence[int], is_word: Sequence[bool]) -> Heads:
    """The heads of the words among themselves, from those of all tokens, which must be a tree.

    A word whose head is not a word gets the head of that token, and so on. If the root is not a word, several words
    may have the head 0.
    """
    number = np.concatenate([[0], np.cumsum(is_word)])
    found = []
    for head in compress(heads, is_word):
        while head and not is_word[head - 1]:
            head = heads[head - 1]
        found.append(number[head])
    return np.array(found, np.int64)


@dataclass(frozen=True)
class HeadPrediction:
    """A system's heads for the gold sentences, in their order."""

    system: str
    heads: Sequence[Heads]
    failures: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The sentences without heads by reason, as numbers from 1 in the treebank; all their heads count as wrong"""
    in_log_space: int = 0
    options: tuple[str, ...] = ()
    """Decoder, for the signature"""


def left_chain(n: int) -> Heads:
    """Every word depends on the word to its left; the first is the root."""
    return np.arange(n)


def right_chain(n: int) -> Heads:
    """Every word depends on the word to its right; the last is the root."""
    return np.append(np.arange(2, n + 1), 0)[:n]


CHAINS: dict[str, Callable[[int], Heads]] = {"left-chain": left_chain, "right-chain": right_chain}
"""Functions from the number of words to heads, which need no model"""


def check_chain(name: str) -> None:
    """Refuse a baseline that has no heads."""
    if name not in CHAINS:
        raise RamifyError(
            f"baseline {name!r} has no heads; for CoNLL-U choose one of {', '.join(CHAINS)}, or give bracketed trees."
        )


def chain_prediction(name: str, gold: GoldHeads) -> HeadPrediction:
    """The heads of a chain for every gold sentence."""
    check_chain(name)
    return HeadPrediction(name, [CHAINS[name](length) for length in gold.words.lengths])


def read_head_prediction(file: str | Path, gold: GoldHeads, system: str | None = None) -> HeadPrediction:
    """The heads of a file in CoNLL-U, with a sentence for each gold sentence, or for each that has words.

    It may have the gold punctuation, other punctuation or none; the gold words must all be there.
    """
    path = Path(file)
    if guess_file_kind(path) != "conllu":
        raise RamifyError(
            f"{path}: this file is not CoNLL-U and has no heads; give CoNLL-U, or bracketed trees as gold."
        )
    corpus, sentences = read_dependencies(path)
    words = gold.words
    places = predicted_sentences(len(sentences), words)
    found: dict[int, Heads] = {}
    for sentence, place in zip(sentences, places, strict=False):
        is_word = _is_word(words, place)
        try:
            keep, present = align_tokens(sentence.forms, words.corpus.parses[place].words, is_word)
        except ValueError as error:
            raise RamifyError(
                f"{sentence.where}: {error} (sentence {place + 1} of {words.corpus.source}); give the same sentences "
                "in the same order."
            ) from error
        kept = iter(compress(is_word, present))
        found[place] = without_punctuation(sentence.head_numbers(), [each and next(kept) for each in keep])
    if len(sentences) != len(places):
        raise RamifyError(
            f"{corpus.source}: has {len(sentences)} sentences, but {words.corpus.source} has "
            f"{len(words.corpus)}, {len(words.parses)} of them to be scored; give one for each."
        )
    return HeadPrediction(system or str(path), [found[place] for place in words.places])


@dataclass(frozen=True)
class HeadScores:
    """Agreement of predicted with gold heads, in percent of the words of all sentences."""

    directed: float
    """Words with the correct head"""
    undirected: float
    """Words whose arc is correct if its direction is ignored; the arc of the root has only one direction"""
    words: int
    sentences: int

    @classmethod
    def of(cls, gold: Sequence[Heads], predicted: Sequence[Heads]) -> HeadScores:
        """The scores of these sentences."""
        directed = undirected = words = 0
        for right, guess in zip(gold, predicted, strict=True):
            same = right == guess
            # The predicted head depends on the word: the same arc in the other direction.
            reversed_ = (guess > 0) & (right[guess - 1] == np.arange(1, len(right) + 1))
            directed += int(same.sum())
            undirected += int((same | reversed_).sum())
            words += len(right)
        return cls(percent(directed, words), percent(undirected, words), words, len(gold))


@dataclass(frozen=True)
class HeadEvaluation:
    """Agreement of the heads of one system with a treebank; the signature says how they were counted."""

    system: str
    scores: HeadScores
    by_length: dict[str, HeadScores]
    failures: Mapping[str, tuple[int, ...]]
    """The sentences without heads by reason, as numbers from 1 in the treebank; those of any run in a mean of runs"""
    in_log_space: int
    signature: str
    run_directed: tuple[float, ...] = ()
    """Directed accuracy of each run, if this is the mean over several"""
    best_by_dev_likelihood: str | None = None
    """Among several trained runs, the one with the best dev likelihood, which is chosen without heads"""

    @property
    def directed_std(self) -> float | None:
        """The biased standard deviation over the runs: divided by their number."""
        return float(np.std(self.run_directed)) if self.run_directed else None

    def as_record(self) -> dict[str, object]:
        """As JSON values."""
        return asdict(self) | {"directed_std": self.directed_std}


def score_heads(gold: GoldHeads, prediction: HeadPrediction) -> HeadEvaluation:
    """All scores of a prediction, and those of each range of lengths that occurs."""
    by_length = {}
    for shortest, longest in LENGTHS:
        chosen = [shortest <= length <= (longest or length) for length in gold.words.lengths]
        if any(chosen):
            sides = (list(compress(heads, chosen)) for heads in (gold.heads, prediction.heads))
            by_length[range_name(shortest, longest)] = HeadScores.of(*sides)
    scores = HeadScores.of(gold.heads, prediction.heads)
    return HeadEvaluation(
        prediction.system,
        scores,
        by_length,
        prediction.failures,
        prediction.in_log_space,
        gold.signature(prediction.options),
    )


def mean_of_head_runs(runs: Sequence[HeadEvaluation], system: str, best: str | None = None) -> HeadEvaluation:
    """The mean of every score over runs of one system on the same sentences; one run is its own mean."""
    found: HeadEvaluation = mean([replace(run, failures={}) for run in runs])
    return replace(
        found,
        system=system,
        failures=failures_in_any_run([run.failures for run in runs]),
        run_directed=tuple(run.scores.directed for run in runs) if len(runs) > 1 else (),
        best_by_dev_likelihood=best,
    )
