"""What a reader wants to know first, in two or three sentences."""

from __future__ import annotations

from ramify.lab.results.collection import Collection
from ramify.lab.results.spread import Spread, spread

NOT_A_RIVAL = "oracle"
"""The baseline that looks at the gold trees"""


def summary(study: Collection) -> str:
    """How much was compared, and the best model beside the best baseline, on the first treebank and on how many."""
    best = {data: found for data in study.datasets if (found := _best_model(study, data))}
    models = len({model for data in study.datasets for model in study.models(data) if study.of(data, model)})
    sentences = [f"{_counted(models, 'model')} on {_counted(len(best), 'treebank')}."]
    for data, (model, f1) in list(best.items())[:1]:
        deviation = "" if f1.std is None else f" ± {f1.std:.1f}"
        baseline = _best_baseline(study, data)
        beside = f"; the best baseline, {baseline[0]}, has {baseline[1]:.1f}" if baseline else ""
        sentences.append(f"On {data}, {model} has the highest S-F1, {f1.mean:.1f}{deviation} percent{beside}.")
    compared = [f1.mean > rival[1] for data, (_, f1) in best.items() if (rival := _best_baseline(study, data))]
    if len(compared) > 1:
        sentences.append(f"The best model beats the best baseline on {sum(compared)} of {len(compared)} treebanks.")
    return " ".join(sentences)


def _best_model(study: Collection, data: str) -> tuple[str, Spread] | None:
    found = {model: spread(r.f1 for r in study.of(data, model)) for model in study.models(data)}
    known = [(model, f1) for model, f1 in found.items() if f1 is not None]
    return max(known, key=lambda each: each[1].mean, default=None)


def _best_baseline(study: Collection, data: str) -> tuple[str, float] | None:
    found = [(r.model, r.f1) for r in study.baselines(data) if r.model != NOT_A_RIVAL]
    return max(found, key=lambda each: each[1], default=None)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
