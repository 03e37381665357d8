"""Evaluation on the dev set after every epoch, the best epoch, and the end of training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ramify.corpus.cleaning import ALL_WORDS
from ramify.decoding.decoders import log_probabilities
from ramify.evaluation.scores import perplexity
from ramify.models import Model
from ramify.models.batches import WordIds, memory_batches, pad
from ramify.parser.parser import Parser
from ramify.parser.predictions import evaluate
from ramify.storage.model_folder import StoredModel
from ramify.training.data import Data
from ramify.training.focusing import SpanScores
from ramify.training.settings import Settings


def is_finished(records: list[dict[str, Any]], settings: Settings) -> bool:
    """Whether all epochs are done, or `patience` epochs have passed without a better one."""
    if not records:
        return False
    last = records[-1]
    return bool(last["epoch"] >= settings.epochs or last["epoch"] - last["best_epoch"] >= settings.patience)


def dev_measure(record: dict[str, Any]) -> float:
    """The measure that the best epoch minimises: the perplexity of the dev set or, without a likelihood, the loss."""
    return float(record["dev_loss"] if record["dev_perplexity"] is None else record["dev_perplexity"])


def evaluate_dev(
    stored: StoredModel, data: Data, focus: SpanScores | None = None, on_sentence: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Perplexity or loss on the dev set, by which the epoch is chosen; F1 is only reported, if there are trees.

    `focus` has the span scores of the training set, followed by those of the dev set if the model needs them.
    """
    model = stored.model
    record: dict[str, Any] = {}
    if data.dev.has_trees:
        parser = Parser(model, data.vocabulary, branching=stored.branching)
        result = evaluate(parser, data.dev, word_rule=ALL_WORDS, on_sentence=on_sentence, with_coverage=False)
        record = {"dev_perplexity": result.perplexity, "dev_f1": round(result.scores.sentence_f1, 2)}
    encoded = [data.vocabulary.encode(parse.words) for parse in data.dev.parses]
    if not model.has_likelihood:
        first = len(data.train) if model.needs_teachers else None
        return {**record, "dev_perplexity": None, "dev_loss": _loss(model, encoded, focus, first)}
    if not record:
        record = {"dev_perplexity": perplexity(log_probabilities(model, encoded)[0], list(map(len, encoded)))}
    return record


@torch.no_grad()
def _loss(model: Model, sentences: Sequence[WordIds], focus: SpanScores | None, first: int | None) -> float:
    """Minus the mean objective per sentence, with the span scores from the place `first` on if it is given."""
    total = 0.0
    for places in memory_batches(model, list(map(len, sentences))):
        batch = pad([sentences[place] for place in places], model.device)
        if focus is None or first is None:
            objective = model.objective(*batch)
        else:
            scores = focus.of([first + place for place in places]).to(model.device)
            objective = model.objective(*batch, span_scores=scores)
        total -= float(objective.sum())
    return total / len(sentences)
