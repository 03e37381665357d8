"""Everything that is reported about one system on one treebank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from ramify.corpus.tree import UNTAGGED
from ramify.evaluation.calibration import Reliability
from ramify.evaluation.coverage import Coverage
from ramify.evaluation.evalb import RULE, EvalbScores, evalb
from ramify.evaluation.gold import Gold, Prediction
from ramify.evaluation.labels import Agreement, LabelRecall, agreement, labels_of_shared_spans, recall_by_label
from ramify.evaluation.scores import Scores, perplexity, scores_by_length
from ramify.evaluation.spans import CONVENTIONS, Convention, count_spans
from ramify.evaluation.usage import Usage, usage


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The scores of one system on one treebank; the signature says how they were counted.

    Result files contain it. Fields that later versions added have defaults, because earlier files lack them.
    """

    system: str
    scores: Scores
    by_convention: dict[Convention, Scores]
    """Scores by convention; `scores` and `by_length` are those of the convention in the signature"""
    by_length: dict[str, Scores]
    recall_by_label: dict[str, LabelRecall]
    labels: Agreement | None
    """Agreement of the labels of correct brackets with the gold labels; None for systems without labels"""
    recall_homogeneity: float | None
    """Recall of the spans that have labels to compare, times the homogeneity of these labels"""
    tags: Agreement | None
    nonterminals_used: Usage | None
    """Nonterminals of predicted constituents of two words or more; None for systems without labels"""
    preterminals_used: Usage | None
    rule_cosine: float | None = None
    """The mean cosine between the rules of two nonterminals; near 1, most symbols have similar rules"""
    calibration: Reliability | None
    """Calibration of span posteriors, for systems that have them"""
    perplexity: float | None
    """None for systems without probabilities of sentences"""
    coverage: Coverage | None = None
    """Unknown words, and perplexities that account for them; None for systems without a vocabulary"""
    failures: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The sentences without a parse by reason, as numbers from 1 in the treebank; those of any run in a mean of runs"""
    in_log_space: int = 0
    """Number of sentences recomputed in log space, because their probabilities underflowed in float32"""
    evalb: dict[str, EvalbScores] | None
    """EVALB's summary, if it was requested and there are labels"""
    evalb_signature: str | None
    signature: str
    agreement: dict[str, Any] | None = None
    """S-F1 between the members of an ensemble, and those that collapsed"""
    run_f1: tuple[float, ...] = ()
    """S-F1 of each run, if this is the mean over several"""
    best_by_dev_likelihood: str | None = None
    """Among several trained runs, the one with the best dev likelihood, which is chosen without trees"""

    @property
    def not_derived(self) -> int:
        """The number of sentences without a parse."""
        return sum(map(len, self.failures.values()))

    @property
    def f1_std(self) -> float | None:
        """The biased standard deviation of S-F1 over the runs: divided by their number."""
        return float(np.std(self.run_f1)) if self.run_f1 else None

    @property
    def f1_max(self) -> float | None:
        """S-F1 of the best run."""
        return max(self.run_f1) if self.run_f1 else None

    def as_record(self) -> dict[str, object]:
        """As JSON values; an infinite perplexity is null."""
        record = asdict(self) | {"not_derived": self.not_derived, "f1_std": self.f1_std, "f1_max": self.f1_max}
        for part in filter(None, (record, record["coverage"])):
            infinite = [name for name, value in part.items() if isinstance(value, float) and not np.isfinite(value)]
            part.update(dict.fromkeys(infinite))
        return record


def score(gold: Gold, prediction: Prediction, convention: Convention = "tn", with_evalb: bool = False) -> Evaluation:
    """All scores of a prediction."""
    spans = prediction.spans
    counts = {name: count_spans(gold.spans, spans, gold.lengths, name) for name in {*CONVENTIONS, convention}}
    by_convention = {name: Scores.of(counts[name]) for name in CONVENTIONS}
    labels = agreement(*labels_of_shared_spans(gold.parses, prediction.parses)) if prediction.has_labels else None
    log_p = prediction.log_probabilities
    with_evalb = with_evalb and prediction.has_labels
    return Evaluation(
        system=prediction.system,
        scores=by_convention[convention],
        by_convention=by_convention,
        by_length=scores_by_length(counts[convention], gold.lengths),
        recall_by_label=recall_by_label(gold.parses, spans),
        labels=labels,
        # Spans with labels to compare are those of the convention `tn`.
        recall_homogeneity=None if labels is None else by_convention["tn"].recall * labels.homogeneity / 100,
        tags=_tag_agreement(gold, prediction),
        nonterminals_used=usage(_labels(prediction)) if prediction.has_labels else None,
        preterminals_used=usage(tag for parse in prediction.parses for tag in parse.tags if tag != UNTAGGED),
        rule_cosine=prediction.rule_cosine,
        calibration=prediction.calibration,
        perplexity=None if log_p is None else perplexity(log_p, gold.lengths),
        coverage=prediction.coverage,
        failures=prediction.failures,
        in_log_space=prediction.in_log_space,
        evalb=evalb(prediction.whole or zip(gold.parses, prediction.parses, strict=True)) if with_evalb else None,
        evalb_signature=gold.signed(*RULE) if with_evalb else None,
        signature=gold.signature(convention, prediction.options),
        agreement=prediction.agreement,
    )


def mean_of_runs(runs: Sequence[Evaluation], system: str, best: str | None = None) -> Evaluation:
    """The mean of every score over runs of one system on the same sentences; one run is its own mean."""
    f1 = tuple(run.scores.sentence_f1 for run in runs)
    found: Evaluation = mean([replace(run, failures={}) for run in runs])
    return replace(
        found,
        system=system,
        failures=failures_in_any_run([run.failures for run in runs]),
        run_f1=f1 if len(runs) > 1 else (),
        best_by_dev_likelihood=best,
    )


def failures_in_any_run(runs: Sequence[Mapping[str, tuple[int, ...]]]) -> dict[str, tuple[int, ...]]:
    """The sentences that failed in any of several runs, by reason."""
    reasons = dict.fromkeys(reason for run in runs for reason in run)
    return {reason: tuple(sorted({number for run in runs for number in run.get(reason, ())})) for reason in reasons}


def mean(values: Sequence[Any]) -> Any:
    """The mean of every number in nested dataclasses, dictionaries and tuples; None if one is missing.

    Other values are kept if all are equal; otherwise they become None.
    """
    first = values[0]
    if any(value is None for value in values):
        return None
    if is_dataclass(first):
        parts = {each.name: mean([getattr(value, each.name) for value in values]) for each in fields(first)}
        return replace(first, **parts)  # type: ignore[type-var]
    if isinstance(first, dict):
        return {key: mean([value[key] for value in values]) for key in first}
    if isinstance(first, tuple):
        return tuple(mean(parts) for parts in zip(*values, strict=True))
    if isinstance(first, int):
        return round(np.mean(values))
    if isinstance(first, float):
        return float(np.mean(values))
    return first if all(value == first for value in values) else None


def _labels(prediction: Prediction) -> Iterator[str]:
    for parse in prediction.parses:
        for (start, end), label in zip(parse.spans.tolist(), parse.labels, strict=True):
            if end - start > 1:
                yield label


def _tag_agreement(gold: Gold, prediction: Prediction) -> Agreement | None:
    truth, induced = (
        list(chain.from_iterable(parse.tags for parse in parses)) for parses in (gold.parses, prediction.parses)
    )
    return None if {UNTAGGED} in (set(truth), set(induced)) else agreement(truth, induced)
