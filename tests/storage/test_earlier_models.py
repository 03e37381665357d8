"""Models of earlier versions can be loaded and give their original results (fixtures/make_models.py)."""

from __future__ import annotations

import json
import lzma
import shutil
from typing import Any

import pytest

import ramify
from ramify.models import FAMILIES
from tests.conftest import FIXTURES

MODELS = FIXTURES / "models"
GOLD = FIXTURES / "gold.trees"
NAMES = sorted(path.stem for path in MODELS.glob("*.json"))
TOLERANCE = 1e-4
"""Tolerance for log p(w) in nats and posteriors: processors and versions of torch differ in the last float32 digits."""
POINTS = 1e-6
"""Tolerance for scores in percent, which follow from the trees"""


def expected_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((MODELS / f"{name}.json").read_text(encoding="utf-8"))
    return found


SLOW = ["nl-pcfg"]
"""Families that have only an engine in log space"""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            name, marks=[pytest.mark.slow] * (name in SLOW) + [pytest.mark.needs("spacy")] * (name == "from-prose")
        )
        for name in NAMES
    ],
)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The name of a model and its parser; the weights of those with an encoder are packed."""
    folder = MODELS / request.param
    packed = folder / "model.safetensors.xz"
    if packed.exists():
        folder = shutil.copytree(folder, tmp_path_factory.mktemp("model") / request.param)
        (folder / "model.safetensors").write_bytes(lzma.decompress(packed.read_bytes()))
    parser = ramify.load(folder, "cpu")
    if packed.exists():
        (folder / "model.safetensors").unlink()
    return request.param, parser


def test_every_family_has_a_model() -> None:
    known = {json.loads((MODELS / name / "config.json").read_text(encoding="utf-8"))["model"] for name in NAMES}
    ours = {name for name, family in FAMILIES.items() if family.__module__.startswith("ramify.")}  # not those of tests
    assert known >= ours


def test_trees_and_probabilities_are_the_same(model: Any) -> None:
    name, parser = model
    sentences = expected_of(name)["sentences"]
    texts = [each["text"] for each in sentences]
    scores = parser.log_probabilities(texts) if parser.has_likelihood else [None] * len(texts)
    for expected, analysis, score in zip(sentences, parser.analyse_many(texts), scores, strict=True):
        found = analysis.as_record(with_posteriors=True)
        assert found["tokens"] == expected["tokens"]
        assert found["tags"] == expected["tags"]
        # Whether the outermost bracket counts as a constituent depends on how trees are written.
        constituents = [each for each in found["constituents"] if each[2] != "TOP"]
        assert constituents == expected["constituents"]
        if parser.has_likelihood:
            if expected["log_probability"] is None:
                continue
            assert found["log_probability"] == pytest.approx(expected["log_probability"], abs=TOLERANCE)
            assert score == pytest.approx(expected["log_probability"], abs=TOLERANCE)
        else:
            assert found["log_probability"] is None
        for part in ("constituents", "labels", "tags"):
            assert found["posteriors"][part] == pytest.approx(expected["posteriors"][part], abs=TOLERANCE)
        for i, j, posterior in expected["posteriors"]["spans"]:
            assert analysis.posteriors[i, j] == pytest.approx(posterior, abs=TOLERANCE)


def test_scores_are_the_same(model: Any) -> None:
    name, parser = model
    expected = expected_of(name)["scores"]
    found = ramify.evaluate(parser, GOLD)
    assert found.scores.sentences == expected["sentences"]
    assert found.scores.sentence_f1 == pytest.approx(expected["sentence_f1"], abs=POINTS)
    assert found.scores.corpus_f1 == pytest.approx(expected["corpus_f1"], abs=POINTS)
    if parser.has_likelihood:
        assert found.perplexity == pytest.approx(expected["perplexity"], rel=TOLERANCE)
    else:
        assert found.perplexity is expected["perplexity"] is None


@pytest.mark.needs("spacy")
def test_prose_is_split_as_it_was() -> None:
    parser, paragraph = ramify.load(MODELS / "from-prose", "cpu"), expected_of("from-prose")["paragraph"]
    lines = paragraph["text"].splitlines(keepends=True)
    found = [list(sentence.tokens) for sentence in parser.text_rules.sentences(lines, "paragraph")]
    assert found == paragraph["sentences"]


def test_punctuation_learnt_from_trees_is_loaded() -> None:
    parser = ramify.load(MODELS / "from-trees", "cpu")
    assert str(parser.word_rule) == "PU"
    assert parser.analyse("the stop saw -- , .").sentence.words == ("the", "saw", "--")
