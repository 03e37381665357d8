"""From analyses to the bytes of a response; runs in the thread of the models, not in that of the connections."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ramify.corpus.cleaning import keep_leaves
from ramify.drawing.layout import place
from ramify.drawing.posterior_chart import ChartGrid
from ramify.drawing.svg import as_record, layout_for
from ramify.evaluation.gold import Gold
from ramify.evaluation.scores import Scores
from ramify.evaluation.spans import count_spans
from ramify.parser import FORMATS, Analysis
from ramify.parser.analysis import Scored
from ramify.parser.pictures import drawn_tree
from ramify.serve.read_request import Read
from ramify.serve.schemas import ParseRequest
from ramify.serve.served_models import ServedModel


def parse_answer(served: ServedModel, request: ParseRequest, read: Read, analyses: Sequence[Analysis]) -> bytes:
    """The response of /v1/parse."""
    answer: dict[str, Any] = {
        "model": served.name,
        "decoder": request.decoder,
        "results": [_result(request, analysis) for analysis in analyses],
    }
    if read.gold is not None:
        answer["scores"] = _totals(read.gold, analyses)
    return as_bytes(answer)


def score_answer(served: ServedModel, scored: Sequence[Scored]) -> bytes:
    """The response of /v1/score."""
    results = [
        {
            "log_probability": each.log_probability if math.isfinite(each.log_probability) else None,
            "words": each.count.words,
            "unknown": each.count.unknown,
            "failure": each.failure,
        }
        for each in scored
    ]
    return as_bytes({"model": served.name, "results": results})


def as_bytes(answer: object) -> bytes:
    """As compact JSON."""
    return json.dumps(answer, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _result(request: ParseRequest, analysis: Analysis) -> dict[str, Any]:
    layout = layout_for(len(analysis.parse), None if request.layout == "auto" else request.layout)
    result = analysis.as_record(request.posteriors)
    result["formats"] = {
        name: analysis.as_svg(layout) if name == "svg" else FORMATS[name](analysis) for name in request.formats
    }
    if request.drawing and len(analysis.parse):
        result["tree"] = as_record(place(drawn_tree(analysis), layout))
        result["chart"] = ChartGrid.of(analysis.parse.words).as_record()
    if analysis.sentence.tree is not None:
        result["gold"] = _gold_scores(analysis)
    return result


def _gold_scores(analysis: Analysis) -> dict[str, Any]:
    """Spans of two words or more count, except the whole sentence: the convention `tn`."""
    sentence, parse = analysis.sentence, analysis.parse
    assert sentence.tree is not None
    before = np.concatenate([[0], np.cumsum(sentence.is_word)]).tolist()
    words = before[-1]

    def counted(span: Sequence[int]) -> tuple[int, int] | None:
        start, end = before[span[0]], before[span[1]]
        return (start, end) if 1 < end - start < words else None

    ours, theirs = parse.spans.tolist(), sentence.tree.spans.tolist()
    gold, predicted = {counted(span) for span in theirs}, {counted(span) for span in ours}
    labelled = [[*span, label] for span, label in zip(theirs, sentence.tree.labels, strict=True)]
    score = None
    if words > 1:
        spans = [keep_leaves(tree, sentence.is_word).spans for tree in (sentence.tree, parse)]
        counts = count_spans([spans[0]], [spans[1]], [words])
        found = Scores.of(counts)
        score = {
            "f1": found.sentence_f1,
            "precision": found.precision,
            "recall": found.recall,
            "correct": int(counts.hits[0]),
            "predicted": int(counts.predicted[0]),
            "gold": int(counts.gold[0]),
        }
    return {
        "score": score,
        "constituents": labelled,
        "correct": [None if (span := counted(each)) is None else span in gold for each in ours],
        "missed": [each for each in labelled if (span := counted(each[:2])) is not None and span not in predicted],
    }


def _totals(gold: Gold, analyses: Sequence[Analysis]) -> dict[str, Any]:
    predicted = [keep_leaves(analyses[i].parse, analyses[i].sentence.is_word).spans for i in gold.places]
    scores = Scores.of(count_spans(gold.spans, predicted, gold.lengths))
    return {
        "sentence_f1": scores.sentence_f1,
        "corpus_f1": scores.corpus_f1,
        "sentences": scores.sentences,
        "signature": gold.signature("tn"),
    }
