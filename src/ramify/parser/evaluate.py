"""A parser or a baseline against a treebank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ramify.corpus.cleaning import WordRule
from ramify.corpus.prepare.manifest import word_rule_for
from ramify.corpus.reading import Corpus, read_sentences
from ramify.errors import RamifyError
from ramify.evaluation.baselines import BASELINES
from ramify.evaluation.scores import Convention, Scores, mean_scores, perplexity, recall_by_label, signature, span_f1
from ramify.parser.parser import Parser

RANDOM_RUNS = 5
"""Random trees are scored as the mean over this many draws."""


@dataclass(frozen=True)
class Evaluation:
    """How one system does on one treebank; the signature says how it was counted."""

    system: str
    scores: Scores
    perplexity: float | None
    """None for systems that give no probabilities"""
    impossible: int
    """Sentences of two words or more that the grammar cannot derive: p(w) = 0"""
    recall_by_label: dict[str, tuple[float, int]]
    signature: str

    def as_record(self) -> dict[str, object]:
        """In terms of JSON; an infinite perplexity is null."""
        record = asdict(self)
        if self.perplexity is not None and not np.isfinite(self.perplexity):
            record["perplexity"] = None
        return record


def load_gold(trees: str | Path | Corpus, word_rule: WordRule | None = None) -> tuple[Corpus, WordRule]:
    """A treebank ready for scoring: words alone, sentences of two words or more; the rule guessed if not given."""
    corpus = trees if isinstance(trees, Corpus) else read_sentences(trees)
    if not corpus.has_trees:
        raise RamifyError(f"{corpus.source}: there are no trees to score against; give a file of bracketed trees.")
    rule = word_rule or word_rule_for(corpus)
    gold = corpus.words_only(rule).of_lengths(2)
    if not gold.parses:
        raise RamifyError(f"{corpus.source}: no sentence has two words or more; there is nothing to score.")
    return gold, rule


def evaluate(
    system: Parser | str,
    trees: str | Path | Corpus,
    *,
    convention: Convention = "tn",
    decoder: str = "mbr",
    word_rule: WordRule | None = None,
    seed: int = 0,
    on_sentence: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Score a parser, or a baseline by name (left, right, random, balanced, oracle), against gold trees.

    Which leaves are words is, unless given, what the parser was trained with or, for a baseline, a guess from
    the treebank's tags; the signature names it.
    """
    if isinstance(system, str):
        if system not in BASELINES:
            raise RamifyError(f"baseline {system!r} is unknown; choose one of {', '.join(BASELINES)}.")
        return _evaluate_baseline(system, *load_gold(trees, word_rule), convention, seed)
    gold, rule = load_gold(trees, word_rule or system.word_rule)
    predicted, log_probabilities = [], []
    for analysis in system.analyse_many((parse.words for parse in gold.parses), decoder):
        predicted.append(analysis.parse.spans)
        log_probabilities.append(analysis.log_probability)
        on_sentence()
    lengths = [len(parse) for parse in gold.parses]
    return Evaluation(
        f"model ({decoder})",
        span_f1([parse.spans for parse in gold.parses], predicted, lengths, convention),
        perplexity(log_probabilities, lengths),
        int(np.isinf(log_probabilities).sum()),
        recall_by_label(gold.parses, predicted),
        signature(convention, rule, gold.checksum),
    )


def _evaluate_baseline(name: str, gold: Corpus, rule: WordRule, convention: Convention, seed: int) -> Evaluation:
    runs = RANDOM_RUNS if name == "random" else 1
    lengths = [len(parse) for parse in gold.parses]
    spans = [parse.spans for parse in gold.parses]
    results = []
    if seed < 0:
        raise RamifyError(f"seed is {seed}, but must be at least 0.")
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        predicted = [BASELINES[name](parse, rng) for parse in gold.parses]
        results.append(span_f1(spans, predicted, lengths, convention))
    return Evaluation(
        f"{name} branching" if name in ("left", "right") else name,
        mean_scores(results),
        None,
        0,
        recall_by_label(gold.parses, predicted),
        signature(convention, rule, gold.checksum),
    )
