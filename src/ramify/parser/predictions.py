"""A parser or a baseline against a treebank."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from ramify.corpus.cleaning import WordRule
from ramify.corpus.reading import Corpus
from ramify.corpus.sentence import Sentence
from ramify.decoding.heads import HeadDecoder
from ramify.errors import RamifyError
from ramify.evaluation.agreement import MemberAgreement
from ramify.evaluation.baselines import baseline_predictions, check_baseline
from ramify.evaluation.calibration import Reliability, reliability_counts
from ramify.evaluation.dependencies import NO_HEAD, GoldHeads, HeadPrediction
from ramify.evaluation.evaluation import Evaluation, mean_of_runs, score
from ramify.evaluation.failures import Failure, group_by_reason
from ramify.evaluation.gold import Gold, Prediction, load_gold
from ramify.evaluation.spans import Convention
from ramify.parser.ensemble import Ensemble, add_agreement
from ramify.parser.tree_parser import TreeParser

NO_HEADS = "{} has no heads; score it against bracketed trees, or train a family with heads."


def evaluate(
    system: TreeParser | str,
    trees: str | Path | Corpus,
    *,
    convention: Convention = "tn",
    decoder: str = "mbr",
    word_rule: WordRule | None = None,
    longest: int | None = None,
    seed: int = 0,
    branching: float | None = None,
    on_sentence: Callable[[], None] = lambda: None,
    with_coverage: bool = True,
) -> Evaluation:
    """Score a parser, or a baseline by name (left, right, random, balanced, oracle), against gold trees.

    `word_rule` says which leaves are words; by default it is the rule that the parser was trained with or, for a
    baseline, a guess from the tags of the treebank. The signature names it, and the branching bonus if there is one.
    Without `with_coverage`, unknown words are not counted, which saves a second pass over the sentences that contain
    any, and rules are not compared.
    """
    if isinstance(system, str):
        check_baseline(system)
        gold = load_gold(trees, word_rule, longest)
        predictions = baseline_predictions(system, gold, seed, on_sentence)
    else:
        gold = load_gold(trees, word_rule or system.word_rule, longest)
        predictions = [predict(system, gold, "model", decoder, on_sentence, seed, with_coverage, branching)]
    return mean_of_runs([score(gold, each, convention) for each in predictions], predictions[0].system)


def predict(
    parser: TreeParser,
    gold: Gold,
    name: str,
    decoder: str = "mbr",
    on_sentence: Callable[[], None] = lambda: None,
    seed: int = 0,
    with_coverage: bool = True,
    branching: float | None = None,
) -> Prediction:
    """The trees of a parser for the words of the gold sentences.

    Calibration covers only the sentences that have a parse.
    """
    parses, log_probabilities, counts = [], [], np.zeros(())
    failures: list[Failure | None] = []
    in_log_space = 0
    agreement = MemberAgreement(parser.names) if isinstance(parser, Ensemble) and len(parser.members) > 1 else None
    sentences = [Sentence.from_tokens(parse.words) for parse in gold.parses]
    analyses = parser.analyse_many(sentences, decoder, seed, branching=branching)
    for analysis, gold_parse in zip(analyses, gold.parses, strict=True):
        parses.append(analysis.parse)
        log_probabilities.append(analysis.log_probability)
        failures.append(analysis.failure)
        in_log_space += analysis.in_log_space
        if agreement is not None:
            add_agreement(agreement, analysis)
        if analysis.failure is None:
            counts = counts + reliability_counts(analysis.posteriors, gold_parse.spans)
        on_sentence()
    too_long = {place for place, failure in enumerate(failures) if failure == "too long"}
    return Prediction(
        f"{name} ({decoder})",
        parses,
        log_probabilities if parser.has_likelihood else None,
        Reliability.of(counts) if counts.ndim else None,
        parser.coverage(sentences, log_probabilities, too_long) if with_coverage else None,
        failures=group_by_reason(failures, (place + 1 for place in gold.places)),
        in_log_space=in_log_space,
        agreement=None if agreement is None else agreement.as_record(),
        rule_cosine=parser.rule_cosine() if with_coverage else None,
        options=_options(parser.bonus_for(decoder, branching)),
    )


def predict_heads(
    parser: TreeParser,
    gold: GoldHeads,
    name: str,
    decoder: str = "mbr",
    heads: HeadDecoder = "projective",
    on_sentence: Callable[[], None] = lambda: None,
    seed: int = 0,
    branching: float | None = None,
) -> HeadPrediction:
    """The heads of a parser for the words of the gold sentences; an error if the model has no heads."""
    found, failures, in_log_space = [], [], 0
    words = gold.words
    sentences = [Sentence.from_tokens(parse.words) for parse in words.parses]
    for analysis in parser.analyse_many(sentences, decoder, seed, branching=branching, heads=heads):
        if analysis.heads is None and analysis.failure is None:
            raise RamifyError(NO_HEADS.format(name))
        nothing = (NO_HEAD,) * len(analysis.parse)
        found.append(np.array(nothing if analysis.heads is None else analysis.heads, np.int64))
        failures.append(analysis.failure)
        in_log_space += analysis.in_log_space
        on_sentence()
    by_failure = group_by_reason(failures, (place + 1 for place in words.places))
    bonus = parser.bonus_for(decoder, branching)
    how = decoder if heads == "projective" else f"{decoder}, {heads}"
    return HeadPrediction(f"{name} ({how})", found, by_failure, in_log_space, _options(bonus))


def _options(branching: float) -> tuple[str, ...]:
    """The part of a signature about decoding."""
    return (f"branching {branching:g}",) if branching else ()
