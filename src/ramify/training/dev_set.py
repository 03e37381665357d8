"""Evaluation on the dev set after every epoch, the best epoch, and the end of training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ramify.corpus.cleaning import ALL_WORDS
from ramify.corpus.sentence import Sentence
from ramify.decoding.decoders import log_probabilities
from ramify.evaluation.scores import Scores, perplexity
from ramify.evaluation.spans import count_spans
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
    """The measure that the best epoch minimises: minus the agreement with the average of the teachers if training
    follows it, else the perplexity or, without a likelihood, the loss."""
    if "dev_agreement" in record:
        return -float(record["dev_agreement"])
    return float(record["dev_loss"] if record["dev_perplexity"] is None else record["dev_perplexity"])


def evaluate_dev(
    stored: StoredModel,
    data: Data,
    focus: SpanScores | None = None,
    focus_on: str = "",
    on_sentence: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """The scores on the dev set, by which the epoch is chosen; F1 is only reported, if there are trees.

    `focus` has the span scores of the training set, followed by those of the dev set if the choice depends on them.
    With `focus_on` "average" they are the trees of the teachers' average.
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
    if focus is not None and focus_on == "average":
        record["dev_agreement"] = round(_agreement(stored, data, focus, on_sentence), 2)
    return record


def _agreement(stored: StoredModel, data: Data, focus: SpanScores, on_sentence: Callable[[], None]) -> float:
    """S-F1 of the model's trees against those of the teachers' average."""
    parser = Parser(stored.model, data.vocabulary, branching=stored.branching)
    found = []
    for analysis in parser.analyse_many(Sentence.from_tokens(parse.words) for parse in data.dev.parses):
        found.append(analysis.parse.spans)
        on_sentence()
    tables = (focus.table(len(data.train) + place) for place in range(len(found)))
    average = [np.argwhere(table).astype(np.int32) for table in tables]
    return Scores.of(count_spans(average, found, list(map(len, data.dev.parses)))).sentence_f1


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
