"""Training guided by punctuation."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import ramify
from ramify.corpus.breaks import crossing_spans
from ramify.corpus.tree import parse_of_words
from ramify.errors import RamifyError
from ramify.training.focusing import SpanScores
from ramify.training.guidance import Guidance
from ramify.training.settings import PUNCTUATION_PENALTY, Settings, load_settings

SENTENCES = [
    replace(parse_of_words(["a", "b", "c", "d"]), breaks=(2,)),
    parse_of_words(["a", "b", "c", "d"]),
    replace(parse_of_words(["a", "b", "c", "d"]), breaks=(1, 2)),
]


def test_crossing_spans_have_minus_the_penalty() -> None:
    scores = Guidance(SENTENCES, Settings(punctuation_penalty=2.5)).span_scores([2, 0], epoch=1)
    assert scores is not None
    expected = [-2.5 * crossing_spans(4, SENTENCES[place].breaks) for place in (2, 0)]
    assert np.array_equal(scores.numpy(), np.stack(expected))
    assert scores[1, 1, 3] == -2.5
    assert scores[1, 0, 2] == 0


def test_without_punctuation_or_penalty_there_are_no_scores() -> None:
    assert Guidance(SENTENCES, Settings(punctuation_penalty=1.0)).span_scores([1], epoch=1) is None
    assert Guidance(SENTENCES, Settings(punctuation_penalty=0.0)).span_scores([0, 1, 2], epoch=1) is None


def test_teachers_and_punctuation_add_up() -> None:
    taught = SpanScores([4, 4, 4], np.arange(18, dtype=np.float32))
    settings = Settings(focus=2.0, focus_decay=0.5, punctuation_penalty=1.0)
    scores = Guidance(SENTENCES, settings, taught).span_scores([0, 1], epoch=2)
    assert scores is not None
    crossing = np.stack([crossing_spans(4, SENTENCES[place].breaks) for place in (0, 1)])
    assert np.array_equal(scores.numpy(), taught.of([0, 1]).numpy() - crossing)


def test_defaults_of_grammars_and_other_models() -> None:
    assert Settings().crossing_penalty == PUNCTUATION_PENALTY
    assert Settings(model="structformer").crossing_penalty == 0
    assert Settings(model="crf").crossing_penalty == 0
    assert load_settings(None, {}, preset="tn-pcfg-60").crossing_penalty == 0


@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan])
def test_penalties_that_are_refused(value: float) -> None:
    with pytest.raises(RamifyError, match="punctuation_penalty"):
        Settings(punctuation_penalty=value)


def test_models_without_span_scores_refuse_a_penalty() -> None:
    with pytest.raises(RamifyError, match="on-lstm"):
        Settings(model="on-lstm", punctuation_penalty=1.0)


def test_a_trained_grammar_avoids_crossing_punctuation() -> None:
    """Words in random order, with commas as the only structure."""
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(120):
        words = [str(rng.choice(list("abcdef"))) for _ in range(6)]
        lines.append(" ".join([*words[:3], ",", *words[3:]]))
    torch.manual_seed(0)

    def mean_crossing(penalty: float) -> float:
        parser = ramify.fit(
            lines, preterminals=6, epochs=4, batch_size=8, learning_rate=0.01, punctuation_penalty=penalty
        )
        crossing = crossing_spans(6, (3,))
        return float(
            np.mean([parser.posteriors(line.replace(", ", "").split())[crossing].sum() for line in lines[:30]])
        )

    assert mean_crossing(5.0) < 0.7 * mean_crossing(0.0)
